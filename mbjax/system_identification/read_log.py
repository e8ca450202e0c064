"""Reads a log from a CSV, npz, Parquet or MCAP file: columns by name, units, even times, filters, checks."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Bool, Float

from mbjax.errors import ModelError, ModelWarning
from mbjax.model import MultibodyModel, near_matches

from .log import LONG_GAP, Log, make_log
from .log_checks import check_excitation, check_units, check_what_is_left, require_numbers, require_times
from .log_columns import SIGNALS, columns_hint, labels_of, match_columns, required_labels
from .log_files import read_table
from .log_units import quantities_of, require_units_with_effect, unit_factor
from .signals import resample, resample_positions

ON_TIME = 0.05  # of a period, by which a sample may be off the grid and still be itself


def read_log(
    path: str | Path,
    model: MultibodyModel,
    *,
    columns: Mapping[str, str | float | None] | None = None,
    units: Mapping[str, str] | None = None,
    period: float | Literal["recorded"] | None = None,
    cutoff: float | Mapping[str, float] | None = None,
    time_offsets: Mapping[str, float] | None = None,
    start: float | None = None,
    stop: float | None = None,
) -> Log:
    """The log in a file, for this model.

    A column belongs to a signal (`position`, `velocity`, `acceleration`, `effort`, `external`, `actuation`) of a
    coordinate or actuator by its name: `position.elbow`, `q_elbow`, `elbow_pos`, `elbow/position`, or `tau3` by its
    place, counted from 0 or from 1 as the columns of the file show. `external` are generalized forces of measured
    contacts. `columns` maps `"effort.elbow"` or `"time"` to a column of the file where names say nothing, to None where
    there is none, or to a number, such as the position in rad or m of a joint that nobody moved.
    `units` are by signal or column: `{"position": "deg", "time": "ms"}`. One of a signal counts for the coordinates
    that can be in it: degrees for angles, with positions of prismatic joints still in m. Positions must be there, and
    if there are efforts, those of every joint with an actuator, or of every joint if none has one; missing velocities
    and accelerations are differentiated. `time_offsets`, in s by signal, are added to that signal's times. Uneven times
    are resampled, to `period` if given, and samples that are missing there are interpolated, but are no data: their
    weights are zero, as are those of samples whose derivatives or filters they reach. `period="recorded"` leaves the
    samples and their times as they are, for fits by `Torques`. `cutoff` in Hz is that of `make_log`: measured and
    predicted efforts go through one filter, positions through one of five times the cutoff. `start` and `stop` in s
    choose a part. Raises `ModelError` with file, column and row for what cannot be right, and warns of the rest.
    """
    if not isinstance(path, str | Path) or not isinstance(model, MultibodyModel):
        raise ModelError(
            f"read_log: the arguments are the log's path and the model, got {type(path).__name__} and "
            f"{type(model).__name__}."
        )
    path = Path(path)
    table = read_table(path)
    units, offsets = dict(units or {}), dict(time_offsets or {})
    columns = dict(columns or {})
    mapping = match_columns(path, model, list(table), columns)
    time = numbers_of(path, table, mapping["time"], unit_factor(path, units, "time", column=mapping["time"]))
    require_times(path, mapping["time"], time)
    require_known_signals(path, "units", units, {"time", *SIGNALS, *table})
    require_units_with_effect(path, model, units)
    require_known_signals(path, "time_offsets", offsets, {*SIGNALS})
    first, last = rows_between(path, time, start, stop)
    time, table = time[first:last], {name: column[first:last] for name, column in table.items()}
    signals: dict[str, np.ndarray] = {}
    required, quantities = required_labels(model), quantities_of(model)
    for signal, labels in labels_of(model).items():
        found = {label: mapping[f"{signal}.{label}"] for label in labels}
        if all(column is None for column in found.values()):
            continue
        for label in labels:
            if found[label] is None:
                require_left_out(path, model, table, f"{signal}.{label}", label in required[signal], columns)
        signals[signal] = stack(path, table, signal, found, units, quantities[signal], first)
    if "position" not in signals:
        raise ModelError(f"{path}: no columns of positions were found. {columns_hint(model, list(table))}")
    if not {"effort", "actuation"} & set(signals):
        warnings.warn(f"{path}: no efforts or actuation were found; they count as zero.", ModelWarning, stacklevel=2)
        signals["effort"] = np.zeros((len(time), model.num_velocities))
    grid = time if period == "recorded" else even_times(time, period, start, stop, offsets)
    if len(grid) < 8:
        raise ModelError(f"{path}: only {len(grid)} samples, from {time[0]:g} s to {time[-1]:g} s, are too few.")
    if period == "recorded" and any(offsets.values()):
        raise ModelError(f"{path}: time_offsets shift signals between samples, so they need even times: give a period.")
    times = {name: time + offsets.get(name, 0.0) for name in signals}
    even = {name: resample(times[name], x, grid) for name, x in signals.items() if name != "position"}
    even["position"] = resample_positions(model, times["position"], signals["position"], grid)
    recorded = np.all([is_recorded(times[name], grid) for name in signals], axis=0)
    log = make_log(
        model, grid, even["position"], even.get("velocity"), even.get("acceleration"), effort=even.get("effort"),
        actuation=even.get("actuation"), external=even.get("external"), recorded=recorded, cutoff=cutoff,
        name=path.name,
    )  # fmt: skip
    check_what_is_left(path, log)
    check_units(path, model, log, units)
    check_excitation(path, log)
    return log


def numbers_of(
    path: Path, table: Mapping[str, Any], column: str | None, factor: float, first: int = 0
) -> Float[np.ndarray, " rows"]:
    """A column as finite numbers, in SI units; `first` is the row of the file that it starts at."""
    assert column is not None
    return factor * require_numbers(path, column, table[column], first)


def require_known_signals(path: Path, option: str, given: Mapping[str, Any], known: set[str]) -> None:
    """Raises `ModelError` for what would be ignored in silence."""
    for name in given:
        if name not in known:
            raise ModelError(f"{path}: {option} has '{name}', which is no signal. {near_matches(name, sorted(known))}")


def rows_between(path: Path, time: Float[np.ndarray, " rows"], start: float | None, stop: float | None) -> tuple:
    """The first row from `start` and the row after the last until `stop`."""
    first = 0 if start is None else int(np.searchsorted(time, start - 1e-9))
    last = len(time) if stop is None else int(np.searchsorted(time, stop + 1e-9))
    if last - first < 8:
        raise ModelError(
            f"{path}: only {max(0, last - first)} samples, of those from {time[0]:g} s to {time[-1]:g} s, are too few."
        )
    return first, last


def require_left_out(
    path: Path, model: MultibodyModel, table: Mapping[str, Any], key: str, is_required: bool, columns: Mapping[str, Any]
) -> None:
    """Raises `ModelError` for a number that the log lacks, unless it is zero where it was not measured.

    That is a contact force, an effort where no actuator is, and an effort that the caller says is not there.
    """
    signal = key.partition(".")[0]
    if signal == "external" or (signal in ("effort", "actuation") and (not is_required or key in columns)):
        return
    way_out = {
        "position": "to a number if the joint stood still",
        "effort": "to None if none acts there or it was not measured, which counts as zero",
        "actuation": "to None if it was zero",
    }.get(signal, "and the others, or map all others to None to have them differentiated")
    raise ModelError(
        f"{path}: there is no column for {key}. {near_matches(key, list(table))} Map one by "
        f"columns={{'{key}': …}}, {way_out}."
    )


def stack(
    path: Path,
    table: Mapping[str, Any],
    signal: str,
    found: Mapping[str, str | float | None],
    units: dict[str, str],
    quantities: Mapping[str, str],
    first: int,
) -> Float[np.ndarray, "rows n"]:
    """Columns of one signal side by side; zeros where there is none."""
    rows = len(next(iter(table.values())))
    parts = []
    for label, column in found.items():
        if isinstance(column, str):
            factor = unit_factor(path, units, signal, label, column, quantities[label])
            parts.append(numbers_of(path, table, column, factor, first))
        else:
            parts.append(np.full(rows, column or 0.0))
    return np.stack(parts, 1)


def even_times(
    time: np.ndarray, period: Any, start: float | None, stop: float | None, offsets: Mapping[str, float]
) -> Float[np.ndarray, " steps"]:
    """Even times inside the log, by its median period if none is given."""
    step = float(np.median(np.diff(time))) if period is None else period
    late, early = max([0.0, *offsets.values()]), min([0.0, *offsets.values()])
    first = max(time[0] + late, -np.inf if start is None else start)
    last = min(time[-1] + early, np.inf if stop is None else stop)
    count = int(np.floor((last - first) / step + 1e-6)) + 1
    return np.minimum(first + step * np.arange(max(count, 0)), last)  # the last may be past it by rounding


def is_recorded(time: Float[np.ndarray, " rows"], at: Float[np.ndarray, " steps"]) -> Bool[np.ndarray, " steps"]:
    """Whether each new time stands for a recorded one: it is one, or nothing is missing between its neighbours."""
    usual, step = (float(np.median(np.diff(x))) for x in (time, at))
    after = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    gap = time[after] - time[after - 1]
    distance = np.minimum(np.abs(at - time[after]), np.abs(at - time[after - 1]))
    if step < 0.75 * usual:  # finer times are no more data
        return distance <= 0.5 * step
    return (gap <= LONG_GAP * usual) | (distance <= ON_TIME * usual)
