"""What locked joints make of a mass matrix and of Jacobians."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel, locked_velocities


def held_inertia(model: MultibodyModel, M: Float[Array, "nv nv"]) -> Float[Array, "nv nv"]:
    """The mass matrix of the joints that are free, with ones on the diagonal for those that are locked."""
    locked = locked_velocities(model)
    return jnp.where(locked[:, None] | locked, jnp.eye(len(M), dtype=M.dtype), M)


def free_columns(model: MultibodyModel, J: Float[Array, "n nv"]) -> Float[Array, "n nv"]:
    """The Jacobian with zeros for joints that are locked."""
    return jnp.where(locked_velocities(model), 0.0, J)
