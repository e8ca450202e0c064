"""Where elements of a model stand in an SDFormat file, and what they call one another there.

A place is the path of names from the world to a model. All model frames are at the world's origin.
"""

import dataclasses

import numpy as np

from ..records.numbers import as_matrix, inverse_pose, pose_of_floating
from ..records.robot_records import WORLD, JointRecord, RobotRecord
from .read_scopes import DELIMITER, is_reserved

Place = tuple[str, ...]


def allowed_name(name: str) -> str:
    """The name, or one like it where SDFormat reserves it: `world`, `__…__`, and what has `::` in it."""
    plain = name.replace(DELIMITER, "_")
    if plain == WORLD:
        return f"{plain}_1"
    return plain.strip("_") or "unnamed" if is_reserved(plain) or not plain else plain


@dataclasses.dataclass
class Scopes:
    """The places of robots, and the poses of their links while all joints are at zero."""

    robots: list[RobotRecord]
    frames_of_world: set[str] = dataclasses.field(default_factory=set)

    def __post_init__(self) -> None:
        known = {robot.name for robot in self.robots}
        self.places: dict[str, Place] = {}
        for name in sorted(known, key=len):
            outer, _, inner = name.rpartition(DELIMITER)
            is_nested = outer in self.places
            self.places[name] = (*self.places[outer], inner) if is_nested else (name.replace(DELIMITER, "_"),)
        self._joint_of: dict[tuple[Place, str], tuple[RobotRecord, JointRecord]] = {}
        self._free: dict[tuple[Place, str], np.ndarray] = {}
        for robot in self.robots:
            for joint in robot.joints:
                self._joint_of[self.find(robot, joint.child)] = robot, joint
            for link, X_WB in robot.free_poses.items():
                self._free[self.find(robot, link)] = as_matrix(X_WB)

    def find(self, robot: RobotRecord, name: str) -> tuple[Place, str]:
        """Place and own name of what a robot calls `name`; the world's place is empty."""
        if name == WORLD or name in self.frames_of_world:
            return (), name
        owner, _, local = name.rpartition(DELIMITER)
        return self.places[owner or robot.name], local

    def common(self, *ends: tuple[Place, str]) -> Place:
        """The innermost model that holds all of them, where the world, which every model knows, does not count."""
        places = [place for place, name in ends if name != WORLD]
        shared = []
        for names in zip(*places, strict=False):
            if len(set(names)) > 1:
                break
            shared.append(names[0])
        return tuple(shared)

    def name_in(self, place: Place, end: tuple[Place, str]) -> str:
        """What an element is called in a place that holds it."""
        path, name = end
        return WORLD if name == WORLD and not path else DELIMITER.join((*path[len(place) :], name))

    def joint_of(self, end: tuple[Place, str]) -> tuple[RobotRecord, JointRecord] | None:
        """The joint that holds a link."""
        return self._joint_of.get(end)

    def pose(self, end: tuple[Place, str]) -> np.ndarray:
        """X_WB of a link."""
        if end[1] == WORLD and not end[0]:
            return np.eye(4)
        found = self._joint_of.get(end)
        if found is None:
            return self._free.get(end, np.eye(4))
        robot, joint = found
        X_WP = self.pose(self.find(robot, joint.parent))
        X_FM = pose_of_floating(joint.options["default_positions"]) if joint.joint_class.is_floating else np.eye(4)
        return X_WP @ np.asarray(joint.options["X_PF"]) @ X_FM @ inverse_pose(np.asarray(joint.options["X_BM"]))
