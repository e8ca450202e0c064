"""Reads and replaces the part of q, v or u that belongs to one model instance, in the whole array."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import takes_model_first
from mbjax.number_rules import shown

from .multibody_model import MultibodyModel

InstanceLike = str | int


@takes_model_first
def positions_from_array(
    model: MultibodyModel, model_instance: InstanceLike, q: Float[Array, " nq"]
) -> Float[Array, " nqi"]:
    """Positions of one model instance, in the order they have in q."""
    return as_coordinates("q", q, model.num_positions, model.dtype)[model.model_instance(model_instance).q]


@takes_model_first
def set_positions_in_array(
    model: MultibodyModel, model_instance: InstanceLike, q: Float[Array, " nq"], q_instance: Float[ArrayLike, " nqi"]
) -> Float[Array, " nq"]:
    """Returns q with the positions of one model instance replaced."""
    instance = model.model_instance(model_instance)
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    what = f"q_instance of '{instance.name}'"
    return q.at[instance.q].set(as_coordinates(what, q_instance, instance.num_positions, model.dtype))


@takes_model_first
def velocities_from_array(
    model: MultibodyModel, model_instance: InstanceLike, v: Float[Array, " nv"]
) -> Float[Array, " nvi"]:
    """Velocities of one model instance, in the order of v; also for generalized forces and accelerations."""
    return as_coordinates("v", v, model.num_velocities, model.dtype)[model.model_instance(model_instance).v]


@takes_model_first
def set_velocities_in_array(
    model: MultibodyModel, model_instance: InstanceLike, v: Float[Array, " nv"], v_instance: Float[ArrayLike, " nvi"]
) -> Float[Array, " nv"]:
    """Returns v with the velocities of one instance replaced; also for generalized forces and accelerations."""
    instance = model.model_instance(model_instance)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    what = f"v_instance of '{instance.name}'"
    return v.at[instance.v].set(as_coordinates(what, v_instance, instance.num_velocities, model.dtype))


@takes_model_first
def actuation_from_array(
    model: MultibodyModel, model_instance: InstanceLike, u: Float[Array, " nu"]
) -> Float[Array, " nui"]:
    """Actuation of one model instance, in the order of its actuators' indices."""
    return as_coordinates("u", u, model.num_actuators, model.dtype)[model.model_instance(model_instance).u]


@takes_model_first
def set_actuation_in_array(
    model: MultibodyModel, model_instance: InstanceLike, u: Float[Array, " nu"], u_instance: Float[ArrayLike, " nui"]
) -> Float[Array, " nu"]:
    """Returns u with the actuation of one model instance replaced."""
    instance = model.model_instance(model_instance)
    u = as_coordinates("u", u, model.num_actuators, model.dtype)
    what = f"u_instance of '{instance.name}'"
    return u.at[instance.u].set(as_coordinates(what, u_instance, instance.num_actuators, model.dtype))


def as_coordinates(what: str, x: ArrayLike, size: int, dtype: DTypeLike, num_world_axes: int = 0) -> Array:
    """Coordinates in the model's dtype; raises `ModelError` for a wrong size while the program is traced.

    They are those of one world or, inside `for_worlds`, of several on a last axis.
    """
    require_precision(dtype)
    if isinstance(x, jax.Array) and x.dtype == dtype and not x.weak_type:
        array = x
    else:
        array = as_array(what, x, size, dtype)
    if array.shape[:1] != (size,) or array.ndim != 1 + num_world_axes:
        batch = " Functions take one world: use jax.vmap for a batch." if array.ndim > 1 else ""
        raise ModelError(f"{what} has shape {array.shape}, the model needs ({size},).{batch}")
    return array


def require_precision(dtype: DTypeLike) -> None:
    """Raises `ModelError` for a model of 64 bits where JAX makes arrays of 32: operations would mix the two."""
    if np.dtype(dtype) == np.float64 and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        raise ModelError(
            "the model has numbers of 64 bits, but JAX has 64 bits switched off. Switch them on before anything else, "
            'by jax.config.update("jax_enable_x64", True), or take mbjax.astype(model, jnp.float32).'
        )


def as_array(what: str, x: Any, size: int, dtype: DTypeLike) -> Array:
    """Numbers as an array in the model's dtype; raises `ModelError` for anything else."""
    try:
        kind = None if isinstance(x, str) else jnp.result_type(x) if hasattr(x, "dtype") else None
        if isinstance(x, str) or (kind is not None and jnp.issubdtype(kind, jnp.complexfloating)):
            raise TypeError
        return jnp.asarray(x, dtype=dtype)
    except (TypeError, ValueError):
        hint = " From a state, pass state.q or state.v." if hasattr(x, "q") and hasattr(x, "v") else ""
        raise ModelError(f"{what} must be an array of {size} numbers, got {shown(x)}.{hint}") from None
