"""Reads positions and velocities of a state, or sets them in a new state; whole or of one model instance."""

import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.execution import takes_model_first
from mbjax.model import (
    MultibodyModel,
    as_coordinates,
    positions_from_array,
    require_positions,
    require_velocities,
    set_positions_in_array,
    set_velocities_in_array,
    velocities_from_array,
)

from .state import State, require_state, with_coordinates


def positions(model: MultibodyModel, state: State, model_instance: str | int | None = None) -> Float[Array, " nq"]:
    """Positions q of the state, or of one model instance."""
    require_state(state, "positions")
    if model_instance is not None:
        return positions_from_array(model, model_instance, state.q)
    return as_coordinates("state.q", state.q, model.num_positions, model.dtype)


def velocities(model: MultibodyModel, state: State, model_instance: str | int | None = None) -> Float[Array, " nv"]:
    """Velocities v of the state, or of one model instance."""
    require_state(state, "velocities")
    if model_instance is not None:
        return velocities_from_array(model, model_instance, state.v)
    return as_coordinates("state.v", state.v, model.num_velocities, model.dtype)


def positions_and_velocities(
    model: MultibodyModel, state: State, model_instance: str | int | None = None
) -> Float[Array, " nx"]:
    """Positions and velocities x = [q, v] of the state, or of one model instance."""
    return jnp.concatenate([positions(model, state, model_instance), velocities(model, state, model_instance)])


def set_positions(
    model: MultibodyModel, state: State, q: Float[ArrayLike, " nq"], model_instance: str | int | None = None
) -> State:
    """Sets positions of the whole model, or of one instance, in a new state."""
    require_state(state, "set_positions")
    require_positions(model, "set_positions", q, model_instance)
    if model_instance is not None:
        return with_coordinates(state, q=set_positions_in_array(model, model_instance, state.q, q))
    return with_coordinates(state, q=as_coordinates("q", q, model.num_positions, model.dtype))


def set_velocities(
    model: MultibodyModel, state: State, v: Float[ArrayLike, " nv"], model_instance: str | int | None = None
) -> State:
    """Sets velocities of the whole model, or of one instance, in a new state."""
    require_state(state, "set_velocities")
    require_velocities(model, "set_velocities", v, model_instance)
    if model_instance is not None:
        return with_coordinates(state, v=set_velocities_in_array(model, model_instance, state.v, v))
    return with_coordinates(state, v=as_coordinates("v", v, model.num_velocities, model.dtype))


@takes_model_first
def set_positions_and_velocities(
    model: MultibodyModel, state: State, x: Float[ArrayLike, " nx"], model_instance: str | int | None = None
) -> State:
    """Sets x = [q, v] of the whole model, or of one instance, in a new state."""
    of = model if model_instance is None else model.model_instance(model_instance)
    x = as_coordinates("x = [q, v]", x, of.num_positions + of.num_velocities, model.dtype)
    state = set_positions(model, state, x[: of.num_positions], model_instance)
    return set_velocities(model, state, x[of.num_positions :], model_instance)
