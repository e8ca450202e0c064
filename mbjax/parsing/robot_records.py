"""Records of a robot file's contents, checked and in plain values, before anything is added to a plant."""

import dataclasses
from typing import Any

from mbjax.geometry import Geometry, ProximityProperties
from mbjax.joints import AbstractJoint
from mbjax.model import AbstractForceElement
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
class ConstraintRecord:
    """`kind` is "distance", "ball", "weld" or "coupler"; `options` are the plant method's, with names."""

    name: str
    line: int
    place: str
    kind: str
    options: dict[str, Any]


@dataclasses.dataclass
class ForceElementRecord:
    """`options` are the keyword arguments of `element_class`, with joints and links by name."""

    name: str
    line: int
    place: str
    element_class: type[AbstractForceElement]
    options: dict[str, Any]


@dataclasses.dataclass
class KeyframeRecord:
    """A named state: positions and velocities by joint."""

    name: str
    line: int
    place: str
    positions: dict[str, tuple[float, ...]]
    velocities: dict[str, tuple[float, ...]]
    time: float = 0.0


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
    constraints: list[ConstraintRecord] = dataclasses.field(default_factory=list)
    force_elements: list[ForceElementRecord] = dataclasses.field(default_factory=list)
    gravity: tuple[float, float, float] | None = None
    default_positions: dict[str, tuple[float, ...]] = dataclasses.field(default_factory=dict)
    keyframes: list[KeyframeRecord] = dataclasses.field(default_factory=list)
    filtered_pairs: list[tuple[str, str]] = dataclasses.field(default_factory=list)  # "link::geometry"
    lists_contacts: bool = False  # adjacent links may touch unless the file filters them

    def root_links(self) -> list[LinkRecord]:
        """Links that are no joint's child, except the world."""
        children = {joint.child for joint in self.joints}
        return [link for link in self.links if link.name not in children and link.name != WORLD]
