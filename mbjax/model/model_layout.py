"""Static data of a model besides its tree: one record per element, with its name, owner and place."""

import dataclasses
import functools

import numpy as np

from mbjax.errors import ModelError
from mbjax.execution import HashedOnce
from mbjax.geometry import Geometry
from mbjax.joints import JOINT_KINDS

from .contact_layout import ContactLayout
from .controls import Control
from .load_report import ReportEntry


@dataclasses.dataclass(frozen=True)
class JointInfo:
    """A joint's place in the model: `q` and `v` are its slices of positions and velocities; `mobod` is -1 for a weld.

    A joint that mimics another has no coordinates of its own: `q` and `v` are empty, and start where those of its
    leader at the end of the chain do. `all_q` and `all_v` are slices of arrays with a number for every joint, those
    that mimic included: limits, damping and friction.
    """

    name: str
    kind: str
    model_instance: int
    scoped_name: str
    index: int
    parent_body: int
    child_body: int
    parent_frame: int  # frame F, on the parent
    child_frame: int  # frame M, on the child
    mobod: int
    q_start: int
    num_positions: int
    v_start: int
    num_velocities: int
    all_q_start: int
    all_v_start: int
    source: str | None = None
    has_position_limits: bool = False  # finite ones, when the model was built or when they were set
    has_friction: bool = False  # other than zero, when the model was built or when it was set
    mimics: int | None = None  # the joint it follows

    @property
    def q(self) -> slice:
        return slice(self.q_start, self.q_start + self.num_positions)

    @property
    def v(self) -> slice:
        return slice(self.v_start, self.v_start + self.num_velocities)

    @property
    def all_q(self) -> slice:
        return slice(self.all_q_start, self.all_q_start + JOINT_KINDS[self.kind].num_positions)

    @property
    def all_v(self) -> slice:
        return slice(self.all_v_start, self.all_v_start + JOINT_KINDS[self.kind].num_velocities)

    @property
    def position_suffixes(self) -> tuple[str, ...]:
        """Suffixes of position names, like `qw`."""
        return JOINT_KINDS[self.kind].position_suffixes

    @property
    def velocity_suffixes(self) -> tuple[str, ...]:
        """Suffixes of velocity names, like `wx`."""
        return JOINT_KINDS[self.kind].velocity_suffixes


@dataclasses.dataclass(frozen=True)
class BodyInfo:
    """A body's place in the model; its mass and inertia are parameters, `mbjax.mass(model, body)` and so on.

    `inboard_joint` carries the body, None for the world. Welded bodies share one `mobod_index`.
    """

    name: str
    index: int
    model_instance: int
    scoped_name: str
    body_frame: int
    mobod_index: int
    inboard_joint: JointInfo | None
    source: str | None = None

    @property
    def is_floating(self) -> bool:
        """Whether a six-dof joint connects the body to the world itself."""
        joint = self.inboard_joint
        return joint is not None and JOINT_KINDS[joint.kind].is_floating and joint.parent_body == 0

    @property
    def has_quaternion_dofs(self) -> bool:
        """Whether the positions of the body's inboard joint start with a quaternion."""
        return self.inboard_joint is not None and JOINT_KINDS[self.inboard_joint.kind].has_quaternion

    @property
    def floating_positions_start(self) -> int:
        """Index in q of a floating body's first position."""
        return self._floating_joint().q_start

    @property
    def floating_velocities_start_in_v(self) -> int:
        """Index in v of a floating body's first velocity."""
        return self._floating_joint().v_start

    def floating_position_suffix(self, k: int) -> str:
        """Suffix that names a floating body's k-th position: `qw`, `x`, …"""
        return self._floating_joint().position_suffixes[k]

    def floating_velocity_suffix(self, k: int) -> str:
        """Suffix that names a floating body's k-th velocity: `wx`, `vx`, …"""
        return self._floating_joint().velocity_suffixes[k]

    def _floating_joint(self) -> JointInfo:
        joint = self.inboard_joint
        if joint is None or not self.is_floating:
            by = "it is the world" if joint is None else f"joint '{joint.name}' ({joint.kind}) carries it"
            raise ModelError(f"body '{self.name}' does not float: {by}. Ask model.joint(...) for coordinates.")
        return joint


