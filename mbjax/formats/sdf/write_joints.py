"""Joints of an SDFormat file, with what drives, couples and brakes them."""

from typing import Any

import numpy as np

from mbjax.joints import (
    BallRpyJoint,
    PrismaticJoint,
    QuaternionFloatingJoint,
    RevoluteJoint,
    RpyFloatingJoint,
    ScrewJoint,
    UniversalJoint,
    WeldJoint,
)

from ..notes.write_notes import WriteNotes
from ..records.force_records import joint_spring_of
from ..records.model_records import is_mimic
from ..records.robot_records import ActuatorRecord, JointRecord, RobotRecord
from ..records.unwritten_parts import (
    joint_label,
    list_default_positions,
    list_limits_without_place,
    refuse_dissipation,
    symmetric_limit,
)
from ..xml.text import Element, add

TYPES = {
    RevoluteJoint: "revolute",
    PrismaticJoint: "prismatic",
    ScrewJoint: "screw",
    UniversalJoint: "universal",
    BallRpyJoint: "ball",
    WeldJoint: "fixed",
}
FLOATING = (QuaternionFloatingJoint, RpyFloatingJoint)
WITH_AXIS = (RevoluteJoint, PrismaticJoint, ScrewJoint)
DIRECTIONS = {"axis": (1.0, 0.0, 0.0), "axis2": (0.0, 1.0, 0.0)}  # of a universal joint


class SdfJoints:
    """Writes the inside of <joint>, of which the place and the frames are known."""

    def __init__(self, reflected: dict[str, dict[str, float]], notes: WriteNotes):
        self.reflected, self.notes = reflected, notes

    def add_numbers(self, element: Element, joint: JointRecord, robot: RobotRecord) -> None:
        """Axes, limits, dissipation, actuator and mimic relation."""
        cls = joint.joint_class
        list_default_positions(joint, self.notes)
        if cls in WITH_AXIS:
            self._add_axis(element, joint, robot)
            self._add_actuator(element, joint, robot)
        elif cls is not WeldJoint:
            list_limits_without_place(joint, self.notes, ("position", "velocity", "acceleration"))
            refuse_dissipation(joint, self.notes, ("armature",))
        if cls is UniversalJoint:
            damping = self.single_damping(joint)
            for (tag, direction), friction in zip(DIRECTIONS.items(), joint.options["friction"], strict=True):
                axis = add(element, tag)
                add(axis, "xyz", direction)
                add_dynamics(axis, {"damping": damping, "friction": friction})
        elif cls is BallRpyJoint:
            refuse_dissipation(joint, self.notes, ("friction",))
            add_dynamics(add(element, "axis"), {"damping": self.single_damping(joint)})
        self._add_mimic(element, joint, robot)

    def single_damping(self, joint: JointRecord) -> float:
        """The one damping that all velocities of a joint have in the file."""
        damping = np.asarray(joint.options["damping"])
        if np.any(damping != damping[0]):
            self.notes.unsupported(
                joint_label(joint), "its velocities have different damping; SDFormat has one for all"
            )
        return float(damping[0])

    def _add_axis(self, element: Element, joint: JointRecord, robot: RobotRecord) -> None:
        axis = add(element, "axis")
        add(axis, "xyz", joint.options["axis"])
        lower, upper = (float(np.max(x)) for x in joint.options["position_limits"])
        driven = any(a.joint == joint.name and a.options["effort_limit"] > 0.0 for a in robot.actuators)
        limits: dict[str, Any] = {"effort": joint.effort_limit if driven else 0.0}
        if joint.joint_class is ScrewJoint:
            if np.isfinite(lower) or np.isfinite(upper):
                self.notes.unsupported(joint_label(joint), "SDFormat as Drake reads it has no limits of a screw joint")
            list_limits_without_place(joint, self.notes, ("velocity", "acceleration"))
            add(element, "screw_thread_pitch", joint.options["screw_pitch"])
        else:
            limits |= {"lower": lower, "upper": upper, "velocity": symmetric_limit(joint, "velocity", self.notes)}
            limits["drake:acceleration"] = symmetric_limit(joint, "acceleration", self.notes)
            if joint.joint_class is RevoluteJoint and not (np.isfinite(lower) or np.isfinite(upper)):
                element.set("type", "continuous")
        limit = add(axis, "limit")
        for tag, value in limits.items():
            if value is not None and np.isfinite(value):
                add(limit, tag, value)
        dynamics = {what: float(joint.options[what][0]) for what in ("damping", "friction")}
        spring = joint_spring_of(joint, robot)
        if spring is not None:
            dynamics |= {"spring_reference": spring[0], "spring_stiffness": spring[1]}
        add_dynamics(axis, dynamics)

    def _add_actuator(self, element: Element, joint: JointRecord, robot: RobotRecord) -> None:
        actuators = [actuator for actuator in robot.actuators if actuator.joint == joint.name]
        for other in actuators[1:]:
            self.notes.unsupported(
                f"actuator '{other.name}'", f"'{actuators[0].name}' drives its joint, too; there is one"
            )
        for actuator in actuators[:1]:
            self._add_numbers_of_actuator(element, joint, actuator, robot)

    def _add_numbers_of_actuator(
        self, element: Element, joint: JointRecord, actuator: ActuatorRecord, robot: RobotRecord
    ) -> None:
        label = f"actuator '{actuator.name}'"
        if actuator.options["effort_limit"] == 0.0:
            self.notes.unsupported(label, "with an effort limit of 0 it would be none, as in Drake")
            return
        if actuator.name != joint.name:
            self.notes.repaired(label, f"it has the name of its joint, '{joint.name}', as SDFormat names none")
        numbers = self.reflected[f"{robot.name}::{actuator.name}"]
        if numbers["rotor_inertia"] or numbers["gear_ratio"] != 1.0:
            add(element, "drake:rotor_inertia", numbers["rotor_inertia"])
            add(element, "drake:gear_ratio", numbers["gear_ratio"])
        if "kp" in actuator.options:
            add(element, "drake:controller_gains", p=actuator.options["kp"], d=actuator.options["kd"])

    def _add_mimic(self, element: Element, joint: JointRecord, robot: RobotRecord) -> None:
        """<drake:mimic>, of a joint without a coordinate of its own or of the first joint of a coupler constraint."""
        for mimic in robot.mimics:
            if mimic.joint == joint.name:
                self._relate(element, joint, mimic.leader, mimic.multiplier, mimic.offset)
                what = f"it mimics '{mimic.leader}' without a coordinate of its own: load with mimic=\"eliminate\""
                self.notes.repaired(joint_label(joint), what)
                return
        for constraint in robot.constraints:
            options = constraint.options
            if is_mimic(constraint, robot) and options["joint0"] == joint.name:
                self._relate(element, joint, options["joint1"], options["gear_ratio"], options["offset"])

    def _relate(self, element: Element, joint: JointRecord, leader: str, multiplier: float, offset: float) -> None:
        if "::" in leader:
            self.notes.unsupported(joint_label(joint), f"it follows '{leader}', a joint of another model")
            return
        add(element, "drake:mimic", joint=leader, multiplier=multiplier, offset=offset)


def add_dynamics(axis: Element, values: dict[str, float]) -> None:
    """<dynamics> with the numbers that are not zero."""
    if any(values.values()):
        dynamics = add(axis, "dynamics")
        for tag, value in values.items():
            if value:
                add(dynamics, tag, value)
