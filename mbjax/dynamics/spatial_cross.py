"""Rates of motions and forces fixed to a moving body, as components first: Featherstone 2008, §2.9.

Written out over the components, so that each result is one stack: XLA's CPU backend makes of sums of stacks a loop with
a branch for every number.
"""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial.component_algebra import cross_components


def motion_cross(V: Float[Array, "6 *n"], X: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x X: the rate of a motion X that moves along with V, both about one point fixed in the world."""
    (w, v), (x, y) = halves(V), halves(X)
    return jnp.stack([*cross_components(w, x), *plus(cross_components(w, y), cross_components(v, x))])


def force_cross(V: Float[Array, "6 *n"], F: Float[Array, "6 *n"]) -> Float[Array, "6 *n"]:
    """V x* F: the rate of a force F that moves along with V."""
    (w, v), (t, f) = halves(V), halves(F)
    return jnp.stack([*plus(cross_components(w, t), cross_components(v, f)), *cross_components(w, f)])


def halves(X: Float[Array, "6 *n"]) -> tuple[Sequence[Array], Sequence[Array]]:
    """Angular and linear part, or torque and force, each with its components apart."""
    components = jnp.unstack(X)
    return components[:3], components[3:]


def plus(a: Sequence[Array], b: Sequence[Array]) -> list[Array]:
    """The sum of components already apart."""
    return [x + y for x, y in zip(a, b, strict=True)]
