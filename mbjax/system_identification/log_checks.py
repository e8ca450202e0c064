"""Checks of logs: what cannot be right is an error with file, column and row; what may be wrong is a warning."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from mbjax.errors import ModelError, ModelWarning
from mbjax.model import MultibodyModel

from .log import Log
from .system import velocity_labels

LARGE_ANGLE = 12.6  # rad, two turns
PAST_LIMIT = 0.05  # of the range, by which a position may pass its limits
PAST_SPEED = 2.0  # times a limit, which rates of noisy positions may pass
DEGREE = np.pi / 180.0
FEW = 0.5  # of the samples
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
            "what is between is interpolated, and is no data.",
            ModelWarning, stacklevel=3,
        )  # fmt: skip


def check_units(path: Path, model: MultibodyModel, log: Log, units: Mapping[str, str]) -> None:
    """Warns where positions look like degrees or like radians taken for degrees, or velocities are not their rates."""
    wide = [] if "deg" in units.values() else words_of_degrees(model, log)
    if wide:
        warnings.warn(
            f"{path}: position {'; '.join(wide)}. If it is in degrees, say units={{'position': 'deg'}}.",
            ModelWarning, stacklevel=3,
        )  # fmt: skip
    check_small_angles(path, model, log, units)
    check_rates(path, model, log, knows_degrees=bool(wide))


def turning_joints(model: MultibodyModel) -> list[Any]:
    """Joints whose position is an angle."""
    return [joint for joint in model.layout.joints if joint.kind == "revolute" and joint.num_positions]


def words_of_degrees(model: MultibodyModel, log: Log) -> list[str]:
    """What speaks for degrees, joint by joint: several turns, or limits that only degrees would hold."""
    q, v, p = np.asarray(log.q, float), np.asarray(log.v, float), model.parameters
    found = []
    for joint in turning_joints(model):
        least, most = (float(x) for x in (q[:, joint.q_start].min(), q[:, joint.q_start].max()))
        speed, far = float(np.abs(v[:, joint.v_start]).max()), max(-least, most)
        low, high = (float(x[joint.all_q_start]) for x in (p.position_lower_limits, p.position_upper_limits))
        fastest = float(p.velocity_upper_limits[joint.all_v_start])
        slack = PAST_LIMIT * (high - low)
        if far > LARGE_ANGLE:
            found.append(f"of '{joint.name}' reaches {far:g} rad, {far / (2 * np.pi):.0f} turns")
        elif (least < low - slack or most > high + slack) and low <= DEGREE * least and DEGREE * most <= high:
            found.append(
                f"of '{joint.name}' goes from {least:.3g} to {most:.3g}, past its limits {low:.3g} and {high:.3g} rad"
            )
        elif speed > PAST_SPEED * fastest and DEGREE * speed < fastest:
            found.append(f"of '{joint.name}' changes by up to {speed:.3g} rad/s, where its limit is {fastest:.3g}")
    return found


def check_small_angles(path: Path, model: MultibodyModel, log: Log, units: Mapping[str, str]) -> None:
    """Warns where positions in degrees are so small that they may be radians."""
    turning = [joint.q_start for joint in turning_joints(model)]
    if "deg" not in units.values() or not turning:
        return
    far = float(np.abs(np.asarray(log.q, float)[:, turning]).max())
    if far < DEGREE * 2.0 * np.pi:
        warnings.warn(
            f"{path}: positions reach {far / DEGREE:.3g} degrees at most. If they are in radians, give no unit.",
            ModelWarning, stacklevel=4,
        )  # fmt: skip


def check_rates(path: Path, model: MultibodyModel, log: Log, *, knows_degrees: bool) -> None:
    """Warns where velocities are not the rates of positions, and not again of positions known to be in degrees."""
    if model.num_positions != model.num_velocities:
        return
    rate = np.gradient(np.asarray(log.q, float), np.asarray(log.time, float), axis=0)
    v = np.asarray(log.v, float)
    for k, label in enumerate(velocity_labels(model)):
        size = float(rate[:, k] @ rate[:, k])
        if size * log.period < STILL**2:
            continue
        ratio = float(v[:, k] @ rate[:, k]) / size
        if 0.7 < ratio < 1.4 or (knows_degrees and 0.7 < ratio / DEGREE < 1.4):
            continue
        turned = 0.7 < ratio * DEGREE < 1.4 or 0.7 < ratio / DEGREE < 1.4
        what = "one is in degrees, the other in radians" if turned else "units, signs or columns do not fit"
        warnings.warn(
            f"{path}: velocity of '{label}' is {ratio:.3g} times the rate of its position; {what}.",
            ModelWarning, stacklevel=4,
        )  # fmt: skip


def check_what_is_left(path: Path, log: Log) -> None:
    """Warns where most samples are no data, as their derivatives or filters reach what is missing."""
    share = float(np.mean(np.any(np.asarray(log.weights) > 0.0, axis=1)))
    if share < FEW:
        warnings.warn(
            f"{path}: only {100.0 * share:.0f} % of the samples are data; the others are missing, or their velocities "
            "and accelerations reach what is. Log velocities too, or read it with period='recorded' without cutoff.",
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