@dataclasses.dataclass(frozen=True)
class FrameInfo:
    """A frame's place in the model: its body, and the frame it is fixed in (None: it is the body's own)."""

    name: str
    index: int
    model_instance: int
    scoped_name: str
    body: int
    parent: int | None

    @property
    def is_body_frame(self) -> bool:
        return self.parent is None


@dataclasses.dataclass(frozen=True)
class ActuatorInfo:
    """An actuator's place in the model: its joint and the velocity it drives; `index` is its place in u."""

    name: str
    model_instance: int
    scoped_name: str
    index: int
    joint: int
    velocity: int
    control: Control | None = None  # what MuJoCo's ctrl means to it


@dataclasses.dataclass(frozen=True, eq=False)
class ModelInstanceInfo:
    """The elements of a model instance, by index, and its places in the coordinates: `q[instance.q]`, also `v` and `u`.

    Coordinates come in the order they have in the whole model, actuators in that of their indices, as in Drake.
    """

    name: str
    index: int
    bodies: tuple[int, ...]
    frames: tuple[int, ...]
    joints: tuple[int, ...]
    actuators: tuple[int, ...]
    q: np.ndarray
    v: np.ndarray
    is_gravity_enabled: bool

    @property
    def u(self) -> np.ndarray:
        return np.array(self.actuators, int)

    @property
    def num_positions(self) -> int:
        return len(self.q)

    @property
    def num_velocities(self) -> int:
        return len(self.v)

    @property
    def num_states(self) -> int:
        return len(self.q) + len(self.v)

    @property
    def num_actuators(self) -> int:
        return len(self.actuators)

    @property
    def num_actuated_dofs(self) -> int:
        """Number of actuated velocities, equal to `num_actuators`, as each actuator drives one."""
        return len(self.actuators)


@dataclasses.dataclass(frozen=True)
class ModelLayout(HashedOnce):
    """Names, owners and places of a model's elements: all that is static besides the tree."""

    instance_names: tuple[str, ...]
    gravity_enabled: tuple[bool, ...]
    bodies: tuple[BodyInfo, ...]
    frames: tuple[FrameInfo, ...]
    joints: tuple[JointInfo, ...]
    actuators: tuple[ActuatorInfo, ...]
    axis_joints: tuple[int, ...]
    screw_joints: tuple[int, ...]
    offset_frames: tuple[int, ...]
    visual: tuple[tuple[Geometry, ...], ...]
    collision: tuple[tuple[Geometry, ...], ...]
    contact: ContactLayout
    report: tuple[ReportEntry, ...]
    is_discrete: bool

    __hash__ = HashedOnce.__hash__

    @functools.cached_property
    def body_names(self) -> tuple[str, ...]:
        return tuple(body.name for body in self.bodies)

    @functools.cached_property
    def body_instances(self) -> tuple[int, ...]:
        return tuple(body.model_instance for body in self.bodies)

    @functools.cached_property
    def body_frames(self) -> tuple[int, ...]:
        """Index of each body's own frame."""
        return tuple(body.body_frame for body in self.bodies)

    @functools.cached_property
    def frame_names(self) -> tuple[str, ...]:
        return tuple(frame.name for frame in self.frames)

    @functools.cached_property
    def limited_joints(self) -> tuple[JointInfo, ...]:
        """Joints with one degree of freedom whose limits, or whose followers' limits, the discrete step keeps."""
        limited = {j.q_start for j in self.joints if j.has_position_limits and JOINT_KINDS[j.kind].num_positions == 1}
        return tuple(j for j in self.joints if j.num_positions == j.num_velocities == 1 and j.q_start in limited)

    @functools.cached_property
    def frictional_directions(self) -> tuple[int, ...]:
        """Directions of joints with friction, mimics included; the discrete step keeps friction within its bounds."""
        joints = sorted((j for j in self.joints if j.has_friction), key=lambda j: j.all_v_start)
        return tuple(k for j in joints for k in range(j.all_v.start, j.all_v.stop))

    @functools.cached_property
    def velocities_of_actuators(self) -> tuple[int, ...]:
        """Index of the velocity that each actuator drives."""
        return tuple(a.velocity for a in self.actuators)
