"""Rates of motions and forces fixed to a moving body, as components first: Featherstone 2008, §2.9.

Written out over the components, so that each result is one stack: XLA's CPU backend makes of sums of stacks a loop with
a branch for every number.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import written_out as wo


def motion_cross(V: Float[Array, "6 *n"], X: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x X: the rate of a motion X that moves along with V, both about one point fixed in the world."""
    return jnp.stack(wo.motion_cross(jnp.unstack(V), jnp.unstack(X)))


def force_cross(V: Float[Array, "6 *n"], F: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x* F: the rate of a force F that moves along with V."""
    return jnp.stack(wo.force_cross(jnp.unstack(V), jnp.unstack(F)))
