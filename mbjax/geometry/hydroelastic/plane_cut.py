"""Polygons in which a plane cuts tetrahedra."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.spatial import safe_divide

from .polygons import edge_table

ABOVE_ENDS, BELOW_ENDS, NUM_EDGES = edge_table()
POWERS = (1, 2, 4, 8)


def cut_tetrahedra(
    corners: Float[Array, "k 4 n"], heights: Float[Array, "4 n"]
) -> tuple[Float[Array, "k 4 n"], Int[Array, " n"]]:
    """Polygons where the heights of the corners over planes change sign, and the numbers of their corners.

    A corner at height 0 counts as below. They wind counterclockwise about the planes' normals.
    """
    row = sum(jnp.where(height > 0.0, power, 0) for height, power in zip(heights, POWERS, strict=True))
    above, below = jnp.asarray(ABOVE_ENDS.T)[:, row], jnp.asarray(BELOW_ENDS.T)[:, row]
    height_above = jnp.take_along_axis(heights, above, axis=0)
    height_below = jnp.take_along_axis(heights, below, axis=0)
    share = safe_divide(height_above, height_above - height_below)
    start = jnp.take_along_axis(corners, above[None], axis=1)
    end = jnp.take_along_axis(corners, below[None], axis=1)
    return start + share * (end - start), jnp.asarray(NUM_EDGES)[row]
