"""Checks of logs: what cannot be right is an error with file, column and row; what may be wrong is a warning."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from mbjax.errors import ModelError, ModelWarning
from mbjax.model import MultibodyModel

from .log import Log
from .system import velocity_labels

LARGE_ANGLE = 12.6  # rad, two turns
STILL = 1e-3  # rad or m, of a joint that does not move


def require_numbers(path: Path, column: str, values: Any, first: int = 0) -> Float[np.ndarray, " rows"]:
    """A column as finite numbers; raises `ModelError` with the row, counted from `first`, of what is none."""
    numbers = np.empty(len(values))
    for row, value in enumerate(values):
        try:
            numbers[row] = float(value)
        except (TypeError, ValueError):
            raise ModelError(
                f"{path}: column '{column}' has {value!r} in row {first + row}, which is no number; rows are counted "
                "from 0 below the names."
            ) from None
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        more = f", and in {bad.size - 1} more rows" if bad.size > 1 else ""
        raise ModelError(
            f"{path}: column '{column}' has {numbers[bad[0]]} in row {first + bad[0]}, counted from 0 below the "
            f"names{more}. Cut the log with start= and stop=, or repair it: nothing is filled in silently."
        )
    return numbers


def require_times(path: Path, column: str | None, time: Float[np.ndarray, " rows"]) -> None:
    """Raises `ModelError` unless times grow; warns of gaps."""
    if time.size < 8:
        raise ModelError(f"{path}: {time.size} rows are too few to identify anything; at least 8 are needed.")
    gaps = np.diff(time)
    back = np.flatnonzero(gaps <= 0.0)
    if back.size:
        row = int(back[0]) + 1
        what = "repeats" if gaps[row - 1] == 0.0 else "goes back to"
        raise ModelError(
            f"{path}: column '{column}' {what} {time[row]:g} s in row {row}, after {time[row - 1]:g} s: times must "
            "grow. Sort the log, or choose another column of times by columns={'time': …}."
        )
    median = float(np.median(gaps))
    if gaps.max() > 5.0 * median:
        row = int(np.argmax(gaps))
        warnings.warn(
            f"{path}: {gaps[row]:g} s are missing between rows {row} and {row + 1}, where {median:g} s are usual; "
            "what is between is interpolated.",
            ModelWarning, stacklevel=3,
        )  # fmt: skip


def check_units(path: Path, model: MultibodyModel, log: Log) -> None:
    """Warns where positions look like degrees, or velocities are not the rates of positions."""
    labels, q = velocity_labels(model), np.asarray(log.q, float)
    large = []
    for joint in model.layout.joints:
        if joint.kind != "revolute" or joint.num_positions == 0:
            continue
        largest = float(np.abs(q[:, joint.q_start]).max())
        if largest > LARGE_ANGLE:
            large.append(f"of '{joint.name}' reaches {largest:g} rad, {largest / (2 * np.pi):.0f} turns")
    if large:
        warnings.warn(
            f"{path}: position {'; '.join(large)}. If it is in degrees, say units={{'position': 'deg'}}.",
            ModelWarning, stacklevel=3,
        )  # fmt: skip
    if model.num_positions != model.num_velocities:
        return
    rate = np.gradient(q, log.period, axis=0)
    v = np.asarray(log.v, float)
    for k, label in enumerate(labels):
        size = float(rate[:, k] @ rate[:, k])
        if size * log.period < STILL**2:
            continue
        ratio = float(v[:, k] @ rate[:, k]) / size
        if not 0.7 < ratio < 1.4:
            warnings.warn(
                f"{path}: velocity of '{label}' is {ratio:.3g} times the rate of its position; units, signs or columns "
                "do not fit.",
                ModelWarning, stacklevel=3,
            )  # fmt: skip


def check_excitation(path: Path, log: Log) -> None:
    """Warns of a log in which nothing moves; raises nothing, for a still log shows weights."""
    moved = np.ptp(np.asarray(log.q, float), axis=0)
    if np.all(moved < STILL):
        warnings.warn(
            f"{path}: no position moves by more than {STILL:g} rad or m, so that only weights and springs can be seen. "
            "si.exciting_motion finds a motion that shows more.",
            ModelWarning, stacklevel=3,
        )  # fmt: skip
