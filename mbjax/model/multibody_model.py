"""The frozen model: static topology and names, float leaves, nothing derived."""

import dataclasses
import functools
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbjax.errors import ModelError
from mbjax.geometry import Geometry
from mbjax.joints import JOINT_KINDS
from mbjax.topology import TreeTopology

from .abstract_force_element import AbstractForceElement
from .elements import near_matches
from .load_report import ReportEntry
from .parameters import MultibodyParameters


@dataclasses.dataclass(frozen=True)
class JointInfo:
    """Where a joint is: `q` and `v` are its slices of positions and velocities."""

    name: str
    kind: str
    model_instance: int
    index: int
    parent_frame: int
    child_frame: int
    mobod: int
    q_start: int
    num_positions: int
    v_start: int
    num_velocities: int
    source: str | None = None

    @property
    def q(self) -> slice:
        return slice(self.q_start, self.q_start + self.num_positions)

    @property
    def v(self) -> slice:
        return slice(self.v_start, self.v_start + self.num_velocities)


@dataclasses.dataclass(frozen=True)
class ActuatorInfo:
    """Where an actuator is: its joint and the velocity it drives."""

    name: str
    model_instance: int
    index: int
    joint: int
    velocity: int


@dataclasses.dataclass(frozen=True)
class ModelLayout:
    """Names, owners and places: all that is static besides the tree."""

    instance_names: tuple[str, ...]
    gravity_enabled: tuple[bool, ...]
    body_names: tuple[str, ...]
    body_instances: tuple[int, ...]
    body_sources: tuple[str | None, ...]
    body_frames: tuple[int, ...]
    frame_names: tuple[str, ...]
    frame_instances: tuple[int, ...]
    joints: tuple[JointInfo, ...]
    actuators: tuple[ActuatorInfo, ...]
    axis_joints: tuple[int, ...]
    screw_joints: tuple[int, ...]
    offset_frames: tuple[int, ...]
    visual: tuple[tuple[Geometry, ...], ...]
    collision: tuple[tuple[Geometry, ...], ...]
    report: tuple[ReportEntry, ...]
    is_discrete: bool

    @functools.cached_property
    def _hash(self) -> int:
        return hash(tuple(getattr(self, field.name) for field in dataclasses.fields(self)))

    def __hash__(self) -> int:  # JAX hashes static data at every call of a compiled function
        return self._hash

    @functools.cached_property
    def velocities_of_actuators(self) -> tuple[int, ...]:
        """The velocity each actuator drives."""
        return tuple(a.velocity for a in self.actuators)


