"""Which column of a log is which number of a model: by name, by place counted from 0 or 1, or as the caller says."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, near_matches

from .system import position_labels, velocity_labels

SIGNALS = {
    "position": ("q", "pos"),
    "velocity": ("v", "vel", "dq", "qd"),
    "acceleration": ("vdot", "acc", "ddq", "qdd"),
    "effort": ("tau", "torque", "eff", "force"),
    "external": ("ext",),
    "actuation": ("u", "ctrl", "command"),
}
TIMES = ("time", "t", "timestamp", "seconds", "stamp")
Numbered = dict[str, dict[int, list[str]]]  # columns by signal and by the number behind its word


def labels_of(model: MultibodyModel) -> dict[str, tuple[str, ...]]:
    """Names of the numbers of each signal."""
    v = velocity_labels(model)
    actuators = model.actuator_names
    along_v = {signal: v for signal in ("velocity", "acceleration", "effort", "external")}
    return {"position": position_labels(model), **along_v, "actuation": actuators}


def required_labels(model: MultibodyModel) -> dict[str, set[str]]:
    """The numbers of each signal that a log must have if it has any of the signal.

    Efforts are those of the actuators' joints, or of all joints but the floating ones where no joint has an actuator.
    """
    labels = {signal: set(names) for signal, names in labels_of(model).items()}
    driven = set(model.layout.velocities_of_actuators) or {
        k
        for joint in model.layout.joints
        if joint.num_velocities < 6
        for k in range(joint.v_start, joint.v_start + joint.num_velocities)
    }
    effort = {label for k, label in enumerate(velocity_labels(model)) if k in driven}
    return labels | {"effort": effort, "external": set()}


def match_columns(
    path: Path, model: MultibodyModel, names: list[str], given: Mapping[str, str | float | None]
) -> dict[str, Any]:
    """Column of the file for `time` and for each `signal.name`, the number that stands for it, or None without one."""
    labels = labels_of(model)
    keys = [f"{signal}.{label}" for signal in labels for label in labels[signal]]
    found: dict[str, Any] = checked_choices(path, ["time", *keys], names, given)
    by_plain = grouped_by_plain_name(names)
    if "time" not in found:
        found["time"] = time_column(path, by_plain)
    if found["time"] is None:
        raise ModelError(
            f"{path}: no column of times was found among {', '.join(names[:12])}; say columns={{'time': …}}."
        )
    named = {f"{signal}.{label}": spellings(signal, label) for signal in labels for label in labels[signal]}
    match_names(path, by_plain, named, found)
    match_places(path, model, names, found)
    free = {name: same for name, same in by_plain.items() if not set(same) & set(found.values())}
    match_names(path, free, {f"actuation.{label}": [plain(label)] for label in labels["actuation"]}, found)
    require_different_columns(path, {key: column for key, column in found.items() if key not in given})
    return found | {key: found.get(key) for key in keys}


def checked_choices(
    path: Path, known: list[str], names: list[str], given: Mapping[str, str | float | None]
) -> dict[str, Any]:
    """What the caller says of columns, with numbers as numbers; raises `ModelError` for what does not exist."""
    chosen: dict[str, Any] = {}
    for key, column in given.items():
        if key not in known:
            raise ModelError(f"{path}: columns has '{key}', which is no signal. {near_matches(key, known)}")
        chosen[key] = column = column if column in names else as_number(column)
        if isinstance(column, float) and key != "time":
            continue
        if column is not None and column not in names:
            raise ModelError(f"{path}: there is no column '{column}' for {key}. {near_matches(str(column), names)}")
    return chosen


def as_number(column: str | float | None) -> str | float | None:
    """The number that stands for a column, also as text; other text as it is."""
    try:
        return column if column is None else float(column)
    except ValueError:
        return column


def time_column(path: Path, by_plain: Mapping[str, list[str]]) -> str | None:
    """The column of times: the first of the usual names that the file has."""
    spelling = next((name for name in TIMES if name in by_plain), None)
    return None if spelling is None else the_column(path, "time", by_plain, [spelling])


def match_names(
    path: Path, by_plain: Mapping[str, list[str]], named: Mapping[str, list[str]], found: dict[str, Any]
) -> None:
    """Adds to `found` the columns called by the names of numbers; one that is called exactly `signal.name` is taken."""
    for key, options in named.items():
        if key in found:
            continue
        column = key if key in by_plain.get(plain(key), []) else the_column(path, key, by_plain, options)
        if column is not None:
            found[key] = column


def match_places(path: Path, model: MultibodyModel, names: list[str], found: dict[str, Any]) -> None:
    """Adds to `found` the columns called by place, such as `tau3`, for the numbers that it has no column for."""
    labels, required = labels_of(model), required_labels(model)
    numbered = numbered_columns([name for name in names if name not in found.values()])
    open_places = {
        signal: {k: label for k, label in enumerate(labels[signal]) if f"{signal}.{label}" not in found}
        for signal in numbered
    }
    numbered = {signal: columns for signal, columns in numbered.items() if open_places[signal]}
    needed = {
        signal: {k for k, label in open_places[signal].items() if label in required[signal]} for signal in numbered
    }
    first = first_number(path, numbered, needed, {signal: len(labels[signal]) for signal in numbered})
    for signal, columns in numbered.items():
        for k, label in open_places[signal].items():
            same = columns.get(k + first, [])
            if len(same) > 1:
                raise several_columns(path, f"{signal}.{label}", same)
            if same:
                found[f"{signal}.{label}"] = same[0]


def numbered_columns(names: list[str]) -> Numbered:
    """Columns that are a signal's word and a number."""
    numbered: Numbered = {}
    for name in names:
        for signal, words in SIGNALS.items():
            match = re.fullmatch(f"(?:{'|'.join((signal, *words))})([0-9]{{1,4}})", plain(name))
            if match:
                numbered.setdefault(signal, {}).setdefault(int(match[1]), []).append(name)
    return numbered


