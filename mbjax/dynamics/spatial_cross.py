"""Rates of motions and forces fixed to a moving body, as components first: Featherstone 2008, §2.9."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial.component_algebra import cross


def motion_cross(V: Float[Array, "6 *n"], X: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x X: the rate of a motion X that moves along with V, both about one point fixed in the world."""
    w, v = V[:3], V[3:]
    return jnp.concatenate([cross(w, X[:3]), cross(w, X[3:]) + cross(v, X[:3])])


def force_cross(V: Float[Array, "6 *n"], F: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x* F: the rate of a force F that moves along with V."""
    w, v = V[:3], V[3:]
    return jnp.concatenate([cross(w, F[:3]) + cross(v, F[3:]), cross(w, F[3:])])
