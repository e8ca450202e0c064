"""Maps between velocities and position rates, and moves along the configuration manifold, joint by joint."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions, Velocities
from mbjax.execution import compiled_outside_jit, takes_model_first
from mbjax.joints import JOINT_KINDS, AbstractJoint
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca

from .joint_groups import gather, groups_with_coordinates, in_coordinate_order


@takes_model_first
def is_velocity_equal_to_qdot(model: MultibodyModel) -> bool:
    """Whether v is qdot itself, N(q) = 1, for every joint of the model."""
    kinds = (JOINT_KINDS[kind] for kind, _ in model.topology.mobods_by_kind)
    return all(kind.velocity_to_qdot is AbstractJoint.velocity_to_qdot for kind in kinds)


@compiled_outside_jit
def velocity_to_qdot(model: MultibodyModel, q: Positions, v: Velocities) -> Positions:
    """Position rates qdot = N(q) v."""
    return _per_joint(model, "velocity_to_qdot", ("q", q), ("v", v), "q")


@compiled_outside_jit
def qdot_to_velocity(model: MultibodyModel, q: Positions, qdot: Positions) -> Velocities:
    """Velocities v = N+(q) qdot, with N+ the left inverse of N."""
    return _per_joint(model, "qdot_to_velocity", ("q", q), ("q", qdot), "v")


@compiled_outside_jit
def integrate_configuration(model: MultibodyModel, q: Positions, dv: Velocities) -> Positions:
    """Moves q along dv = v dt; quaternions stay of unit length. `difference_configuration` is the inverse."""
    return _per_joint(model, "integrate", ("q", q), ("v", dv), "q")


@compiled_outside_jit
def difference_configuration(model: MultibodyModel, q0: Positions, q1: Positions) -> Velocities:
    """Difference dv from q0 to q1: integrate_configuration(model, q0, dv) = q1."""
    return _per_joint(model, "difference", ("q", q0), ("q", q1), "v")


@compiled_outside_jit
def velocity_to_qdot_matrix(model: MultibodyModel, q: Positions) -> Float[Array, "nq nv"]:
    """Matrix N(q) with qdot = N(q) v."""
    columns = jnp.eye(model.num_velocities, dtype=model.dtype)
    return jax.vmap(lambda v: velocity_to_qdot(model, q, v), out_axes=-1)(columns)


@compiled_outside_jit
def qdot_to_velocity_matrix(model: MultibodyModel, q: Positions) -> Float[Array, "nv nq"]:
    """Matrix N+(q) with v = N+(q) qdot."""
    columns = jnp.eye(model.num_positions, dtype=model.dtype)
    return jax.vmap(lambda qdot: qdot_to_velocity(model, q, qdot), out_axes=-1)(columns)


def _per_joint(
    model: MultibodyModel, question: str, first: tuple[str, Array], second: tuple[str, Array], result: str
) -> Array:
    """Asks each kind of joint one question about two arrays of coordinates ("q" or "v")."""
    size = {"q": model.num_positions, "v": model.num_velocities}
    (space_a, a), (space_b, b) = first, second
    a = as_coordinates(space_a, a, size[space_a], model.dtype, model.num_world_axes)
    b = as_coordinates(space_b, b, size[space_b], model.dtype, model.num_world_axes)
    groups = groups_with_coordinates(model)
    if not groups:
        return a
    parts, indices = [], []
    for group in groups:
        rows = {"q": group.q_indices, "v": group.v_indices}
        answer: Callable[[Array, Array], Array] = getattr(JOINT_KINDS[group.kind], question)
        asked = ca.with_equal_columns(gather(a, rows[space_a]), gather(b, rows[space_b]))
        part = answer(*asked)
        parts.append(part.reshape(1, *part.shape))
        indices.append(rows[result])
    return in_coordinate_order(parts, indices)[0]
