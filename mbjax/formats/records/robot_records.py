"""Records of a robot file's contents, checked and in plain values, before anything is added to a plant."""

import dataclasses
from typing import Any

from mbjax.geometry import Geometry, ProximityProperties
from mbjax.joints import AbstractJoint
from mbjax.model import Control
from mbjax.spatial import RigidTransform, SpatialInertia

from .deformable_records import DeformableRecord

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
    control: Control | None = None


@dataclasses.dataclass
class MimicRecord:
    """The mimic relation q(joint) = multiplier q(leader) + offset, kept by a coupler or by eliminating q(joint)."""

    line: int
    joint: str
    leader: str
    multiplier: float
    offset: float
    is_coupled: bool
    place: str


@dataclasses.dataclass
class FrameRecord:
    """A frame fixed at `X_PF` in a link or in another frame, P; it belongs to the robot, or else to what has P."""

    name: str
    line: int
    place: str
    link: str
    X_PF: RigidTransform
    belongs_to_robot: bool = True
    owner: str = ""  # another robot of the file that has it


@dataclasses.dataclass
class CollisionFilterRecord:
    """Two groups of links whose shapes do not touch each other; a group is its name and its links."""

    group_A: tuple[str, tuple[str, ...]]
    group_B: tuple[str, tuple[str, ...]]


@dataclasses.dataclass
class ConstraintRecord:
    """`options` are the arguments of the plant's method for this kind: "distance", "ball", "weld" or "coupler".

    They hold names of links and joints where the method takes these.
    """

    name: str
    line: int
    place: str
    kind: str
    options: dict[str, Any]


@dataclasses.dataclass
class ForceElementRecord:
    """`options` are the arguments of `element_class`, with names where it takes joints, links or frames."""

    name: str
    line: int
    place: str
    element_class: type
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
    """One model instance, with its elements in the order of the file.

    Where a file holds several, names of links, joints and frames mean the robot's own, or those of another robot as
    `robot::name`.
    """

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
    free_poses: dict[str, RigidTransform] = dataclasses.field(default_factory=dict)  # X_WB of links without joint
    static_links: list[str] = dataclasses.field(default_factory=list)  # welded to the world
    deformables: list[DeformableRecord] = dataclasses.field(default_factory=list)
    is_world: bool = False  # not an instance of its own: joints and frames between robots
    build_rank: int = 0  # robots of a lower rank are built first

    def root_links(self) -> list[LinkRecord]:
        """Links that are no joint's child, except the world."""
        children = {joint.child for joint in self.joints}
        return [link for link in self.links if link.name not in children and link.name != WORLD]
