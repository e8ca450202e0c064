"""Constraints and force elements of a model as records, with names instead of indices."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mbjax.forces import LinearBushingRollPitchYaw, LinearSpringDamper, PrismaticSpring, RevoluteSpring
from mbjax.model import (
    AbstractConstraint,
    BallConstraint,
    CouplerConstraint,
    DistanceConstraint,
    MultibodyModel,
    WeldConstraint,
)
from mbjax.model.constraint_records.common import STABILIZATION_TIME

from ..notes.write_notes import WriteNotes
from .names import Names
from .numbers import pose_of_quaternion
from .robot_records import ConstraintRecord, ForceElementRecord, JointRecord, RobotRecord
from .shape_records import PLACE

KINDS: dict[type[AbstractConstraint], str] = {
    BallConstraint: "ball",
    WeldConstraint: "weld",
    DistanceConstraint: "distance",
    CouplerConstraint: "coupler",
}
BUSHING_NUMBERS = tuple(f"{kind}_{what}_constants" for kind in ("torque", "force") for what in ("stiffness", "damping"))


def constraint_records(
    model: MultibodyModel, names: Names, notes: WriteNotes
) -> Iterator[tuple[int, ConstraintRecord]]:
    """Each active constraint with the model instance it belongs to, that of its second body or first joint."""
    for constraint in model.constraints:
        kind = KINDS.get(type(constraint))
        if float(constraint.active) == 0.0:
            notes.ignored(constraint.label, "it is not active; the file is written without it")
            continue
        if kind is None:
            notes.unsupported(constraint.label, f"no robot file has constraints of class {type(constraint).__name__}")
            continue
        if float(constraint.stabilization_time) != float(np.asarray(STABILIZATION_TIME, model.dtype)) or np.any(
            np.asarray(constraint.v_plus) != 0.0
        ):
            notes.ignored(constraint.label, "its stabilization_time and v_plus are numbers that no robot file has")
        instance, options = constraint_options(model, names, constraint)
        yield instance, ConstraintRecord(str(constraint.name), 0, PLACE, kind, options)


def constraint_options(model: MultibodyModel, names: Names, constraint: Any) -> tuple[int, dict[str, Any]]:
    """The model instance and the arguments of the plant's method."""
    layout = model.layout
    if isinstance(constraint, CouplerConstraint):
        instance = layout.joints[constraint.joint0].model_instance
        joints = {key: names.seen_from(instance, "joint", getattr(constraint, key)) for key in ("joint0", "joint1")}
        return instance, {**joints, **{key: float(getattr(constraint, key)) for key in ("gear_ratio", "offset")}}
    instance = max(layout.bodies[b].model_instance for b in (constraint.body_A, constraint.body_B))
    bodies = {key: names.seen_from(instance, "body", getattr(constraint, key)) for key in ("body_A", "body_B")}
    if isinstance(constraint, WeldConstraint):
        X_AP = pose_of_quaternion(constraint.quaternion_AP, constraint.p_AP)
        X_BQ = pose_of_quaternion(constraint.quaternion_BQ, constraint.p_BQ)
        return instance, {**bodies, "X_AP": X_AP, "X_BQ": X_BQ}
    points = {key: np.asarray(getattr(constraint, key), float) for key in ("p_AP", "p_BQ")}
    if isinstance(constraint, BallConstraint):
        return instance, {**bodies, **points}
    numbers = {key: float(getattr(constraint, key)) for key in ("distance", "stiffness", "damping")}
    return instance, {**bodies, **points, **numbers}


def force_element_records(
    model: MultibodyModel, names: Names, notes: WriteNotes
) -> Iterator[tuple[int, ForceElementRecord]]:
    """Each force element of a class that files have, with its model instance; others are unsupported."""
    layout = model.layout
    for index, element in enumerate(model.force_elements):
        cls, options = type(element), dict[str, Any]()
        match element:
            case RevoluteSpring() | PrismaticSpring():
                joint = layout.joints[element.joint]
                instance = joint.model_instance
                nominal = "nominal_angle" if cls is RevoluteSpring else "nominal_position"
                options = {key: float(getattr(element, key)) for key in (nominal, "stiffness")}
                options = {"joint": names.local("joint", joint.index), **options}
            case LinearSpringDamper():
                instance = max(layout.bodies[b].model_instance for b in (element.body_A, element.body_B))
                options = {b: names.seen_from(instance, "body", getattr(element, b)) for b in ("body_A", "body_B")}
                options |= {p: np.asarray(getattr(element, p), float) for p in ("p_AP", "p_BQ")}
                options |= {key: float(getattr(element, key)) for key in ("free_length", "stiffness", "damping")}
            case LinearBushingRollPitchYaw():
                frames = layout.frames[element.frame_A], layout.frames[element.frame_C]
                instance = max(frame.model_instance for frame in frames)
                options |= {key: np.asarray(getattr(element, key), float) for key in BUSHING_NUMBERS}
                for end, frame in zip("AC", frames, strict=True):
                    kind, place = ("body", frame.body) if frame.is_body_frame else ("frame", frame.index)
                    options[f"frame_{end}"] = names.seen_from(instance, kind, place)
            case _:
                notes.unsupported(f"force element {index}", f"no robot file has elements of class {cls.__name__}")
                continue
        yield instance, ForceElementRecord(f"force_{index}", 0, PLACE, cls, options)


def joint_spring_of(joint: JointRecord, robot: RobotRecord) -> tuple[float, float] | None:
    """Nominal position and stiffness of all springs in a joint together; None where it has none."""
    springs: list[tuple[float, float]] = [
        (
            r.options["nominal_angle" if r.element_class is RevoluteSpring else "nominal_position"],
            r.options["stiffness"],
        )
        for r in robot.force_elements
        if r.options.get("joint") == joint.name
    ]
    stiffness = sum(k for _, k in springs)
    if not stiffness:
        return None
    nominal = springs[0][0] if len(springs) == 1 else sum(k * q for q, k in springs) / stiffness
    return float(nominal), float(stiffness)
