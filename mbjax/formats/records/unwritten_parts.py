"""What several formats do not hold, in the same words for all of them."""

from typing import Any

import numpy as np

from mbjax.geometry import ProximityProperties
from mbjax.joints import WeldJoint
from mbjax.model import MultibodyModel

from ..notes.write_notes import WriteNotes
from ..urdf.read_contact import PROXIMITY_TAGS
from ..urdf.read_hydroelastic import hydroelastic_tags
from .model_records import ModelRecords
from .numbers import number_text, numbers_text
from .robot_records import JointRecord, RobotRecord

EARTH = (0.0, 0.0, -9.81)


def joint_label(joint: JointRecord) -> str:
    return f"joint '{joint.name}'"


def list_time_step(records: ModelRecords, notes: WriteNotes) -> None:
    """The step of a discrete model, and the settings of contact."""
    if records.time_step:
        step = number_text(records.time_step)
        notes.ignored("time step", f"{step} s is not in the file; a model steps by load(…, time_step={step})")
    if records.has_contact:
        contact = records.model.layout.contact
        settings = f"contact_model='{contact.contact_model}', approximation '{contact.approximation}'"
        notes.ignored("contact settings", f"{settings} and tolerances are options of load and MultibodyPlant")


def list_keyframes(robot: RobotRecord, notes: WriteNotes) -> None:
    for keyframe in robot.keyframes:
        notes.ignored(f"keyframe '{keyframe.name}'", f"{notes.format_name} has no named states")


def list_default_positions(joint: JointRecord, notes: WriteNotes) -> None:
    """Default positions other than those that a joint has by itself."""
    q = joint.options.get("default_positions")
    if q is not None and np.any(np.asarray(q) != joint.joint_class.zero_positions):
        what = f"default positions {numbers_text(q)} are not in the file; use mbjax.set_joint_default_positions"
        notes.ignored(joint_label(joint), what)


def symmetric_limit(joint: JointRecord, what: str, notes: WriteNotes) -> float | None:
    """The limit of a joint's rate or its derivative in both directions; None where there is none."""
    lower, upper = (np.asarray(x, float) for x in joint.options[f"{what}_limits"])
    if np.any(lower != -upper):
        text = f"{what} limits {numbers_text(lower)} to {numbers_text(upper)}: the file has the same both ways"
        notes.ignored(joint_label(joint), f"{text}, here the larger; nothing enforces them")
    limit = float(np.max(np.maximum(-lower, upper)))
    return limit if np.isfinite(limit) else None


def list_limits_without_place(joint: JointRecord, notes: WriteNotes, kinds: tuple[str, ...]) -> None:
    """Limits that a format does not hold and that do not act on the motion."""
    for what in kinds:
        limits = np.asarray(joint.options.get(f"{what}_limits", ()), float)
        if np.any(np.isfinite(limits)):
            notes.ignored(joint_label(joint), f"{what} limits of this kind of joint are not in the file")


def refuse_dissipation(joint: JointRecord, notes: WriteNotes, kinds: tuple[str, ...]) -> None:
    """Damping, friction or armature that a format does not hold for a kind of joint."""
    if joint.joint_class is WeldJoint:
        return
    for what in kinds:
        if np.any(joint.options.get(what, np.zeros(1)) != 0.0):
            text = f"the {what} {numbers_text(joint.options[what])} of a {joint.joint_class.kind} joint"
            notes.unsupported(joint_label(joint), f"{notes.format_name} does not hold {text}")


def refuse_armature(robots: list[RobotRecord], notes: WriteNotes) -> dict[str, dict[str, float]]:
    """Rotor inertia and gear ratio of actuators, by `robot::actuator`, that stand for the armature of joints as well.

    The mass matrix is the same to rounding. A joint with armature and without an actuator is unsupported.
    """
    reflected: dict[str, dict[str, float]] = {}
    for robot in robots:
        for actuator in robot.actuators:
            numbers = {key: actuator.options[key] for key in ("rotor_inertia", "gear_ratio")}
            reflected[f"{robot.name}::{actuator.name}"] = numbers
        for joint in robot.joints:
            armature = float(np.max(joint.options.get("armature", 0.0)))
            if not armature:
                continue
            actuators = [a for a in robot.actuators if a.joint == joint.name and a.options["effort_limit"] > 0.0]
            if not actuators:
                refuse_dissipation(joint, notes, ("armature",))
                continue
            numbers = reflected[f"{robot.name}::{actuators[0].name}"]
            own = numbers["rotor_inertia"] * numbers["gear_ratio"] ** 2
            if own:
                numbers["rotor_inertia"] = (own + armature) / numbers["gear_ratio"] ** 2
            else:
                numbers |= {"rotor_inertia": armature, "gear_ratio": 1.0}
            notes.repaired(joint_label(joint), f"its armature is written as rotor inertia of '{actuators[0].name}'")
    return reflected


def drake_properties(
    properties: ProximityProperties, element: str, has_contact: bool, notes: WriteNotes
) -> dict[str, float | None]:
    """The numbers of drake:proximity_properties by tag, None where the tag alone says it.

    A surface that is rigid at points has no stiffness there, and no file says how thick a compliant half space is.
    """
    found: dict[str, Any] = {tag: getattr(properties, name) for tag, name in PROXIMITY_TAGS.items()}
    refuse = notes.unsupported if has_contact else notes.ignored
    if properties.point_stiffness is not None and np.isinf(properties.point_stiffness):
        refuse(element, "its point_stiffness is infinite, which drake:proximity_properties cannot say")
        del found["drake:point_contact_stiffness"]
    numbers = {tag: value for tag, value in found.items() if value is not None}
    if properties.hydroelastic is None:
        return numbers
    if properties.hydroelastic.slab_thickness is not None:
        refuse(element, "the slab_thickness of a compliant half space, which drake:proximity_properties cannot say")
        return numbers
    return {**numbers, **hydroelastic_tags(properties.hydroelastic)}


def is_gravity_of_earth(model: MultibodyModel) -> bool:
    return bool(np.array_equal(np.asarray(model.parameters.gravity), np.asarray(EARTH, model.dtype)))
