"""The state of a model: positions, velocities and time, and nothing else."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel, as_coordinates, zero_where_locked


class State(eqx.Module):
    """q (nq,), v (nv,) and time in s."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"]
    time: Float[Array, "*batch"]


def default_state(model: MultibodyModel) -> State:
    """The default positions, at rest, at time zero."""
    return State(
        model.parameters.default_positions,
        jnp.zeros(model.num_velocities, model.dtype),
        jnp.zeros((), model.dtype),
    )


def as_state(model: MultibodyModel, state: State) -> State:
    """The state in the model's dtype, sizes checked, locked joints at rest: a program's carry must not change type."""
    return State(
        as_coordinates("state.q", state.q, model.num_positions, model.dtype),
        zero_where_locked(model, as_coordinates("state.v", state.v, model.num_velocities, model.dtype)),
        jnp.asarray(state.time, model.dtype),
    )
