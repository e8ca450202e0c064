"""What names of records mean in the plant: a robot's own elements, or those of another as `robot::name`."""

import dataclasses
from collections.abc import Sequence
from typing import Any

from mbjax.geometry import Geometry
from mbjax.joints import AbstractJoint
from mbjax.model import Body, Frame
from mbjax.plant import DeclaredDeformable, MultibodyPlant

from .robot_records import WORLD, JointRecord, RobotRecord

DELIMITER = "::"


@dataclasses.dataclass
class Elements:
    """The bodies, joints and frames that a file has added to a plant."""

    plant: MultibodyPlant
    instances: dict[int, int] = dataclasses.field(default_factory=dict)
    by_name: dict[str, int] = dataclasses.field(default_factory=dict)  # the instance of a robot
    shapes: dict[tuple[int, str], Geometry] = dataclasses.field(default_factory=dict)  # by `link::name` of a robot
    _bodies: dict[Any, Body] = dataclasses.field(default_factory=dict)
    _deformables: dict[Any, DeclaredDeformable] = dataclasses.field(default_factory=dict)
    _joints: dict[Any, AbstractJoint] = dataclasses.field(default_factory=dict)
    _frames: dict[Any, Frame] = dataclasses.field(default_factory=dict)

    def add_body(self, robot: RobotRecord, name: str, body: Body) -> None:
        self._bodies[id(robot), name] = self._bodies[name_from_outside(robot, name)] = body

    def add_deformable(self, robot: RobotRecord, name: str, deformable: DeclaredDeformable) -> None:
        self._deformables[id(robot), name] = self._deformables[name_from_outside(robot, name)] = deformable

    def add_joint(self, robot: RobotRecord, name: str, joint: AbstractJoint) -> None:
        self._joints[id(robot), name] = self._joints[name_from_outside(robot, name)] = joint

    def add_frame(self, robot: RobotRecord, name: str, frame: Frame) -> None:
        self._frames[id(robot), name] = self._frames[name_from_outside(robot, name)] = frame

    def has_bodies_of(self, robot: RobotRecord, joint: JointRecord) -> bool:
        """Whether a joint joins bodies, not frames that may have to be made first."""
        return all(
            name == WORLD or (id(robot), name) in self._bodies or name in self._bodies
            for name in (joint.parent, joint.child)
        )

    def body(self, robot: RobotRecord, name: str) -> Body:
        """The body of a link."""
        if name == WORLD:
            return self.plant.world_body
        found = self._bodies.get((id(robot), name))
        return self._bodies[name] if found is None else found

    def link(self, robot: RobotRecord, name: str) -> Body | DeclaredDeformable:
        """The body of a link, rigid or deformable."""
        found = self._deformables.get((id(robot), name), self._deformables.get(name))
        return self.body(robot, name) if found is None else found

    def joint(self, robot: RobotRecord, name: str) -> AbstractJoint:
        found = self._joints.get((id(robot), name))
        return self._joints[name] if found is None else found

    def frame(self, robot: RobotRecord, name: str) -> Body | Frame:
        """The body of that name, or else the frame."""
        if name == WORLD:
            return self.plant.world_body
        for key in ((id(robot), name), name):
            for known in (self._bodies, self._frames):
                if key in known:
                    return known[key]
        raise KeyError(name)


def name_from_outside(robot: RobotRecord, name: str) -> str:
    """How the records of others name an element of a robot; what belongs to the world has no scope."""
    return robot.name + DELIMITER + name if robot.name else name


def instance_names(robots: Sequence[RobotRecord], taken: Sequence[str]) -> list[str]:
    """Their names, or `name_1`, `name_2`, … where those are taken, as Drake's auto-renaming does.

    The models in a model go with its name.
    """
    known = set(taken)
    renamed: dict[str, str] = {}
    names = []
    for robot in robots:
        if robot.is_world:
            names.append(robot.name)
            continue
        outer, delimiter, local = robot.name.rpartition(DELIMITER)
        wanted = renamed.get(outer, outer) + delimiter + local
        candidate, count = wanted, 0
        while candidate in known:
            count += 1
            candidate = f"{wanted}_{count}"
        renamed[robot.name] = candidate
        known.add(candidate)
        names.append(candidate)
    return names


def with_free_name(geometry: Geometry, taken: set[str], robot: RobotRecord) -> Geometry:
    """The geometry, called `robot::name` where another robot has given its name to one of the same body."""
    name, count = geometry.name, 0
    while name in taken:
        name = f"{robot.name}::{geometry.name}" + (f"_{count}" if count else "")
        count += 1
    return geometry if name == geometry.name else dataclasses.replace(geometry, name=name)
