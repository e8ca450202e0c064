"""What the general method asks of a convex shape: its farthest point along a direction, and how that point moves.

A shape is a core, given by its support points, with a margin around it. Directions and points are in the shape's
frame, components first. Boxes, capsules and `Convex` are hulls of vertices; cylinders and ellipsoids are smooth
where they can be.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.spatial.safe_math import safe_divide, safe_norm, safe_normalize

from .frozen_choice import chosen, first_largest, sign

CORNERS = [[x, y, z] for x in (1.0, -1.0) for y in (1.0, -1.0) for z in (1.0, -1.0)]


class Corners(NamedTuple):
    """Support points found by the search, and their weights in the nearest point: both held in derivatives."""

    points: Float[Array, "3 s *n"]
    weights: Float[Array, "s *n"]


class ConvexShape(NamedTuple):
    """A core, its margin, the core's farthest point along a direction, and how that point moves.

    `moving` is that point near the direction the search found, as a smooth function of the direction, which has
    `turned` since. Where the point may be anywhere on an edge or a face, it starts at the mean of the corners and
    slides along: `stiff` (1/m) times length² metres a radian, so far that the direction stays normal to the face.
    """

    core: Callable[[Array], Array]
    margin: Callable[[Array], Array]
    support: Callable[[Array, Array], Array]
    moving: Callable[[Array, Array, Array, Corners, Array], Array]


def farthest_vertex(vertices: Float[Array, "3 m *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """The first of the farthest."""
    return chosen(first_largest(jnp.sum(vertices * direction[:, None], axis=0))[0], vertices, axis=1)


def moving_vertex(
    vertices: Float[Array, "3 m *n"],
    direction: Float[Array, "3 *n"],
    turned: Float[Array, "3 *n"],
    corners: Corners,
    stiff: Array,
) -> Float[Array, "3 *n"]:
    """The mean of the corners, which shifts to those that get ahead: the softmax of the heights, linearized."""
    is_corner = jnp.all(vertices[:, :, None] == corners.points[:, None], axis=0)
    share = safe_divide(corners.weights, jnp.sum(is_corner, axis=0).astype(vertices.dtype))
    weights = lax.stop_gradient(jnp.sum(jnp.where(is_corner, share, 0.0), axis=1))
    moved = vertices - lax.stop_gradient(vertices)
    ahead = jnp.sum(moved * direction[:, None] + lax.stop_gradient(vertices) * turned[:, None], axis=0)
    ahead = ahead - jnp.sum(weights * ahead, axis=0)
    return jnp.sum(vertices * (weights * (1.0 + stiff * ahead))[None], axis=1)


def farthest_of_cylinder(size: Float[Array, "2 *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """On a rim; on the axis of an end where the direction is along it."""
    radial = safe_normalize(direction[:2], 0)
    return jnp.stack([size[0] * radial[0], size[0] * radial[1], size[1] * sign(direction[2])])


def moving_of_cylinder(
    size: Float[Array, "2 *n"],
    direction: Float[Array, "3 *n"],
    turned: Float[Array, "3 *n"],
    corners: Corners,
    stiff: Array,
) -> Float[Array, "3 *n"]:
    """Along the rim; along a straight line of the side, or anywhere on an end, where the direction is normal to it."""
    frozen, frozen_size = lax.stop_gradient((direction - turned, size))
    start = jnp.sum(corners.points * corners.weights[None], axis=1)
    flat = direction_tolerance(size.dtype)
    line = jnp.clip(start[2] / frozen_size[1], -1.0, 1.0)
    along = jnp.where(
        jnp.abs(frozen[2]) < flat,
        line + stiff * (1.0 - line * line) * frozen_size[1] * turned[2],
        sign(frozen[2]),
    )
    disc = jnp.stack([start[k] / frozen_size[0] + stiff * frozen_size[0] * turned[k] for k in range(2)])
    is_end = safe_norm(frozen[:2], 0) < flat
    radial = jnp.where(is_end, disc, safe_normalize(direction[:2], 0))
    return jnp.stack([size[0] * radial[0], size[0] * radial[1], size[1] * along])


def farthest_of_ellipsoid(size: Float[Array, "3 *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """S² n / |S n| with the semi-axes S."""
    return size * safe_normalize(size * direction, 0)


def moving_of_ellipsoid(
    size: Float[Array, "3 *n"],
    direction: Float[Array, "3 *n"],
    turned: Float[Array, "3 *n"],
    corners: Corners,
    stiff: Array,
) -> Float[Array, "3 *n"]:
    """The same point: it is smooth."""
    del turned, corners, stiff
    return farthest_of_ellipsoid(size, direction)


def direction_tolerance(dtype: jnp.dtype) -> float:
    """The angle within which a direction counts as normal to a face or a line, in rad."""
    return 4.0 * float(jnp.finfo(dtype).eps) ** 0.5


def box_vertices(size: Float[Array, "3 *n"]) -> Float[Array, "3 8 *n"]:
    """The corners; `size` holds full lengths."""
    return jnp.stack([jnp.stack([s * x for s, x in zip(signs, 0.5 * size, strict=True)]) for signs in CORNERS], axis=1)


def segment_ends(size: Float[Array, "2 *n"]) -> Float[Array, "3 2 *n"]:
    """Of a capsule's axis."""
    half, zero = 0.5 * size[1], jnp.zeros_like(size[1])
    return jnp.stack([jnp.stack([zero, zero, half]), jnp.stack([zero, zero, -half])], axis=1)


def centre_point(size: Float[Array, "1 *n"]) -> Float[Array, "3 1 *n"]:
    """Of a sphere."""
    return jnp.zeros_like(jnp.stack([size, size, size]))


CONVEX_SHAPES = {
    "Sphere": ConvexShape(centre_point, lambda size: size[0], farthest_vertex, moving_vertex),
    "Capsule": ConvexShape(segment_ends, lambda size: size[0], farthest_vertex, moving_vertex),
    "Box": ConvexShape(box_vertices, lambda size: 0.0 * size[0], farthest_vertex, moving_vertex),
    "Convex": ConvexShape(lambda size: size, lambda size: 0.0 * size[0, 0], farthest_vertex, moving_vertex),
    "Cylinder": ConvexShape(
        lambda size: jnp.stack([size[0], 0.5 * size[1]]),
        lambda size: 0.0 * size[0],
        farthest_of_cylinder,
        moving_of_cylinder,
    ),
    "Ellipsoid": ConvexShape(lambda size: size, lambda size: 0.0 * size[0], farthest_of_ellipsoid, moving_of_ellipsoid),
}
