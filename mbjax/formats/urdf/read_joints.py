"""Reads <joint> and <drake:joint> of a URDF."""

import math
from typing import Any

import numpy as np

from mbjax import joints
from mbjax.model import REPAIRED, USED
from mbjax.spatial import RigidTransform

from ..notes.load_notes import LoadNotes
from ..records.mimic_records import mimic_record
from ..records.open_ends import NONE_IN_SDF, with_open_ends
from ..records.robot_records import WORLD, JointRecord, MimicRecord
from ..xml.tree import XmlElement
from ..xml.values import (
    did_you_mean,
    number,
    numbers,
    origin_pose,
    required_number,
    required_text,
    shortest_rotation_from_z,
)

STANDARD_TYPES: dict[str, type[joints.AbstractJoint]] = {
    "revolute": joints.RevoluteJoint,
    "continuous": joints.RevoluteJoint,
    "prismatic": joints.PrismaticJoint,
    "fixed": joints.WeldJoint,
    "floating": joints.QuaternionFloatingJoint,
    "planar": joints.PlanarJoint,
}
DRAKE_TYPES: dict[str, type[joints.AbstractJoint]] = {
    "ball": joints.BallRpyJoint,
    "universal": joints.UniversalJoint,
    "screw": joints.ScrewJoint,
    "planar": joints.PlanarJoint,
}
LIMITED_TYPES = ("revolute", "continuous", "prismatic", "screw")
DAMPED_TYPES = (*LIMITED_TYPES, "planar", "ball", "universal")
AXIS_TYPES = (*LIMITED_TYPES, "planar")


def read_joint(element: XmlElement, notes: LoadNotes) -> JointRecord:
    """Reads a joint; its frame F stands at <origin> in the parent link."""
    name = required_text(element, "name")
    type_name, joint_class = _joint_type(element, name)
    options: dict[str, Any] = {"X_PF": origin_pose(element)}
    record = JointRecord(
        name,
        element.line,
        element.place,
        joint_class,
        _link(element, "parent"),
        _link(element, "child"),
        options,
    )
    if record.child == WORLD:
        raise element.error(
            f"{element.label}: the world cannot be a child. Make it the parent, and turn origin and axis around."
        )
    if record.parent == record.child:
        raise element.error(f"{element.label}: parent and child are the same link '{record.child}'.")
    if type_name in AXIS_TYPES:
        axis = _axis(element, notes)
        if joint_class is joints.PlanarJoint:
            options.update(_plane_frames(options["X_PF"], axis))
        else:
            options["axis"] = axis
    if type_name in LIMITED_TYPES:
        record.effort_limit = _read_limits(element, type_name, options, notes)
    if type_name in DAMPED_TYPES:
        _read_dynamics(element, joint_class.num_velocities, options)
    if type_name == "screw":
        options["screw_pitch"] = _screw_pitch(element)
    return record


def read_mimic(
    element: XmlElement, by_name: dict[str, JointRecord], notes: LoadNotes, choice: str
) -> MimicRecord | None:
    """Reads a joint's mimic relation; None where there is none to keep. `choice` is the parser's option `mimic`."""
    mimic = element.only("mimic")
    if mimic is None:
        return None
    name, leader = required_text(element, "name"), required_text(mimic, "joint")
    multiplier, offset = number(mimic, "multiplier", 1.0), number(mimic, "offset", 0.0)
    return mimic_record(mimic, name, leader, (multiplier, offset), by_name, notes, choice)


def ignored_parts(element: XmlElement) -> list[tuple[XmlElement, str]]:
    """Children of a joint that have no meaning for its type, with the reason."""
    type_name = element.attributes.get("type", "").strip()
    meanings = (("axis", AXIS_TYPES), ("limit", LIMITED_TYPES), ("dynamics", DAMPED_TYPES))
    return [
        (child, f"has no meaning on a {type_name} joint")
        for tag, types in meanings
        if type_name not in types
        for child in element.all(tag)
    ]


def _joint_type(element: XmlElement, name: str) -> tuple[str, type[joints.AbstractJoint]]:
    type_name = required_text(element, "type")
    known, other = (DRAKE_TYPES, STANDARD_TYPES) if element.tag == "drake:joint" else (STANDARD_TYPES, DRAKE_TYPES)
    if type_name in known:
        return type_name, known[type_name]
    if type_name in other:
        right_tag = "joint" if element.tag == "drake:joint" else "drake:joint"
        raise element.error(
            f"joint '{name}': type '{type_name}' belongs to <{right_tag}>; write <{right_tag} "
            f'name="{name}" type="{type_name}">.'
        )
    raise element.error(
        f"joint '{name}' has unknown type '{type_name}'. " + did_you_mean(type_name, {**STANDARD_TYPES, **DRAKE_TYPES})
    )


