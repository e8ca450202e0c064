"""Poses that directives give to bodies: where these float, and errors where a joint of their file holds them."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbjax.model import IGNORED
from mbjax.spatial import RigidTransform

from ..notes.load_notes import LoadNotes
from ..records.numbers import as_matrix, inverse_pose, quaternion_of, roll_pitch_yaw
from ..records.record_names import name_from_outside
from ..records.robot_records import WORLD, JointRecord, RobotRecord
from .yaml_source import Value

KEY = "default_free_body_pose"
WELDED = "poses of bodies that are welded afterwards are not used, as in Drake"


@dataclasses.dataclass
class Placed:
    """A body that floats in its file, and the directive that places it."""

    robot: RobotRecord
    link: str
    value: Value


def place_body(
    robots: Sequence[RobotRecord], robot: RobotRecord, link: str, X_WB: RigidTransform, value: Value,
    positions: Mapping[str, Value],
) -> Placed | None:  # fmt: skip
    """Places a link of `robot`, one of the file's `robots`: by the positions of its floating joint if it has one.

    `positions` are those that the directive gives to joints. Raises where the link cannot be placed.
    """
    if link == WORLD:
        raise value.error(f"{KEY}: the world itself does not move; take its pose out.")
    if link in robot.static_links:
        raise value.error(
            f"{KEY}: '{link}' does not float, as its model is static. Take the pose out, or remove <static>."
        )
    joint = joints_by_child(robots).get((id(robot), link))
    if joint is None:
        robot.free_poses[link] = X_WB
        return Placed(robot, link, value)
    at = f"'{link}' hangs on joint '{joint.name}' ({joint.place})"
    size = joint.joint_class.num_positions
    if not joint.joint_class.is_floating:
        way_out = f"give default_joint_positions: {{{joint.name}: […]}}" if size else "set that of the weld in its file"
        raise value.error(f"{KEY}: {at} and does not float. Take the pose out, and {way_out}.")
    if joint.name in positions:
        raise value.error(f"{KEY}: {at}, which has default_joint_positions, too. Take one of the two out.")
    if joint.parent != WORLD:
        raise value.error(
            f"{KEY}: {at}, which bears it on '{joint.parent}', not on the world. Take the pose out, and give "
            f"default_joint_positions: {{{joint.name}: […]}}, {size} numbers relative to '{joint.parent}'."
        )
    joint.options["default_positions"] = positions_at(joint, as_matrix(X_WB))
    return None


def positions_at(joint: JointRecord, X_WB: np.ndarray) -> np.ndarray:
    """Positions of a floating joint on the world with its child at a pose, of X_WB = X_WF X_FM X_MB."""
    X_WF, X_BM = (frame_pose(joint, key) for key in ("X_PF", "X_BM"))
    X_FM = inverse_pose(X_WF) @ X_WB @ X_BM
    turned = quaternion_of if joint.joint_class.num_positions == 7 else roll_pitch_yaw
    return np.concatenate([turned(X_FM[:3, :3]), X_FM[:3, 3]])


def frame_pose(joint: JointRecord, key: str) -> np.ndarray:
    """X_PF or X_BM of a record, which may leave it out."""
    X = joint.options.get(key, np.eye(4))
    return as_matrix(X) if isinstance(X, RigidTransform) else np.asarray(X, float)


def note_welded(placed: Sequence[Placed], robots: Sequence[RobotRecord], notes: LoadNotes) -> None:
    """Lists and warns of poses of bodies that joints of other files or directives hold."""
    holding = joints_by_child(robots) if placed else {}
    for body in placed:
        joint = holding.get((id(body.robot), body.link))
        if joint is not None:
            name = name_from_outside(body.robot, body.link)
            message = f"{KEY} is not used: '{joint.name}' ({joint.place}) holds the body"
            notes.add(IGNORED, f"body '{name}'", message, body.value.place)
            notes.warn(WELDED, f"'{name}' (line {body.value.line})")


def joints_by_child(robots: Sequence[RobotRecord]) -> dict[tuple[int, str], JointRecord]:
    """The joint that holds a link, by the link's robot and its name there; a child may be a frame on the link."""
    links: dict[Any, tuple[RobotRecord, str]] = {}
    frames: dict[Any, tuple[RobotRecord, str]] = {}
    for robot in robots:
        for link in robot.links:
            links[id(robot), link.name] = links[name_from_outside(robot, link.name)] = robot, link.name
        for frame in robot.frames:
            frames[id(robot), frame.name] = frames[name_from_outside(robot, frame.name)] = robot, frame.link
    holding: dict[tuple[int, str], JointRecord] = {}
    for robot in robots:
        for joint in robot.joints:
            at: tuple[RobotRecord, str] | None = (robot, joint.child)
            for _ in range(len(frames) + 1):  # a frame may stand on frames
                key = (id(at[0]), at[1])
                found = links.get(key, links.get(at[1]))
                if found is not None:
                    holding.setdefault((id(found[0]), found[1]), joint)
                    break
                at = frames.get(key, frames.get(at[1]))
                if at is None:
                    break
    return holding
