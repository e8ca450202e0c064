"""What a robot file says, checked and in plain values, before anything is added to a plant."""

import dataclasses
from typing import Any

from mbjax.geometry import Geometry, ProximityProperties
from mbjax.joints import AbstractJoint
from mbjax.spatial import RigidTransform, SpatialInertia

WORLD = "world"


@dataclasses.dataclass
class CollisionRecord:
    """A shape and what it is like to touch."""

    place: str
    geometry: Geometry
    properties: ProximityProperties


@dataclasses.dataclass
class LinkRecord:
    """`inertia` is None for a massless link; a link named `world` is the world body."""

    name: str
    line: int
    place: str
    inertia: SpatialInertia | None = None
    visual: list[Geometry] = dataclasses.field(default_factory=list)
    collision: list[CollisionRecord] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class JointRecord:
    """`options` are the keyword arguments of `joint_class`."""

    name: str
    line: int
    place: str
    joint_class: type[AbstractJoint]
    parent: str
    child: str
    options: dict[str, Any]
    effort_limit: float = float("inf")


@dataclasses.dataclass
class ActuatorRecord:
    """`options` are the keyword arguments of `add_joint_actuator`."""

    name: str
    line: int
    place: str
    joint: str
    options: dict[str, Any]


@dataclasses.dataclass
class MimicRecord:
    """q(joint) = multiplier q(leader) + offset, kept by a coupler or by taking the joint's coordinate away."""

    line: int
    joint: str
    leader: str
    multiplier: float
    offset: float
    is_coupled: bool


@dataclasses.dataclass
class FrameRecord:
    name: str
    line: int
    place: str
    link: str
    X_PF: RigidTransform


@dataclasses.dataclass
class CollisionFilterRecord:
    """Shapes of the links of one group do not touch those of the other; each group is its name and its links."""

    group_A: tuple[str, tuple[str, ...]]
    group_B: tuple[str, tuple[str, ...]]


@dataclasses.dataclass
class RobotRecord:
    """Elements in the order of the file."""

    name: str
    file: str
    line: int
    links: list[LinkRecord] = dataclasses.field(default_factory=list)
    joints: list[JointRecord] = dataclasses.field(default_factory=list)
    actuators: list[ActuatorRecord] = dataclasses.field(default_factory=list)
    frames: list[FrameRecord] = dataclasses.field(default_factory=list)
    mimics: list[MimicRecord] = dataclasses.field(default_factory=list)
    collision_filters: list[CollisionFilterRecord] = dataclasses.field(default_factory=list)

    def root_links(self) -> list[LinkRecord]:
        """Links that are no joint's child, the world aside."""
        children = {joint.child for joint in self.joints}
        return [link for link in self.links if link.name not in children and link.name != WORLD]
