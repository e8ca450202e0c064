"""Joints as MuJoCo has them: hinges, slides and balls of one body, one after the other."""

import dataclasses
from typing import Any

import numpy as np

from mbjax.joints import (
    BallRpyJoint,
    PlanarJoint,
    PrismaticJoint,
    RevoluteJoint,
    ScrewJoint,
    UniversalJoint,
)

from ..notes.write_notes import WriteNotes
from ..records.force_records import joint_spring_of
from ..records.numbers import inverse_pose, numbers_text, pose_matrix
from ..records.open_ends import NONE_IN_MUJOCO
from ..records.poses import turn
from ..records.robot_records import JointRecord, RobotRecord
from ..records.unwritten_parts import joint_label, list_limits_without_place
from ..xml.text import Element, add

X, Y, Z = np.eye(3)
SMALLEST_RANGE = 1e-15
OF_SEVERAL: dict[type, tuple[tuple[str, str, np.ndarray], ...]] = {
    UniversalJoint: (("x", "hinge", X), ("y", "hinge", Y)),
    PlanarJoint: (("x", "slide", X), ("y", "slide", Y), ("z", "hinge", Z)),
}
MAX_VELOCITIES = 6  # of one body, in MuJoCo


@dataclasses.dataclass
class Part:
    """A hinge, slide or ball of MuJoCo: component `component` of a joint of ours, about or along `axis` in F."""

    joint: JointRecord
    name: str
    kind: str
    component: int
    axis: np.ndarray
    reference: float  # qpos0

    @property
    def motion(self) -> np.ndarray:
        """Its transform at the reference."""
        if self.kind == "hinge":
            return turn(self.axis, self.reference)
        return pose_matrix(np.eye(3), self.reference * self.axis) if self.kind == "slide" else np.eye(4)


def parts_of(joint: JointRecord, notes: WriteNotes) -> list[Part]:
    """The joints of MuJoCo that a joint of ours is; default positions are their references."""
    cls, q = joint.joint_class, np.asarray(joint.options.get("default_positions", np.zeros(0)))
    list_limits_without_place(joint, notes, ("velocity", "acceleration"))
    if cls in OF_SEVERAL:
        list_limits_without_place(joint, notes, ("position",))
        several = OF_SEVERAL[cls]
        names = [f"{joint.name}_{suffix}" for suffix, _, _ in several]
        notes.repaired(joint_label(joint), f"written as {', '.join(f'{n!r}' for n in names)} on one body")
        return [
            Part(joint, name, kind, k, axis, float(q[k]))
            for k, (name, (_, kind, axis)) in enumerate(zip(names, several, strict=True))
        ]
    if cls is BallRpyJoint:
        list_limits_without_place(joint, notes, ("position",))
        if np.any(q != 0.0):
            text = f"default positions {numbers_text(q)} are not in the file: a ball joint of MuJoCo starts at zero"
            notes.ignored(joint_label(joint), text)
        for what in ("damping", "friction", "armature"):
            values = joint.options[what]
            if np.any(values != values[0]):
                notes.unsupported(joint_label(joint), f"its {what} is {numbers_text(values)}; MuJoCo has one for all")
        return [Part(joint, joint.name, "ball", 0, X, 0.0)]
    if cls is ScrewJoint:
        notes.unsupported(joint_label(joint), "MuJoCo has no screw joint; with a warning it is a hinge")
    if cls in (RevoluteJoint, ScrewJoint, PrismaticJoint):
        kind = "slide" if cls is PrismaticJoint else "hinge"
        return [Part(joint, joint.name, kind, 0, np.asarray(joint.options["axis"]), float(q[0]))]
    return []


@dataclasses.dataclass
class Chain:
    """Parts of one body, and where the body is in its parent while all are at their references."""

    parts: list[Part]
    starts: list[np.ndarray]  # X_PS of the frame S that each part moves in, at the reference
    X_PB: np.ndarray

    def add_to(self, body: Element, robot: RobotRecord, armatures: dict[str, float]) -> None:
        """All joints of a body, with axes and anchors in its frame."""
        X_BP = inverse_pose(self.X_PB)
        for part, X_PS in zip(self.parts, self.starts, strict=True):
            X_BS = X_BP @ X_PS
            options, k = part.joint.options, part.component
            attributes: dict[str, Any] = {"name": part.name, "type": part.kind}
            if part.kind != "slide" and np.any(X_BS[:3, 3] != 0.0):
                attributes["pos"] = X_BS[:3, 3]
            if part.kind != "ball":
                attributes["axis"] = X_BS[:3, :3] @ part.axis
                attributes["ref"] = part.reference or None
                attributes |= range_attributes(part)
            for name, key in (("damping", "damping"), ("frictionloss", "friction")):
                attributes[name] = float(options[key][k]) or None
            armature = float(options["armature"][k]) + armatures.get(part.joint.name, 0.0)
            attributes["armature"] = armature or None
            spring = joint_spring_of(part.joint, robot)
            if spring is not None:
                attributes |= {"springref": spring[0], "stiffness": spring[1]}
            add(body, "joint", **attributes)


def range_attributes(part: Part) -> dict[str, Any]:
    """Limits of a joint with one degree of freedom; MuJoCo wants both, the upper one above the lower one."""
    if len(part.joint.options["position_limits"][0]) > 1:
        return {}
    lower, upper = (float(np.max(x)) for x in part.joint.options["position_limits"])
    if not (np.isfinite(lower) or np.isfinite(upper)):
        return {}
    lower, upper = (x if np.isfinite(x) else np.sign(x) * NONE_IN_MUJOCO for x in (lower, upper))
    return {"limited": "true", "range": (lower, max(upper, lower + SMALLEST_RANGE * max(1.0, abs(lower))))}


def chain_of(joints: list[JointRecord], notes: WriteNotes) -> Chain:
    """The parts of joints one after the other, between which stand links without mass."""
    parts: list[Part] = []
    starts: list[np.ndarray] = []
    at = np.eye(4)
    for joint in joints:
        at = at @ np.asarray(joint.options["X_PF"])
        for part in parts_of(joint, notes):
            parts.append(part)
            starts.append(at)
            at = at @ part.motion
        at = at @ inverse_pose(np.asarray(joint.options["X_BM"]))
    return Chain(parts, starts, at)
