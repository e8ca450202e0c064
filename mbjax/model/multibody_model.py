"""The frozen model: static topology and names, float leaves, nothing derived."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from wadler_lindig import AbstractDoc, TextDoc

from mbjax.errors import ModelError
from mbjax.topology import TreeTopology

from .abstract_constraint import AbstractConstraint
from .abstract_force_element import AbstractForceElement
from .collision_parameters import CollisionParameters
from .coordinate_names import CoordinateNames
from .deformable_bodies import DeformableBodies
from .keyframes import Keyframe
from .load_report import Report
from .mimic_limits import tightest_limits
from .model_layout import ModelLayout
from .model_shapes import require_shapes
from .parameters import MultibodyParameters


class MultibodyModel(CoordinateNames, eqx.Module):
    """A multibody system for the functions of `mbjax`: `mbjax.mass_matrix(model, q)` and the rest.

    `topology` and `layout` are static: they decide the program. `parameters`, `collision`, `force_elements` and
    `constraints` hold the numbers: differentiate, batch or replace them; new values never recompile.
    """

    topology: TreeTopology = eqx.field(static=True)
    layout: ModelLayout = eqx.field(static=True)
    parameters: MultibodyParameters
    collision: CollisionParameters
    force_elements: tuple[AbstractForceElement, ...] = ()
    constraints: tuple[AbstractConstraint, ...] = ()
    random_distributions: tuple[Any, ...] = ()  # CoordinateDistribution; random_state draws from them
    keyframes: tuple[Keyframe, ...] = ()  # named states
    deformables: DeformableBodies | None = None

    @property
    def num_positions(self) -> int:
        return self.topology.num_positions

    @property
    def num_velocities(self) -> int:
        return self.topology.num_velocities

    @property
    def num_multibody_states(self) -> int:
        return self.num_positions + self.num_velocities

    @property
    def is_discrete(self) -> bool:
        return self.layout.is_discrete

    @property
    def has_fixed_nodes(self) -> bool:
        """Whether nodes of deformable bodies are fixed to bodies, so that both move each other."""
        return self.deformables is not None and bool(self.deformables.layout.fixed)

    @property
    def has_node_contacts(self) -> bool:
        """Whether deformable bodies may touch anything."""
        return self.deformables is not None and bool(self.deformables.layout.all_pairs)

    @property
    def num_world_axes(self) -> int:
        """Number of axes of worlds at the end of every array: 1 inside `for_worlds`, else 0."""
        return jnp.ndim(self.parameters.time_step)

    def zeros(self, *shape: int) -> jax.Array:
        """Zeros in the model's dtype, shared by all worlds."""
        return jnp.zeros((*shape, *(1,) * self.num_world_axes), self.dtype)

    @property
    def time_step(self) -> jax.Array:
        return self.parameters.time_step

    @property
    def dtype(self) -> Any:
        return self.parameters.gravity.dtype

    @property
    def body_names(self) -> tuple[str, ...]:
        """Names of bodies in declaration order, the world first: the order of every per-body array."""
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

    @property
    def keyframe_names(self) -> tuple[str, ...]:
        """Names of the states that `keyframe_state` returns."""
        return tuple(keyframe.name for keyframe in self.keyframes)

    # Limits that are not set are ±inf. A joint that mimics tightens the limits of the joint it follows.

    def _limits(self, what: str) -> tuple[Array, Array]:
        lower, upper = (getattr(self.parameters, f"{what}_{side}_limits") for side in ("lower", "upper"))
        return tightest_limits(self.topology, self.parameters, lower, upper, of_positions=what == "position")

    @property
    def position_lower_limits(self) -> Float[Array, " nq"]:
        return self._limits("position")[0]

    @property
    def position_upper_limits(self) -> Float[Array, " nq"]:
        return self._limits("position")[1]

    @property
    def velocity_lower_limits(self) -> Float[Array, " nv"]:
        return self._limits("velocity")[0]

    @property
    def velocity_upper_limits(self) -> Float[Array, " nv"]:
        return self._limits("velocity")[1]

    @property
    def acceleration_lower_limits(self) -> Float[Array, " nv"]:
        return self._limits("acceleration")[0]

    @property
    def acceleration_upper_limits(self) -> Float[Array, " nv"]:
        return self._limits("acceleration")[1]

    def require_one(self, call: str = "") -> None:
        """Refuses a batch of models, and leaves that do not fit the model's structure: functions take one model."""
        require_shapes(self, call)

    def report(self) -> Report:
        """Report on the contents of the files this model was read from: a tuple of entries that prints as text."""
        return Report(self.layout.report)

    def __str__(self) -> str:
        from .model_table import model_table

        return model_table(self)

    def __pdoc__(self, **options: Any) -> AbstractDoc:
        """The model's `repr`, by itself and within other records: one line, since `print` shows the table."""
        from .model_table import model_line

        return TextDoc(model_line(self))

    def _repr_html_(self) -> str:
        from .model_table import model_html

        return model_html(self)


def without_unread_geometry(model: MultibodyModel) -> MultibodyModel:
    """The model without the geometries that can touch nothing, which a step does not read.

    A model with force elements or constraints, which may be functions of users, stays as it is.
    """
    if model.collision.others is None or model.force_elements or model.constraints:
        return model
    return dataclasses.replace(model, collision=dataclasses.replace(model.collision, others=None))


def astype(model: MultibodyModel, dtype: Any) -> MultibodyModel:
    """Casts the leaves of a model to another float type."""
    if not jnp.issubdtype(jnp.dtype(dtype), jnp.floating):
        raise ModelError(f"astype: dtype must be a float type, like jnp.float32, got {jnp.dtype(dtype)}.")
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype=dtype), model)
