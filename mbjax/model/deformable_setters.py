"""Setters of deformable bodies: they return a new model."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp

from mbjax.errors import ModelError

from .leaf_setting import truth_value
from .multibody_model import MultibodyModel


def set_deformable_enabled(model: MultibodyModel, body: str | int, enabled: Any) -> MultibodyModel:
    """Switches a deformable body on or off; while it is off, its nodes stay where they are and act on nothing."""
    value = truth_value(model, "set_deformable_enabled", "enabled", enabled)
    if model.deformables is None:
        raise ModelError("set_deformable_enabled: the model has no deformable bodies.")
    index = model.deformables.index(body, "set_deformable_enabled")
    new = model.deformables.enabled.at[index].set(jnp.asarray(value, model.dtype))
    return eqx.tree_at(lambda m: m.deformables.enabled, model, new)
