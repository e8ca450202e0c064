"""Constraints switched on and off: a number each, so that nothing recompiles and worlds of a batch may differ."""

import equinox as eqx
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Bool

from mbjax.errors import ModelError

from .multibody_model import MultibodyModel


def constraint_active_status(model: MultibodyModel, constraint: str | int) -> Bool[Array, ""]:
    """Whether a constraint of the model acts."""
    return model.constraint(constraint).active > 0.5


def set_constraint_active_status(model: MultibodyModel, constraint: str | int, status: ArrayLike) -> MultibodyModel:
    """The model with a constraint switched on or off. Motion jumps with it: derivatives with respect to it are zero."""
    index = model.constraint_index(constraint)
    status = jnp.asarray(status)
    if status.shape != ():
        raise ModelError(
            f"set_constraint_active_status('{model.constraints[index].name}'): status must be one truth value, got "
            f"shape {status.shape}. Use jax.vmap for a batch of worlds."
        )
    active = status.astype(bool).astype(model.dtype)
    return eqx.tree_at(lambda m: m.constraints[index].active, model, active)
