"""Records of a robot file's contents, checked and in plain values, before anything is added to a plant."""

import dataclasses
from typing import Any

from mbjax.geometry import Geometry, ProximityProperties
from mbjax.joints import AbstractJoint
from mbjax.spatial import RigidTransform, SpatialInertia

WORLD = "world"


@dataclasses.dataclass
class CollisionRecord:
    """A collision shape, its contact properties and its place in the file."""

    place: str
    geometry: Geometry
    properties: ProximityProperties


@dataclasses.dataclass
class LinkRecord:
    """A link; `inertia` is None for a massless one, and a link named `world` is the world body."""

    name: str
    line: int
    place: str
    inertia: SpatialInertia | None = None
    visual: list[Geometry] = dataclasses.field(default_factory=list)
    collision: list[CollisionRecord] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class JointRecord:
    """A joint; `options` are the keyword arguments of `joint_class`."""

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
    """An actuator; `options` are the keyword arguments of `add_joint_actuator`."""

    name: str
    line: int
    place: str
    joint: str
    options: dict[str, Any]


@dataclasses.dataclass
class MimicRecord:
    """The mimic relation q(joint) = multiplier q(leader) + offset, kept by a coupler or by eliminating q(joint)."""

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
    """Two groups of links whose shapes do not touch each other; a group is its name and its links."""

    group_A: tuple[str, tuple[str, ...]]
    group_B: tuple[str, tuple[str, ...]]


@dataclasses.dataclass
class RobotRecord:
    """The elements of a robot file, in the order of the file."""

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
        """Links that are no joint's child, except the world."""
        children = {joint.child for joint in self.joints}
        return [link for link in self.links if link.name not in children and link.name != WORLD]
