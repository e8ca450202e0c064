"""Reports numbers that no robot has, once compiled: an MJCF file that holds one most likely has it wrong."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mbjax.model import KEPT

from ..notes.load_notes import LoadNotes
from ..records.open_ends import NONE_IN_MUJOCO
from ..urdf.bounds import (
    COORDINATE,
    DISSIPATION,
    FRICTION,
    GAIN,
    GEAR,
    LENGTH,
    LIMIT,
    MASS,
    MOMENT,
    ROTOR,
    SIZE,
    STIFFNESS,
    WARNING,
    Bound,
    complaint,
)
from ..xml.tree import XmlElement
from .compiled import Compiled


class Field(NamedTuple):
    """An array of the compiled model with a row for each element of a kind, and what is believed of its numbers."""

    kind: str
    name: str
    bound: Bound
    what: str
    columns: slice = slice(None)  # those that are read


FIELDS = (
    Field("body", "body_mass", MASS, "mass"),
    Field("body", "body_inertia", MOMENT, "moment of inertia"),
    Field("body", "body_pos", LENGTH, "position"),
    Field("body", "body_ipos", LENGTH, "centre of mass"),
    Field("joint", "jnt_pos", LENGTH, "position"),
    Field("joint", "jnt_stiffness", STIFFNESS._replace(unit="N/m or N m/rad"), "stiffness"),
    Field("joint", "jnt_range", LIMIT._replace(none=-NONE_IN_MUJOCO), "range", slice(1)),
    Field("joint", "jnt_range", LIMIT._replace(none=NONE_IN_MUJOCO), "range", slice(1, 2)),
    Field("joint", "dof_damping", DISSIPATION, "damping"),
    Field("joint", "dof_armature", ROTOR, "armature"),
    Field("joint", "dof_frictionloss", DISSIPATION, "frictionloss"),
    Field("geom", "geom_pos", LENGTH, "position"),
    Field("geom", "geom_size", SIZE, "size"),
    Field("geom", "geom_friction", FRICTION, "friction", slice(1)),
    Field("site", "site_pos", LENGTH, "position"),
    Field("actuator", "actuator_gear", GEAR, "gear"),
    Field("actuator", "actuator_gainprm", GAIN, "gain", slice(3)),
    Field("actuator", "actuator_biasprm", GAIN, "bias", slice(3)),
    Field("actuator", "actuator_forcerange", LIMIT, "force range"),
    Field("keyframe", "key_qpos", COORDINATE, "position"),
)


def report_numbers_no_robot_has(compiled: Compiled, notes: LoadNotes) -> None:
    """Adds a report entry per element and field with such a number, and one warning for all; the numbers stay."""
    for field in FIELDS:
        for element, name, numbers in rows_of(compiled, field):
            found = ((value, complaint(value, field.bound)) for value in numbers)
            value, excess = next(((value, text) for value, text in found if text), (0.0, ""))
            if not excess:
                continue
            where = f"{field.what} {value:g}"
            label = f"{field.kind} '{name}'"
            notes.add(KEPT, label, f"{where}: {excess}; taken as it stands", element.place)
            if not field.bound.is_limit:
                notes.warn(WARNING, f"{label} (line {element.line}): {where}")


def rows_of(compiled: Compiled, field: Field) -> Iterator[tuple[XmlElement, str, list[float]]]:
    """Element, name and numbers of each row; the world's body, planes and ranges that are off have none."""
    m: Any = compiled.m
    array = np.asarray(getattr(m, field.name), float)
    for row, numbers in enumerate(array):
        index = int(m.dof_jntid[row]) if field.name.startswith("dof_") else row
        if is_read(compiled.mujoco, m, field.name, index):
            yield (
                compiled.element(field.kind, index),
                compiled.names[field.kind][index],
                numbers.ravel()[field.columns].tolist(),
            )


def is_read(mujoco: Any, m: Any, field: str, index: int) -> bool:
    """Whether a row of a field says anything."""
    if field.startswith("body_"):
        return index > 0
    if field == "geom_size":  # a plane's is how far it is drawn, a mesh's follows from its file
        kinds = mujoco.mjtGeom
        return m.geom_type[index] not in (int(kinds.mjGEOM_PLANE), int(kinds.mjGEOM_MESH), int(kinds.mjGEOM_HFIELD))
    return field != "jnt_range" or bool(m.jnt_limited[index])
