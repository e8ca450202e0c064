"""The direction between the nearest points of two shapes apart, after Gilbert, Johnson and Keerthi (1988)."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.spatial import safe_divide, safe_norm, safe_normalize

from .choices import chosen_columns, direction_rounding, dot_columns, index_of_largest
from .convex_contact import ConvexPair, farthest_points

ITERATIONS = 4
EDGES = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))
SimplexParts = Sequence[tuple[int, ...]]
FACES = ((0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3))


def gap_along(pair: ConvexPair, direction: Float[Array, "3 h *n"]) -> Float[Array, "3 h *n"]:
    """Vector from A's farthest point along a direction to B's farthest point against it."""
    a, b = farthest_points(pair, direction)
    return b - a


class Nearest(NamedTuple):
    """Four points, the one that matters least, and the point of their hull that is nearest to the origin."""

    corners: Float[Array, "3 4 *n"]
    spare: Int[Array, "*n"]
    point: Float[Array, "3 *n"]


def nearest_direction(
    pair: ConvexPair, gaps: Float[Array, "3 4 *n"], shift: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 *n"], Float[Array, "*n"], Float[Array, "3 4 *n"]]:
    """Direction and distance between the nearest points of A and shifted B, from four known gaps; and the last four.

    The distance is that between the points found, which is at least the distance of the shapes.
    """

    def improve(_: int, found: Nearest) -> Nearest:
        new = gap_along(pair, safe_normalize(found.point, 0)[:, None]) + shift[:, None]
        is_spare = lax.broadcasted_iota(jnp.int32, found.corners.shape[1:], 0) == found.spare
        return nearest_point(jnp.where(is_spare, new, found.corners))

    found = lax.fori_loop(0, ITERATIONS, improve, nearest_point(gaps + shift[:, None]))
    return safe_normalize(found.point, 0), safe_norm(found.point, 0), found.corners - shift[:, None]


def nearest_point(corners: Float[Array, "3 4 *n"]) -> Nearest:
    """The point nearest to the origin on the edges and faces of a tetrahedron that does not contain it."""
    p, q = (corners_of(corners, EDGES, k) for k in range(2))
    on_edges = jnp.clip(-safe_divide(dot_columns(p, q - p), dot_columns(q - p, q - p)), 0.0, 1.0)
    of_edges = p + on_edges * (q - p)

    a, b, c = (corners_of(corners, FACES, k) for k in range(3))
    b, c = b - a, c - a
    bb, bc, cc, ab, ac = dot_columns(b, b), dot_columns(b, c), dot_columns(c, c), dot_columns(a, b), dot_columns(a, c)
    area = bb * cc - bc * bc
    u, v = safe_divide(bc * ac - cc * ab, area), safe_divide(bc * ab - bb * ac, area)
    of_faces = a + u * b + v * c
    is_inside = (area > 0.0) & (u > 0.0) & (v > 0.0) & (u + v < 1.0)

    squared = jnp.concatenate(
        [dot_columns(of_edges, of_edges), jnp.where(is_inside, dot_columns(of_faces, of_faces), jnp.inf)]
    )
    rounding = direction_rounding(squared.dtype)
    index, _ = index_of_largest(-squared, 0.0, rounding)
    weights = jnp.concatenate(
        [
            weights_of(EDGES, [1.0 - on_edges, on_edges]),
            weights_of(FACES, [1.0 - u - v, u, v]),
        ],
        axis=1,
    )
    spare, _ = index_of_largest(-chosen_columns(index, weights, axis=1), rounding)
    return Nearest(corners, spare, chosen_columns(index, jnp.concatenate([of_edges, of_faces], axis=1), axis=1))


def corners_of(corners: Float[Array, "3 4 *n"], parts: SimplexParts, k: int) -> Float[Array, "3 m *n"]:
    """The k-th corner of each part."""
    return jnp.stack([corners[:, part[k]] for part in parts], axis=1)


def weights_of(parts: SimplexParts, weights: list[Float[Array, "m *n"]]) -> Float[Array, "4 m *n"]:
    """Spreads weights of the parts' corners over all four corners."""
    total = jnp.zeros((4, *weights[0].shape), weights[0].dtype)
    for k, weight in enumerate(weights):
        is_corner = np.array([[part[k] == i for part in parts] for i in range(4)])
        total = total + is_corner.reshape(*is_corner.shape, *(1,) * (weight.ndim - 1)).astype(weight.dtype) * weight
    return total
