"""Velocity projection: the velocity nearest to a given one that satisfies the constraints at a configuration."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .row_inverse import DEPENDENT, OPEN, calc_row_scales, differentiable_pseudo_inverse, relative_rounding


def project_velocity(v: Float[Array, " nv"], G: Float[Array, "nc nv"], W: Float[Array, "nv nv"]) -> Float[Array, " nv"]:
    """Projects v to v + x with G (v + x) = 0 and the least xᵀ W x; of several such x takes the shortest.

    The largest weight in W is 1; it may have zeros. x is the shortest that satisfies the rows, and a change y in their
    null space, onto which P projects: P W P y = -P W x, of which y is the shortest too. The rank of G does not depend
    on W, so what is left of G v is rounding, whatever the weights.
    """
    G = calc_row_scales(G)[:, None] * G
    inverse = differentiable_pseudo_inverse(G, relative_rounding(G, DEPENDENT))
    in_rows = inverse @ G
    P = jnp.eye(v.size, dtype=v.dtype) - in_rows
    curvature = P @ W @ P + in_rows  # in_rows makes the largest singular value 1
    x = -inverse @ (G @ v)
    y = -differentiable_pseudo_inverse(curvature, relative_rounding(W, OPEN)) @ (P @ (W @ x))
    return v + x + P @ y
