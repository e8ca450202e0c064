"""Convex polygons in a fixed number of corners: components first, then corners, then polygons.

A polygon with fewer corners repeats its first one at the end. Corners may have more components than the three of
position; those are linear over the polygon, as a pressure is.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.spatial import component_algebra as ca

SMALLEST_AREA = 1e-14  # m²; Drake's discrete contact leaves out faces that are smaller


def area_and_centroid(
    corners: Float[Array, "k corners n"], normal: Float[Array, "3 n"]
) -> tuple[Float[Array, " n"], Float[Array, "k n"]]:
    """Areas, and means of the components over polygons that wind counterclockwise about unit normals.

    Triangles (0, i, i + 1) cover a polygon: each weighs its area, and counts for the mean of its corners. Where the area
    is too small to divide by, the centroid is the first corner.
    """
    arms = corners[:, 1:] - corners[:, :1]
    products = ca.cross(arms[:3, :-1], arms[:3, 1:])
    weights = 0.5 * ca.dot(products, jnp.broadcast_to(normal[:, None], products.shape))
    area = weights.sum(axis=0)
    moment = (weights * (arms[:, :-1] + arms[:, 1:])).sum(axis=1) / 3.0
    is_small = area <= SMALLEST_AREA
    offset = jnp.where(is_small, 0.0, moment / jnp.where(is_small, 1.0, area))
    return area, corners[:, 0] + offset


def edge_table() -> tuple[Int[np.ndarray, "16 4"], Int[np.ndarray, "16 4"], Int[np.ndarray, " 16"]]:
    """Ends of a tetrahedron's edges that a plane cuts, in the order of the polygon's corners, and their number.

    Row sum(2^i) over the corners i above the plane. The first end is above, the second below. The polygon winds
    counterclockwise about the plane's normal, which points up. A missing fourth corner repeats the first.
    """
    above_ends, below_ends, number = np.zeros((16, 4), int), np.zeros((16, 4), int), np.zeros(16, int)
    reference = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for row in range(1, 15):
        above = [i for i in range(4) if row >> i & 1]
        below = [i for i in range(4) if not row >> i & 1]
        edges = [(above[0], below[0]), (above[0], below[-1]), (above[-1], below[-1]), (above[-1], below[0])]
        edges = list(dict.fromkeys(edges))
        if len(edges) == 2:  # one corner against three
            edges = [(i, j) for i in above for j in below]
        middles = np.array([reference[[i, j]].mean(axis=0) for i, j in edges])
        up = reference[above].mean(axis=0) - reference[below].mean(axis=0)
        if np.cross(middles[1] - middles[0], middles[2] - middles[0]) @ up < 0.0:
            edges.reverse()
        number[row] = len(edges)
        edges += edges[: 4 - len(edges)]
        above_ends[row], below_ends[row] = np.transpose(edges)
    return above_ends, below_ends, number
