"""Separation of two boxes along fifteen axes: the three face normals of each, and nine products of edges.

Boxes are given by half lengths in the frame of A: B's axes are the columns of R_AB, and its centre is p_AB. The
separation along an axis is a lower bound on the signed distance. Where the boxes overlap, the largest of the fifteen is
that distance (Gottschalk, Lin and Manocha 1996); the axes are the face normals of the Minkowski difference.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_sqrt


def face_separations(
    half_A: Float[Array, "3 *n"], half_B: Float[Array, "3 *n"], R_AB: Float[Array, "3 3 *n"], p_AB: Float[Array, "3 *n"]
) -> Float[Array, "6 *n"]:
    """Separations along the three axes of A, then the three of B."""
    overlap = jnp.abs(R_AB)
    along_A = jnp.abs(p_AB) - half_A - ca.matvec(overlap, half_B)
    along_B = jnp.abs(ca.transposed_matvec(R_AB, p_AB)) - half_B - ca.transposed_matvec(overlap, half_A)
    return jnp.concatenate([along_A, along_B])


def edge_separations(
    half_A: Float[Array, "3 *n"],
    half_B: Float[Array, "3 *n"],
    R_AB: Float[Array, "3 3 *n"],
    p_AB: Float[Array, "3 *n"],
    rounding: Float[Array, "*n"],
) -> Float[Array, "3 3 *n"]:
    """Separations along A's axis i crossed with B's axis j, less what rounding may add if they are nearly parallel.

    The normalization uses |a_i x b_j|² = 1 - R_ij²; `rounding` bounds the error of a length.
    """
    overlap = jnp.abs(R_AB)
    after, last = jnp.roll(R_AB, -1, 0), jnp.roll(R_AB, -2, 0)
    p_after, p_last = jnp.roll(p_AB, -1, 0)[:, None], jnp.roll(p_AB, -2, 0)[:, None]
    reach_A = jnp.roll(half_A, -1, 0)[:, None] * jnp.abs(last) + jnp.roll(half_A, -2, 0)[:, None] * jnp.abs(after)
    b_after, b_last = jnp.roll(half_B, -1, 0)[None], jnp.roll(half_B, -2, 0)[None]
    reach_B = b_after * jnp.roll(overlap, -2, 1) + b_last * jnp.roll(overlap, -1, 1)
    gap = jnp.abs(p_last * after - p_after * last) - reach_A - reach_B - rounding
    length = safe_sqrt(after * after + last * last)
    return safe_divide(gap, length, -jnp.inf)
