"""Joints of a URDF: a child link stands at the joint, so that a link elsewhere is welded to a massless one there."""

from typing import Any

import numpy as np

from mbjax.joints import (
    BallRpyJoint,
    PlanarJoint,
    PrismaticJoint,
    QuaternionFloatingJoint,
    RevoluteJoint,
    RpyFloatingJoint,
    ScrewJoint,
    UniversalJoint,
    WeldJoint,
)

from ..notes.write_notes import WriteNotes
from ..records.contact_shapes import unique_name
from ..records.numbers import inverse_pose, is_identity, roll_pitch_yaw
from ..records.robot_records import WORLD, JointRecord, RobotRecord
from ..records.unwritten_parts import joint_label, list_limits_without_place, refuse_dissipation, symmetric_limit
from ..xml.text import Element, add

TYPES: dict[type, tuple[str, str]] = {
    RevoluteJoint: ("joint", "revolute"),
    PrismaticJoint: ("joint", "prismatic"),
    WeldJoint: ("joint", "fixed"),
    QuaternionFloatingJoint: ("joint", "floating"),
    RpyFloatingJoint: ("joint", "floating"),
    PlanarJoint: ("drake:joint", "planar"),
    ScrewJoint: ("drake:joint", "screw"),
    UniversalJoint: ("drake:joint", "universal"),
    BallRpyJoint: ("drake:joint", "ball"),
}
FLOATING = (QuaternionFloatingJoint, RpyFloatingJoint)
ONE_DOF = (RevoluteJoint, PrismaticJoint, ScrewJoint)


def joints_before_links(robot: RobotRecord) -> set[str]:
    """Joints whose child link does not stand at the joint, so that a massless link stands between."""
    return {
        joint.name
        for joint in robot.joints
        if joint.joint_class is not WeldJoint and not is_identity(np.asarray(joint.options["X_BM"]))
    }


def add_joints(root: Element, robot: RobotRecord, notes: WriteNotes) -> None:
    """All joints, with the massless links that they need."""
    links = dict.fromkeys([WORLD, *(link.name for link in robot.links), *(frame.name for frame in robot.frames)], 0)
    joints = dict.fromkeys((joint.name for joint in robot.joints), 0)
    for joint in robot.joints:
        X_BM, child = np.asarray(joint.options["X_BM"]), joint.child
        origin = np.asarray(joint.options["X_PF"])
        if joint.joint_class is WeldJoint:
            origin, X_BM = origin @ inverse_pose(X_BM), np.eye(4)
        if not is_identity(X_BM):
            child = unique_name(f"{joint.child}@{joint.name}", links)
            add(root, "link", name=child)
        add_joint(root, joint, child, origin, robot, notes)
        if not is_identity(X_BM):
            weld = add(root, "joint", name=unique_name(f"{child}_welds_to_{joint.child}", joints), type="fixed")
            X_MB = inverse_pose(X_BM)
            add(weld, "origin", xyz=X_MB[:3, 3], rpy=roll_pitch_yaw(X_MB[:3, :3]))
            add(weld, "parent", link=child)
            add(weld, "child", link=joint.child)
            what = f"it holds the massless link '{child}', to which '{joint.child}' is welded: links stand at joints"
            notes.repaired(joint_label(joint), what)


def add_joint(
    root: Element, joint: JointRecord, child: str, origin: np.ndarray, robot: RobotRecord, notes: WriteNotes
) -> None:
    """One joint between its links."""
    tag, type_name = TYPES[joint.joint_class]
    limits = limit_attributes(joint, notes) if joint.joint_class in ONE_DOF else {}
    if type_name == "revolute" and not {"lower", "upper"} & set(limits):
        type_name = "continuous"
    element = add(root, tag, name=joint.name, type=type_name)
    if not is_identity(origin):
        add(element, "origin", xyz=origin[:3, 3], rpy=roll_pitch_yaw(origin[:3, :3]))
    add(element, "parent", link=joint.parent)
    add(element, "child", link=child)
    if joint.joint_class in ONE_DOF:
        add(element, "axis", xyz=joint.options["axis"])
    elif joint.joint_class is PlanarJoint:
        add(element, "axis", xyz=(0.0, 0.0, 1.0))
    if limits:
        add(element, "limit", **limits)
    add_dynamics(element, joint, notes)
    if joint.joint_class is ScrewJoint:
        add(element, "drake:screw_thread_pitch", value=joint.options["screw_pitch"])
    add_mimic(element, joint, robot, notes)
    if joint.joint_class is RpyFloatingJoint:
        notes.repaired(joint_label(joint), "a floating joint, whose positions start with a quaternion")


def limit_attributes(joint: JointRecord, notes: WriteNotes) -> dict[str, Any]:
    """Attributes of <limit>; numbers that are infinite are left out."""
    lower, upper = (float(np.max(x)) for x in joint.options["position_limits"])
    found = {
        "lower": lower,
        "upper": upper,
        "effort": joint.effort_limit,
        "velocity": symmetric_limit(joint, "velocity", notes),
        "drake:acceleration": symmetric_limit(joint, "acceleration", notes),
    }
    return {name: value for name, value in found.items() if value is not None and np.isfinite(value)}


def add_dynamics(element: Element, joint: JointRecord, notes: WriteNotes) -> None:
    """<dynamics>: one number for all velocities, or one each where they differ."""
    if joint.joint_class in FLOATING:
        refuse_dissipation(joint, notes, ("damping", "friction", "armature"))
        list_limits_without_place(joint, notes, ("position", "velocity", "acceleration"))
        return
    if joint.joint_class not in ONE_DOF:
        refuse_dissipation(joint, notes, ("armature",))
        list_limits_without_place(joint, notes, ("position", "velocity", "acceleration"))
    found = {}
    for what in ("damping", "friction"):
        values = np.asarray(joint.options.get(what, np.zeros(1)))
        if np.any(values != 0.0):
            is_single = joint.joint_class is not PlanarJoint and np.all(values == values[0])
            found[what] = values[:1] if is_single else values
    if found:
        add(element, "dynamics", **found)


def add_mimic(element: Element, joint: JointRecord, robot: RobotRecord, notes: WriteNotes) -> None:
    """<mimic>, of a joint without a coordinate of its own or of the first joint of a coupler constraint."""
    for mimic in robot.mimics:
        if mimic.joint == joint.name:
            add(element, "mimic", joint=mimic.leader, multiplier=mimic.multiplier, offset=mimic.offset)
            what = (
                f"it mimics '{mimic.leader}' and has no coordinate of its own: load the file with mimic=\"eliminate\""
            )
            notes.repaired(joint_label(joint), what)
            return
    for constraint in robot.constraints:
        options = constraint.options
        if constraint.kind == "coupler" and options["joint0"] == joint.name:
            add(element, "mimic", joint=options["joint1"], multiplier=options["gear_ratio"], offset=options["offset"])
            return
