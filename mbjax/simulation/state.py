"""The state of a model: positions, velocities and time, and nothing else."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import of_one_model, require_one_model
from mbjax.model import MultibodyModel, as_array, as_coordinates, zero_where_locked


class State(eqx.Module):
    """q (nq,), v (nv,) and time in s."""

    q: Float[Array, "*batch nq"]
    v: Float[Array, "*batch nv"]
    time: Float[Array, "*batch"]


@of_one_model
def default_state(model: MultibodyModel) -> State:
    """The default positions, at rest, at time zero."""
    return State(
        model.parameters.default_positions,
        jnp.zeros(model.num_velocities, model.dtype),
        jnp.zeros((), model.dtype),
    )


def as_state(model: MultibodyModel, state: State) -> State:
    """The state in the model's dtype, sizes checked, locked joints at rest: a program's carry must not change type."""
    require_one_model(model)
    require_state(state)
    return State(
        as_coordinates("state.q", state.q, model.num_positions, model.dtype),
        zero_where_locked(model, as_coordinates("state.v", state.v, model.num_velocities, model.dtype)),
        as_time(state.time, model.dtype),
    )


def as_time(time: Any, dtype: Any) -> Array:
    """The time in s, of one world."""
    array = as_array("state.time", time, 1, dtype)
    if array.shape != ():
        raise ModelError(f"state.time has shape {array.shape}, one world has (). Use jax.vmap for a batch.")
    return array


def require_state(state: Any, call: str = "") -> None:
    """Refuses what is no `State`, and says how to make one of it."""
    if isinstance(state, State):
        return
    hint = "make one by mbjax.State(q, v, time) or mbjax.default_state(model)"
    if isinstance(state, tuple) and state and isinstance(state[0], State):
        hint = "mbjax.step returns (state, outputs), take the first"
    elif hasattr(state, "final_state"):
        hint = "take its final_state"
    elif hasattr(state, "state"):
        hint = "take its state"
    place = f"{call}: " if call else ""
    raise ModelError(f"{place}the state must be a mbjax.State, got {type(state).__name__}: {hint}.")
