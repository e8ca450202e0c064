"""Convex shapes for the general method: their farthest points along a direction, and the features there.

A shape is a core, given by its support points, with a margin around it. A feature is a piece of the core's surface,
extended without end: a corner, an edge or a face of a polyhedron; a rim, a line of the side or an end of a cylinder.
It consists of a point, which may depend on the direction, and up to two straight tangents. Directions and points are
in the shape's frame, components first.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_norm, safe_normalize

from .choices import chosen_columns, dot_columns, gathered, index_of_farthest, sign_of
from .lowest_vertices import low_and_wide
from .nearest_corners import DIRECTION_ROUNDING, TIE, heights, nearest_corners

CORNERS = [[x, y, z] for x in (1.0, -1.0) for y in (1.0, -1.0) for z in (1.0, -1.0)]
UNITS = 2**20  # integer units of a unit vector's component
NUDGE = 1e-3  # turn, in rad, of an axial direction towards the chosen side
FLAT_SINE = 0.1  # sine of the angle within which a cylinder's end or side is perpendicular to a direction


class Feature(NamedTuple):
    """A feature: the points `point` + s `tangents[0]` + t `tangents[1]`; missing tangents are zero."""

    point: Float[Array, "3 *n"]
    tangents: tuple[Float[Array, "3 *n"], Float[Array, "3 *n"]]


class ConvexShape(NamedTuple):
    """A convex shape: its core and margin, its features, and the core's farthest point along a direction.

    `near(core, direction, towards)` returns three numbers that identify the features at the farthest point; of several
    equally far, those towards a point come first.
    `feature(core, near, num_tangents, direction)` returns the one with that many tangents, at most `most_tangents`.
    `facing(core, direction)` returns four points, in order, around the piece that is nearly perpendicular to the
    direction, and its dimension: a point (0), the line from the first to the third (1) or a face (2).
    """

    most_tangents: int
    core: Callable[[Array], Array]
    margin: Callable[[Array], Array]
    support: Callable[[Array, Array], Array]
    near: Callable[[Array, Array, Array], Array]
    feature: Callable[[Array, Array, Array, Array], Feature]
    facing: Callable[[Array, Array], tuple[Array, Array]]


def farthest_vertex(vertices: Float[Array, "3 m *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """The farthest vertex along a direction, the first of equals."""
    return gathered(index_of_farthest(heights(vertices, direction)), vertices)


def farthest_corner(vertices: Float[Array, "3 8 *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """The farthest corner of a box, whose first vertex has positive coordinates."""
    return vertices[:, 0] * sign_of(direction)


def feature_of_polyhedron(
    vertices: Float[Array, "3 m *n"],
    near: Int[Array, "3 *n"],
    num_tangents: Int[Array, "h *n"],
    direction: Float[Array, "3 h *n"],
) -> Feature:
    """A vertex, an edge or a face of a polyhedron."""
    del direction
    first, second, third = (chosen_columns(index, vertices, axis=1) for index in near)
    along, aside = (second - first)[:, None], (third - first)[:, None]
    return Feature(first[:, None], (jnp.where(num_tangents > 0, along, 0.0), jnp.where(num_tangents > 1, aside, 0.0)))


def facing_of_polyhedron(
    vertices: Float[Array, "3 m *n"], direction: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 4 *n"], Int[Array, "*n"]]:
    """Four vertices of the piece that faces a direction, with the first in place of missing ones; and its dimension."""
    held, down = lax.stop_gradient((vertices, direction))
    masks, valid = low_and_wide(*(heights(held, axis) for axis in (*tangents_of(down), -down)))
    first, *others = (jnp.sum(jnp.where(mask, vertices, 0.0), axis=1) for mask in masks)
    far, left, right = (jnp.where(flag, x, first) for flag, x in zip(valid[1:], others, strict=True))
    dimension = jnp.where(valid[1], jnp.where(valid[2] | valid[3], 2, 1), 0).astype(jnp.int32)
    return jnp.stack([first, left, far, right], axis=1), dimension


def farthest_of_cylinder(size: Float[Array, "2 *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """The farthest point of a cylinder: on a rim, or on the axis where the direction is along it."""
    radial = safe_normalize(direction[:2], 0)
    return jnp.stack([size[0] * radial[0], size[0] * radial[1], size[1] * sign_of(direction[2])])


def nearest_end(
    size: Float[Array, "2 *n"], direction: Float[Array, "3 *n"], towards: Float[Array, "3 *n"]
) -> Int[Array, "3 *n"]:
    """Identifies the farthest end (1: the lower one), and its rim's side towards a point in units of 1 / UNITS."""
    is_level = jnp.abs(direction[2]) <= DIRECTION_ROUNDING * float(jnp.finfo(direction.dtype).eps)
    side = jnp.round(UNITS * safe_normalize(towards[:2], 0))
    middle = TIE * float(jnp.finfo(direction.dtype).eps) * size[1]
    is_lower = (jnp.where(is_level, towards[2] + middle, direction[2]) < 0.0).astype(side.dtype)
    return jnp.stack([is_lower, *side]).astype(jnp.int32)


