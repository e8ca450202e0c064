"""Face contact of two boxes: corners of the overlap of a face of one box with the opposing face of the other."""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_sqrt

from .choices import chosen_columns, direction_rounding, index_of_largest, rolled_back, rolled_to_last, sign_of

SLOPE = 10.0  # horizontal metres that one metre of depth is worth in the choice of four corners
DISTINCT = 1e-4  # distance, relative to the smaller shape, below which two corners count as one


class FaceContact(NamedTuple):
    """Corners kept, deepest first, with distances and points in the frame of the reference box."""

    distance: Float[Array, "4 *n"]
    normal: Float[Array, "3 *n"]  # outward normal of the reference face
    point: Float[Array, "3 4 *n"]  # on the other box
    valid: Bool[Array, "4 *n"]


def face_contact(
    axis: Int[Array, "*n"],
    half: Float[Array, "3 *n"],
    half_other: Float[Array, "3 *n"],
    R: Float[Array, "3 3 *n"],
    p: Float[Array, "3 *n"],
    tolerance: Float[Array, "*n"],
) -> FaceContact:
    """Contact at a reference box's face normal to `axis`, on the side of the other box, in the reference box's frame.

    The other box has axes R and centre p. Axes are permuted so that the reference face is z = const with the other box
    above. The other box's most downward face is then clipped by the edges of the reference face.
    """
    half, R, p = (rolled_to_last(axis, x) for x in (half, R, p))
    side = sign_of(lax.stop_gradient(p[2]), tolerance)
    upward = jnp.stack([jnp.ones_like(side), jnp.ones_like(side), side])
    R, p = R * upward[:, None], p * upward
    facing = index_of_largest(jnp.abs(lax.stop_gradient(R[2])), direction_rounding(R.dtype))[0]
    half_other, R = rolled_to_last(facing, half_other), rolled_to_last(facing, R, axis=1)
    x_axis, y_axis, z_axis = jnp.unstack(R, axis=1)
    centre = p - ca.scale(z_axis, half_other[2] * sign_of(lax.stop_gradient(z_axis[2])))

    clipped, is_clipped = clipped_edges(half, half_other, x_axis, y_axis, centre, tolerance)
    corners, is_corner = covered_corners(half, half_other, x_axis, y_axis, centre, tolerance)
    points = jnp.concatenate([clipped, corners], axis=1)
    possible = jnp.concatenate([is_clipped, is_corner])

    smaller = jnp.minimum(jnp.max(half, axis=0), jnp.max(half_other, axis=0))
    kept, valid = spread_corners(*lax.stop_gradient((points, possible, tolerance, smaller)))
    points = jnp.stack([chosen_columns(index, points, axis=1) for index in kept], axis=1)
    distance = points[2] - half[2]
    back = [rolled_back(axis, x) for x in jnp.unstack(points * upward[:, None], axis=1)]
    normal = rolled_back(axis, jnp.stack([jnp.zeros_like(side), jnp.zeros_like(side), side]))
    return FaceContact(distance, normal, jnp.stack(back, axis=1), valid)


def clipped_edges(
    half: Float[Array, "3 *n"],
    half_other: Float[Array, "3 *n"],
    x_axis: Float[Array, "3 *n"],
    y_axis: Float[Array, "3 *n"],
    centre: Float[Array, "3 *n"],
    tolerance: Float[Array, "*n"],
) -> tuple[Float[Array, "3 8 *n"], Bool[Array, "8 *n"]]:
    """Both ends of the upper face's four edges, clipped to lie above the lower face (Liang and Barsky 1984)."""
    x_half, y_half = ca.scale(x_axis, half_other[0]), ca.scale(y_axis, half_other[1])
    start = jnp.stack([centre - y_half, centre + y_half, centre - x_half, centre + x_half], axis=1)
    along = jnp.stack([x_half, x_half, y_half, y_half], axis=1)
    first, last = -jnp.ones_like(start[0]), jnp.ones_like(start[0])
    is_outside = jnp.zeros(first.shape, bool)
    for k in range(2):
        is_level = jnp.abs(along[k]) <= tolerance
        slope = jnp.where(is_level, 1.0, along[k])
        middle, reach = -start[k] / slope, half[k] / jnp.abs(slope)
        is_outside |= is_level & (jnp.abs(start[k]) > half[k] + tolerance)
        first = jnp.where(~is_level & (middle - reach > first), middle - reach, first)
        last = jnp.where(~is_level & (middle + reach < last), middle + reach, last)
    points = [start + ca.scale(along, t) for t in (first, last)]
    is_inside = ~is_outside & (first <= last)
    return jnp.concatenate(points, axis=1), jnp.concatenate([is_inside, is_inside])


