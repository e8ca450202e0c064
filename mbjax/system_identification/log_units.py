"""Units of a log's columns: one of a signal counts for the coordinates that it can be of, one of a column for that."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel

from .log_checks import DEGREE
from .log_columns import labels_of

ANGLE, LENGTH, NUMBER = "an angle", "a length", "a number without unit"
UNITS_OF_EFFORT = {"N m": 1.0, "Nm": 1.0, "N": 1.0, "mN m": 1e-3, "A": 1.0, "mA": 1e-3}
UNITS = {
    "time": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9},
    "position": {"rad": 1.0, "deg": DEGREE, "m": 1.0, "mm": 1e-3},
    "velocity": {"rad/s": 1.0, "deg/s": DEGREE, "rpm": 2.0 * np.pi / 60.0, "m/s": 1.0, "mm/s": 1e-3},
    "acceleration": {"rad/s2": 1.0, "deg/s2": DEGREE, "m/s2": 1.0},
    "effort": UNITS_OF_EFFORT,
    "external": UNITS_OF_EFFORT,
    "actuation": UNITS_OF_EFFORT,
}
OF_ONE_QUANTITY = {  # units that change numbers; of other coordinates they are none
    "deg": ANGLE, "deg/s": ANGLE, "rpm": ANGLE, "deg/s2": ANGLE, "mN m": ANGLE, "mm": LENGTH, "mm/s": LENGTH,
}  # fmt: skip


def quantities_of(model: MultibodyModel) -> dict[str, dict[str, str]]:
    """By signal and label, what a coordinate is, or what a force acts along: an angle, a length, or a mere number."""
    along_q, along_v = [NUMBER] * model.num_positions, [NUMBER] * model.num_velocities
    for joint in model.layout.joints:
        kind = JOINT_KINDS[joint.kind]
        if not joint.num_velocities:
            continue
        of_v = [ANGLE if is_angular else LENGTH for is_angular in kind.angular_velocities]
        of_q = [*[NUMBER] * 4, *of_v[3:]] if kind.has_quaternion else of_v
        along_v[joint.v_start : joint.v_start + len(of_v)] = of_v
        along_q[joint.q_start : joint.q_start + len(of_q)] = of_q
    driven = [along_v[i] for i in model.layout.velocities_of_actuators]
    found = {}
    for signal, labels in labels_of(model).items():
        quantities = {"position": along_q, "actuation": driven}.get(signal, along_v)
        found[signal] = dict(zip(labels, quantities, strict=True))
    return found


def unit_factor(
    path: Path, units: Mapping[str, str], signal: str, label: str = "", column: str = "", quantity: str = NUMBER
) -> float:
    """Factor of a column's unit to SI; 1 where none is given, or that of the signal is of another quantity.

    Raises `ModelError` for what is no unit of the signal, or of the column that it is given for.
    """
    unit, known = units.get(column, units.get(signal, "")), UNITS[signal]
    if unit and unit not in known:
        *others, last = known
        raise ModelError(f"{path}: '{unit}' is no unit of {signal}; give {', '.join(others)} or {last}.")
    if OF_ONE_QUANTITY.get(unit, quantity) == quantity:
        return known.get(unit, 1.0)
    if column in units:
        along = "" if signal == "position" else "along "
        raise ModelError(
            f"{path}: column '{column}' is {signal} of '{label}', {along}{quantity}, for which '{unit}' is no unit."
        )
    return 1.0


def require_units_with_effect(path: Path, model: MultibodyModel, units: Mapping[str, str]) -> None:
    """Raises `ModelError` for a unit of a signal that none of its coordinates can be in."""
    for signal, quantities in quantities_of(model).items():
        wanted = OF_ONE_QUANTITY.get(units.get(signal, ""))
        if wanted is not None and wanted not in quantities.values():
            along = "is" if signal == "position" else "is along"
            raise ModelError(
                f"{path}: units has '{units[signal]}' for {signal}, but none of the model's {along} {wanted}."
            )
