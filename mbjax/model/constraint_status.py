"""Switches constraints on and off by a number each: nothing recompiles, and worlds of a batch may differ."""

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Bool

from mbjax.execution import of_one_model, takes_model_first

from .leaf_setting import truth_value
from .multibody_model import MultibodyModel


@of_one_model
def constraint_active_status(model: MultibodyModel, constraint: str | int) -> Bool[Array, ""]:
    """Whether a constraint of the model is active."""
    return model.constraint(constraint).active > 0.5


@takes_model_first
def set_constraint_active_status(model: MultibodyModel, constraint: str | int, status: ArrayLike) -> MultibodyModel:
    """Switches a constraint on or off. Motion jumps with it: derivatives with respect to `status` are zero."""
    index = model.constraint_index(constraint)
    label = f"set_constraint_active_status('{model.constraints[index].name}')"
    status = truth_value(model, label, "status", status)
    active = status.astype(bool).astype(model.dtype)
    return eqx.tree_at(lambda m: m.constraints[index].active, model, active)