class MultibodyModel(eqx.Module):
    """A multibody system for the functions of `mbjax`: `mbjax.mass_matrix(model, q)` and the rest.

    `topology` and `layout` are static: they decide the program. `parameters` and `force_elements` hold the
    numbers: differentiate, batch or replace them; new values never recompile.
    """

    topology: TreeTopology = eqx.field(static=True)
    layout: ModelLayout = eqx.field(static=True)
    parameters: MultibodyParameters
    force_elements: tuple[AbstractForceElement, ...] = ()

    @property
    def num_positions(self) -> int:
        return self.topology.num_positions

    @property
    def num_velocities(self) -> int:
        return self.topology.num_velocities

    @property
    def num_bodies(self) -> int:
        return self.topology.num_bodies

    @property
    def num_joints(self) -> int:
        return len(self.layout.joints)

    @property
    def num_frames(self) -> int:
        return len(self.layout.frame_names)

    @property
    def num_actuators(self) -> int:
        return len(self.layout.actuators)

    @property
    def num_model_instances(self) -> int:
        return len(self.layout.instance_names)

    @property
    def is_discrete(self) -> bool:
        return self.layout.is_discrete

    @property
    def time_step(self) -> jax.Array:
        return self.parameters.time_step

    @property
    def dtype(self) -> Any:
        return self.parameters.gravity.dtype

    @property
    def body_names(self) -> tuple[str, ...]:
        """In declaration order, the world first: the order of every per-body array."""
        return self.layout.body_names

    @property
    def joint_names(self) -> tuple[str, ...]:
        return tuple(j.name for j in self.layout.joints)

    @property
    def frame_names(self) -> tuple[str, ...]:
        return self.layout.frame_names

    @property
    def actuator_names(self) -> tuple[str, ...]:
        return tuple(a.name for a in self.layout.actuators)

    def position_names(self, *, add_model_instance_prefix: bool = True) -> tuple[str, ...]:
        """`{instance}_{joint}_{suffix}` per position, as in Drake."""
        return self._coordinate_names("position_suffixes", "q_start", add_model_instance_prefix)

    def velocity_names(self, *, add_model_instance_prefix: bool = True) -> tuple[str, ...]:
        """`{instance}_{joint}_{suffix}` per velocity, as in Drake."""
        return self._coordinate_names("velocity_suffixes", "v_start", add_model_instance_prefix)

    def state_names(self, *, add_model_instance_prefix: bool = True) -> tuple[str, ...]:
        """Position names, then velocity names."""
        prefix = add_model_instance_prefix
        return self.position_names(add_model_instance_prefix=prefix) + self.velocity_names(
            add_model_instance_prefix=prefix
        )

    def joint(self, name: str | int) -> JointInfo:
        """A joint by name (`"joint"` or `"instance::joint"`) or index; `.q` and `.v` are its slices."""
        return self.layout.joints[self._index("joint", name, self._scoped_joints)]

    def actuator(self, name: str | int) -> ActuatorInfo:
        """An actuator by name or index."""
        owners = tuple(a.model_instance for a in self.layout.actuators)
        return self.layout.actuators[self._index("actuator", name, (self.actuator_names, owners))]

    def body_index(self, body: str | int) -> int:
        """Index of a body by name; an index is checked and returned."""
        return self._index("body", body, (self.layout.body_names, self.layout.body_instances))

    def frame_index(self, frame: str | int) -> int:
        """Index of a frame by name; every body's own frame has the body's name."""
        return self._index("frame", frame, (self.layout.frame_names, self.layout.frame_instances))

    def body_frame_index(self, body: str | int) -> int:
        """Index of a body's own frame."""
        return self.layout.body_frames[self.body_index(body)]

    def model_instance_index(self, instance: str | int) -> int:
        """Index of a model instance by name; an index is checked and returned."""
        names = self.layout.instance_names
        return self._index("model instance", instance, (names, (0,) * len(names)))

    def report(self) -> tuple[ReportEntry, ...]:
        """What became of the contents of the files this model was read from."""
        return self.layout.report

    def __str__(self) -> str:
        from .model_table import model_table

        return model_table(self)

    @property
    def _scoped_joints(self) -> tuple[tuple[str, ...], tuple[int, ...]]:
        return self.joint_names, tuple(j.model_instance for j in self.layout.joints)

    def _coordinate_names(self, suffixes: str, start: str, prefix: bool) -> tuple[str, ...]:
        names = []
        for joint in sorted((j for j in self.layout.joints if j.mobod > 0), key=lambda j: getattr(j, start)):
            instance = f"{self.layout.instance_names[joint.model_instance]}_" if prefix else ""
            names += [f"{instance}{joint.name}_{s}" for s in getattr(JOINT_KINDS[joint.kind], suffixes)]
        return tuple(names)

    def _index(self, what: str, key: str | int, known: tuple[tuple[str, ...], tuple[int, ...]]) -> int:
        names, owners = known
        if not isinstance(key, str):
            if not 0 <= key < len(names):
                raise ModelError(f"there is no {what} {key}: indices run from 0 to {len(names) - 1}.")
            return int(key)
        scoped = [f"{self.layout.instance_names[i]}::{n}" for n, i in zip(names, owners, strict=True)]
        found = [i for i, name in enumerate(names) if key in (name, scoped[i])]
        if not found:
            raise ModelError(f"there is no {what} named '{key}'. {near_matches(key, names)}")
        if len(found) > 1:
            options = ", ".join(f"'{scoped[i]}'" for i in found)
            raise ModelError(f"{len(found)} things of kind {what} are named '{key}'; say which: {options}.")
        return found[0]


def astype(model: MultibodyModel, dtype: Any) -> MultibodyModel:
    """The same model with leaves of another float type."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=dtype), model)