def _link(element: XmlElement, tag: str) -> str:
    child = element.only(tag)
    if child is None:
        raise element.error(f'{element.label} has no <{tag}>; add <{tag} link="…"/>.')
    return required_text(child, "link")


def _axis(element: XmlElement, notes: LoadNotes) -> np.ndarray:
    axis_element = element.only("axis")
    if axis_element is None:
        return np.array([1.0, 0.0, 0.0])
    axis = numbers(axis_element, "xyz", 3)
    if axis is None:
        notes.add(REPAIRED, element.label, "<axis> without xyz: 1 0 0 taken", axis_element.place)
        return np.array([1.0, 0.0, 0.0])
    largest = float(np.abs(axis).max())
    if largest < 1e-8:
        raise axis_element.error(
            f'{element.label}: the axis xyz="{axis_element.attributes["xyz"]}" has no direction; give '
            'a vector other than zero, like "0 0 1".'
        )
    return axis / largest / np.linalg.norm(axis / largest)


def _plane_frames(X_PJ: RigidTransform, normal: np.ndarray) -> dict[str, RigidTransform]:
    """Frames F and M with z along the plane's normal, turned from J by the shortest rotation, as in Drake."""
    zero = np.zeros(3)
    R_JF = shortest_rotation_from_z(normal)
    return {
        "X_PF": RigidTransform(np.asarray(X_PJ.rotation) @ R_JF, X_PJ.translation),
        "X_BM": RigidTransform(R_JF, zero),
    }


def _read_limits(element: XmlElement, type_name: str, options: dict[str, Any], notes: LoadNotes) -> float:
    """Reads position, velocity and acceleration limits into `options`; returns the effort limit."""
    limit = element.only("limit")
    if limit is None:
        if type_name in ("revolute", "prismatic"):
            notes.add(USED, element.label, "no <limit>: unbounded, as in Drake", element.place)
        return math.inf
    lower = number(limit, "lower", -math.inf, allow_infinite=True)
    upper = number(limit, "upper", math.inf, allow_infinite=True)
    if type_name == "continuous" and lower == upper:
        message = f"a continuous joint with lower = upper = {lower:g} would be locked: taken as unbounded"
        notes.add(REPAIRED, element.label, message, limit.place)
        lower, upper = -math.inf, math.inf
    if lower > upper:
        raise limit.error(
            f'{element.label}: lower="{limit.attributes["lower"]}" is above '
            f'upper="{limit.attributes["upper"]}"; swap the two.'
        )
    velocity = number(limit, "velocity", math.inf, lowest=0.0, allow_infinite=True)
    acceleration = number(limit, "acceleration", math.inf, lowest=0.0, allow_infinite=True)
    acceleration = number(limit, "drake:acceleration", acceleration, lowest=0.0, allow_infinite=True)
    options["position_limits"] = with_open_ends((lower, upper), NONE_IN_SDF, element.label, limit.place, notes)
    options["velocity_limits"] = (-velocity, velocity)
    options["acceleration_limits"] = (-acceleration, acceleration)
    return number(limit, "effort", math.inf, allow_infinite=True)


def _read_dynamics(element: XmlElement, num_velocities: int, options: dict[str, Any]) -> None:
    """Reads damping and friction into `options`: one number for all velocities, or one each."""
    dynamics = element.only("dynamics")
    if dynamics is None:
        return
    for attribute in ("damping", "friction"):
        values = numbers(dynamics, attribute, tuple({1, num_velocities}), np.zeros(1))
        if np.any(values < 0.0):
            raise dynamics.error(
                f'{element.label}: {attribute}="{dynamics.attributes[attribute]}" is negative, which would '
                "create energy; give a number >= 0."
            )
        options[attribute] = values


def _screw_pitch(element: XmlElement) -> float:
    pitch = element.only("drake:screw_thread_pitch")
    if pitch is None:
        raise element.error(
            f'{element.label}: a screw joint needs <drake:screw_thread_pitch value="…"/>, in m per turn.'
        )
    return required_number(pitch, "value")
