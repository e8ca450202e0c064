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


def clip(
    corners: Float[Array, "k corners n"], num_corners: Int[Array, " n"], depth: Float[Array, "corners n"], tolerance: float
) -> tuple[Float[Array, "k corners+1 n"], Int[Array, " n"]]:
    """The part of each polygon where the depth of its corners is positive, with one more slot for a corner.

    Each corner that is deep enough stays, and after it comes the point where the edge to the next corner crosses depth
    0 (Sutherland and Hodgman 1974). Corners count as deep enough down to -`tolerance`: rounding could otherwise give
    corners in the plane signs that alternate, and so more crossings than there are slots.
    """
    num_slots = corners.shape[1]
    ahead, depth_ahead = jnp.roll(corners, -1, axis=1), jnp.roll(depth, -1, axis=0)
    is_inside, is_inside_ahead = depth >= -tolerance, depth_ahead >= -tolerance
    is_kept = is_inside & (jnp.arange(num_slots)[:, None] < num_corners)
    is_crossed = (is_inside != is_inside_ahead) & (num_corners > 0)
    here = jnp.where(is_inside, jnp.maximum(depth, 0.0), -depth)
    there = jnp.where(is_inside_ahead, jnp.maximum(depth_ahead, 0.0), -depth_ahead)
    share = jnp.where(is_crossed, here, 0.0) / jnp.where(is_crossed, here + there, 1.0)
    crossings = corners + share * (ahead - corners)
    listed = jnp.stack([corners, crossings], axis=2).reshape(len(corners), 2 * num_slots, -1)
    is_listed = jnp.stack([is_kept, is_crossed], axis=1).reshape(2 * num_slots, -1)
    place = jnp.tril(jnp.ones((2 * num_slots, 2 * num_slots), int), -1) @ is_listed.astype(int)
    count = is_listed.sum(axis=0)
    slot = jnp.arange(num_slots + 1)[:, None]
    wanted = jnp.where(slot < count, slot, 0)
    goes = is_listed & (place == wanted[:, None])  # slot, listed, n
    clipped = (jnp.where(goes, 1.0, 0.0) * listed[:, None]).sum(axis=2)
    return clipped, jnp.minimum(count, num_slots + 1)


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