def feature_of_cylinder(
    size: Float[Array, "2 *n"],
    near: Int[Array, "3 *n"],
    num_tangents: Int[Array, "h *n"],
    direction: Float[Array, "3 h *n"],
) -> Feature:
    """A feature of a cylinder: a rim, the line of the side that faces the direction, or an end.

    The point of a rim follows the direction. Where that is axial the whole rim is equally far, and `near` gives the
    side.
    """
    is_line, is_end = num_tangents == 1, num_tangents == 2
    is_along = dot_columns(direction[:2], direction[:2]) <= (DIRECTION_ROUNDING * float(jnp.finfo(size.dtype).eps)) ** 2
    side = near[1:, None].astype(size.dtype) / UNITS
    nudged = direction[:2] + jnp.where(is_along, NUDGE * side, 0.0)
    radial = safe_normalize(nudged, 0) * jnp.where(is_end, 0.0, 1.0)
    up = jnp.where(is_line, 0.0, jnp.where(near[0] == 1, -1.0, 1.0)).astype(size.dtype)
    point = jnp.stack([*(size[0] * x for x in radial), size[1] * up + 0.0 * radial[0]])
    zero = jnp.zeros_like(point[0])
    first = jnp.stack([jnp.where(is_end, 1.0, zero), zero, jnp.where(is_line, 1.0, zero)])
    return Feature(point, (first, jnp.stack([zero, jnp.where(is_end, 1.0, zero), zero])))


def facing_of_cylinder(
    size: Float[Array, "2 *n"], direction: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 4 *n"], Int[Array, "*n"]]:
    """Four points of the facing rim, or the ends of the facing line of the side; and the dimension."""
    radius, half_length = jnp.broadcast_arrays(*size, direction[0])[:2]
    held = lax.stop_gradient(direction)
    is_end, is_line = safe_norm(held[:2], 0) < FLAT_SINE, jnp.abs(held[2]) < FLAT_SINE
    end = half_length * sign_of(held[2])
    rim = [jnp.stack([x * radius, y * radius, end]) for x, y in ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))]
    radial = safe_normalize(direction[:2], 0)
    up, down = (jnp.stack([radius * radial[0], radius * radial[1], z]) for z in (half_length, -half_length))
    points = [jnp.where(is_end, x, y) for x, y in zip(rim, (up, up, down, up), strict=True)]
    return jnp.stack(points, axis=1), jnp.where(is_end, 2, jnp.where(is_line, 1, 0)).astype(jnp.int32)