def covered_corners(
    half: Float[Array, "3 *n"],
    half_other: Float[Array, "3 *n"],
    x_axis: Float[Array, "3 *n"],
    y_axis: Float[Array, "3 *n"],
    centre: Float[Array, "3 *n"],
    tolerance: Float[Array, "*n"],
) -> tuple[Float[Array, "3 4 *n"], Bool[Array, "4 *n"]]:
    """Points of the upper face above the corners of the lower face."""
    x = jnp.stack([half[0], half[0], -half[0], -half[0]])
    y = jnp.stack([half[1], -half[1], half[1], -half[1]])
    area = x_axis[0] * y_axis[1] - x_axis[1] * y_axis[0]
    dx, dy = x - centre[0], y - centre[1]
    along_x = safe_divide(dx * y_axis[1] - dy * y_axis[0], area)
    along_y = safe_divide(dy * x_axis[0] - dx * x_axis[1], area)
    is_covered = (jnp.abs(along_x) <= half_other[0] + tolerance) & (jnp.abs(along_y) <= half_other[1] + tolerance)
    return jnp.stack([x, y, centre[2] + along_x * x_axis[2] + along_y * y_axis[2]]), is_covered


def spread_corners(
    points: Float[Array, "3 m *n"],
    possible: Bool[Array, "m *n"],
    tolerance: Float[Array, "*n"],
    smaller: Float[Array, "*n"],
) -> tuple[list[Int[Array, "*n"]], Bool[Array, "4 *n"]]:
    """Chooses four points: the deepest, the farthest from it, from their line, and from the triangle of the three.

    A metre of depth counts as much as `SLOPE` horizontal metres, so that a tilted face keeps its lower edge. Of points
    that symmetry makes equal the first is taken. `smaller` is the length of the smaller shape.
    """
    x, y, z = jnp.unstack(points)
    distinct = jnp.maximum(DISTINCT * smaller, tolerance)

    def largest(across: Float[Array, "m *n"]) -> tuple[Int[Array, "*n"], Bool[Array, "*n"]]:
        is_new = possible & (across > distinct)
        index, score = index_of_largest(jnp.where(is_new, across - SLOPE * z, -jnp.inf), SLOPE * tolerance)
        return index, score > -jnp.inf

    lowest = jnp.min(jnp.where(possible, z, jnp.inf), axis=0)
    is_lowest = possible & (z <= lowest + tolerance)  # picks an end of a level edge, not a point between
    a, score_a = index_of_largest(jnp.where(is_lowest, length(x, y), -jnp.inf), tolerance)
    xa, ya = chosen_columns(a, x), chosen_columns(a, y)
    b, has_b = largest(length(x - xa, y - ya))
    xb, yb = chosen_columns(b, x), chosen_columns(b, y)
    turned = left_of(x, y, xa, ya, xb, yb)
    c, has_c = largest(jnp.abs(turned))
    xc, yc = chosen_columns(c, x), chosen_columns(c, y)
    turn = sign_of(chosen_columns(c, turned))
    outward = (left_of(x, y, *line) for line in ((xa, ya, xb, yb), (xb, yb, xc, yc), (xc, yc, xa, ya)))
    d, has_d = largest(jnp.max(jnp.stack([-turn * side for side in outward]), axis=0))
    return [a, b, c, d], jnp.stack([score_a > -jnp.inf, has_b, has_c, has_c & has_d])


def left_of(x: Array, y: Array, xa: Array, ya: Array, xb: Array, yb: Array) -> Float[Array, "m *n"]:
    """Signed distance of points from the line through a and b, positive on the left."""
    dx, dy = xb - xa, yb - ya
    return safe_divide((dx * (y - ya) - dy * (x - xa)), length(dx, dy))


def length(x: Array, y: Array) -> Array:
    """Length of a vector in the plane."""
    return safe_sqrt(x * x + y * y)


def relative_tolerance(dtype: jnp.dtype) -> float:
    """Rounding error of lengths of a pair, relative to the pair's size."""
    return 64.0 * float(jnp.finfo(dtype).eps)