def first_number(path: Path, numbered: Numbered, needed: dict[str, set[int]], sizes: dict[str, int]) -> int:
    """Whether the columns of a log count from 0 or from 1.

    A signal of n numbers with a column 0 counts from 0; without it, and with a column n, from 1. Where no signal has
    either, it is the one way to count in which nothing that is needed is missing.
    """
    told = {
        signal: 0 if 0 in columns else 1
        for signal, columns in numbered.items()
        if 0 in columns or sizes[signal] in columns
    }
    if len(set(told.values())) > 1:
        examples = {first: next(s for s in told if told[s] == first) for first in (0, 1)}
        raise ModelError(
            f"{path}: columns of {examples[0]} count from 0 ({shown(numbered[examples[0]])}), those of {examples[1]} "
            f"from 1 ({shown(numbered[examples[1]])}). Say which is which by columns={{'{examples[1]}.…': …}}, or "
            "name the columns after the joints."
        )
    if told or not numbered:
        return next(iter(told.values()), 0)
    fitting = [first for first in (0, 1) if all({k + first for k in needed[s]} <= set(numbered[s]) for s in numbered)]
    if len(fitting) == 1:
        return fitting[0]
    signal = next(iter(numbered))
    raise ModelError(
        f"{path}: the columns of {signal} ({shown(numbered[signal])}) tell neither by a 0 nor by a {sizes[signal]} "
        f"whether they count from 0 or from 1, and the model has {sizes[signal]} of them. Say which is which by "
        f"columns={{'{signal}.…': …}}, or name the columns after the joints."
    )


def shown(columns: Mapping[int, list[str]]) -> str:
    """The first columns in the order of their numbers."""
    names = [name for number in sorted(columns) for name in columns[number]]
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "")


def grouped_by_plain_name(names: list[str]) -> dict[str, list[str]]:
    """Columns by the letters and digits of their names."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(plain(name), []).append(name)
    return groups


def the_column(path: Path, key: str, by_plain: Mapping[str, list[str]], options: list[str]) -> str | None:
    """The only column with one of the spellings; None without one, `ModelError` if there are several."""
    columns = list(dict.fromkeys(name for option in options for name in by_plain.get(option, [])))
    if len(columns) > 1:
        raise several_columns(path, key, columns)
    return columns[0] if columns else None


def several_columns(path: Path, key: str, columns: list[str]) -> ModelError:
    """The error for columns that could all be the same number."""
    return ModelError(
        f"{path}: columns {' and '.join(repr(name) for name in columns)} could all be {key}; choose one by "
        f"columns={{'{key}': '{columns[0]}'}}."
    )


def require_different_columns(path: Path, found: Mapping[str, Any]) -> None:
    """Raises `ModelError` where names alone would make one column two numbers of a model."""
    keys: dict[str, str] = {}
    for key, column in found.items():
        if isinstance(column, str) and keys.setdefault(column, key) != key:
            raise ModelError(
                f"{path}: column '{column}' could be {keys[column]} and {key}; say which by columns={{'{key}': …}}."
            )


def spellings(signal: str, label: str) -> list[str]:
    """Names of columns that mean a signal of a coordinate, without anything but letters and digits."""
    words = (signal, *SIGNALS[signal])
    return [f(plain(word), plain(label)) for word in words for f in (lambda a, b: a + b, lambda a, b: b + a)]


def plain(name: str) -> str:
    """Letters and digits of a name, in lower case."""
    return "".join(c for c in name.lower() if c.isalnum())


def columns_hint(model: MultibodyModel, names: list[str]) -> str:
    """What the file has, and what names would be found."""
    labels = position_labels(model)
    return (
        f"The file has {', '.join(names[:10])}{', …' if len(names) > 10 else ''}. Names such as 'position.{labels[0]}' "
        f"or 'q0' are found; map others by columns={{'position.{labels[0]}': …}}."
    )