def farthest_of_ellipsoid(size: Float[Array, "3 *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "3 *n"]:
    """The farthest point S² n / |S n| of an ellipsoid with semi-axes S."""
    return expanded(size, direction) * safe_normalize(expanded(size, direction) * direction, 0)


def expanded(size: Float[Array, "3 *n"], direction: Float[Array, "3 *hn"]) -> Float[Array, "3 *hn"]:
    """Sizes with the axes of a direction, to broadcast with it."""
    return size if size.ndim == direction.ndim else size[:, None]


def whole_surface(
    size: Float[Array, "3 *n"], direction: Float[Array, "3 *n"], towards: Float[Array, "3 *n"]
) -> Int[Array, "3 *n"]:
    """Identifies the only feature of a smooth shape, its whole surface."""
    del towards
    return jnp.zeros_like(size + direction, jnp.int32)


def no_facing(
    size: Float[Array, "3 *n"], direction: Float[Array, "3 *n"]
) -> tuple[Float[Array, "3 4 *n"], Int[Array, "*n"]]:
    """The piece that a smooth shape shows along a direction: a single point."""
    point = farthest_of_ellipsoid(size, direction)
    return jnp.stack([point] * 4, axis=1), jnp.zeros_like(point[0], jnp.int32)


def tangents_of(n: Float[Array, "3 *n"]) -> tuple[Float[Array, "3 *n"], Float[Array, "3 *n"]]:
    """Two unit vectors perpendicular to n and to each other."""
    smallest = jnp.argmin(jnp.abs(n), axis=0)
    axis = jnp.stack([(smallest == k).astype(n.dtype) for k in range(3)])
    first = safe_normalize(ca.cross(n, axis), 0)
    return first, ca.cross(n, first)


def feature_of_ellipsoid(
    size: Float[Array, "3 *n"],
    near: Int[Array, "3 *n"],
    num_tangents: Int[Array, "h *n"],
    direction: Float[Array, "3 h *n"],
) -> Feature:
    """The feature of an ellipsoid: its farthest point."""
    del near, num_tangents
    point = farthest_of_ellipsoid(size, direction)
    return Feature(point, (jnp.zeros_like(point), jnp.zeros_like(point)))


def box_vertices(size: Float[Array, "3 *n"]) -> Float[Array, "3 8 *n"]:
    """Corners of a box; `size` holds full lengths."""
    return jnp.stack([jnp.stack([s * x for s, x in zip(signs, 0.5 * size, strict=True)]) for signs in CORNERS], axis=1)


def segment_ends(size: Float[Array, "2 *n"]) -> Float[Array, "3 2 *n"]:
    """Ends of a capsule's axis."""
    half, zero = 0.5 * size[1], jnp.zeros_like(size[1])
    return jnp.stack([jnp.stack([zero, zero, half]), jnp.stack([zero, zero, -half])], axis=1)


def centre_point(size: Float[Array, "1 *n"]) -> Float[Array, "3 1 *n"]:
    """Centre of a sphere, as its only vertex."""
    return jnp.zeros_like(jnp.stack([size, size, size]))


def polyhedron(most_tangents: int, core: Callable[[Array], Array], margin: Callable[[Array], Array]) -> ConvexShape:
    """A convex shape that is the hull of the vertices `core`, with a margin."""
    return ConvexShape(
        most_tangents, core, margin, farthest_vertex, nearest_corners, feature_of_polyhedron, facing_of_polyhedron
    )


CONVEX_SHAPES = {
    "Sphere": polyhedron(0, centre_point, lambda size: size[0]),
    "Capsule": polyhedron(1, segment_ends, lambda size: size[0]),
    "Box": polyhedron(2, box_vertices, lambda size: 0.0 * size[0])._replace(support=farthest_corner),
    "Convex": polyhedron(2, lambda size: size, lambda size: 0.0 * size[0, 0]),
    "Cylinder": ConvexShape(
        2,
        lambda size: jnp.stack([size[0], 0.5 * size[1]]),
        lambda size: 0.0 * size[0],
        farthest_of_cylinder,
        nearest_end,
        feature_of_cylinder,
        facing_of_cylinder,
    ),
    "Ellipsoid": ConvexShape(
        0,
        lambda size: size,
        lambda size: 0.0 * size[0],
        farthest_of_ellipsoid,
        whole_surface,
        feature_of_ellipsoid,
        no_facing,
    ),
}
