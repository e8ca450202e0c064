"""Convex polygons in a fixed number of corners: components first, then corners, then polygons.

A polygon with fewer corners repeats its first one at the end. Corners may have more components than the three of
position; those are linear over the polygon, as a pressure is.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca

SMALLEST_AREA = 1e-14  # m²; Drake's discrete contact leaves out faces that are smaller


def area_and_centroid(
    corners: Float[Array, "k corners n"], normal: Float[Array, "3 n"]
) -> tuple[Float[Array, " n"], Float[Array, "k n"]]:
    """Areas, and means of the components over polygons that wind counterclockwise about unit normals.

    Triangles (0, i, i + 1) cover a polygon: each weighs its area, and counts for the mean of its corners. Where the
    area is too small to divide by, the centroid is the first corner.
    """
    arms = corners[:, 1:] - corners[:, :1]
    products = ca.cross(arms[:3, :-1], arms[:3, 1:])
    weights = 0.5 * (normal[0] * products[0] + normal[1] * products[1] + normal[2] * products[2])
    area = weights.sum(axis=0)
    moment = (weights * (arms[:, :-1] + arms[:, 1:])).sum(axis=1) / 3.0
    is_small = area <= SMALLEST_AREA
    offset = jnp.where(is_small, 0.0, moment / jnp.where(is_small, 1.0, area))
    return area, corners[:, 0] + offset
