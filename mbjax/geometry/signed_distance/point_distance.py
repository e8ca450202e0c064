"""Signed distance of a point from a shape, in the frame of the shape.

Each function returns the distance, the unit normal out of the shape at its nearest point, and whether that normal is
not unique. The nearest point is p - distance * normal. The distance's derivative is normal · dp everywhere, also where
a normal had to be chosen.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial.safe_math import safe_direction

from .choices import clamp, flags_of_largest, positive_part, rounding, sign_of


class PointDistance(NamedTuple):
    """Signed distance of one point from one shape, with the normal."""

    distance: Float[Array, "*n"]
    normal: Float[Array, "3 *n"]
    degenerate: Bool[Array, "*n"]


def distance_from_point(p: Float[Array, "3 *n"]) -> PointDistance:
    """Distance from the origin; at the origin the normal is x."""
    x, y, z = jnp.unstack(p)
    normal, degenerate = safe_direction(p, along_x(x))
    return PointDistance(ca.dot(normal, jnp.stack([x, y, z])), normal, degenerate)


def distance_from_segment(half_length: Float[Array, "*n"], p: Float[Array, "3 *n"]) -> PointDistance:
    """Distance from the part of the z axis within ±`half_length`; on it the normal is x."""
    x, y, z = jnp.unstack(p)
    return distance_from_point(jnp.stack([*jnp.broadcast_arrays(x, y, z - clamp(z, half_length))]))


def distance_from_box(half_size: Float[Array, "3 *n"], p: Float[Array, "3 *n"]) -> PointDistance:
    """Distance from a box; inside, from the nearest face, with ties in the order x, y, z and plus before minus."""
    half_size, p = jnp.broadcast_arrays(half_size, p)
    tolerance = rounding(*jnp.unstack(half_size))
    coordinates, signs = jnp.unstack(p), [sign_of(x, tolerance) for x in jnp.unstack(p)]
    excess = [s * x - h for s, x, h in zip(signs, coordinates, jnp.unstack(half_size), strict=True)]
    nearest = flags_of_largest(excess, tolerance)
    at_face = sum(jnp.where(e > tolerance, 1, 0) for e in excess) <= 1
    face_distance = jnp.where(nearest[0], excess[0], jnp.where(nearest[1], excess[1], excess[2]))
    face_normal = jnp.stack([jnp.where(flag, s, 0.0) for flag, s in zip(nearest, signs, strict=True)])

    beyond = jnp.stack([s * positive_part(e) for s, e in zip(signs, excess, strict=True)])
    edge_normal, _ = safe_direction(beyond, face_normal)

    runner_up = jnp.max(jnp.stack([jnp.where(flag, -jnp.inf, e) for flag, e in zip(nearest, excess, strict=True)]), 0)
    depth_of_center = -jnp.where(nearest[0], half_size[0], jnp.where(nearest[1], half_size[1], half_size[2]))
    other = jnp.maximum(runner_up, 2.0 * depth_of_center - face_distance)  # distance from the opposite face
    return PointDistance(
        jnp.where(at_face, face_distance, ca.dot(edge_normal, beyond)),
        jnp.where(at_face, face_normal, edge_normal),
        (face_distance <= 0.0) & (face_distance - other <= tolerance),
    )


def distance_from_cylinder(size: Float[Array, "2 *n"], p: Float[Array, "3 *n"]) -> PointDistance:
    """Distance from a cylinder; ties go to the side before an end, the upper end before the lower, x on the axis."""
    radius, length = jnp.unstack(size)
    x, y, z = jnp.broadcast_arrays(*jnp.unstack(p), radius)[:3]
    outward, on_axis = safe_direction(jnp.stack([x, y]), along_x(x)[:2])
    tolerance = rounding(radius, length)
    across, up = ca.dot(outward, jnp.stack([x, y])), sign_of(z, tolerance)
    side, end = across - radius, up * z - 0.5 * length

    at_rim = (side > tolerance) & (end > tolerance)
    on_side = side >= end - tolerance
    beyond = jnp.stack([jnp.where(at_rim, side, 1.0), jnp.where(at_rim, end, 0.0)])
    at_rim_normal, _ = safe_direction(beyond, jnp.ones_like(beyond))
    radial = jnp.where(at_rim, at_rim_normal[0], jnp.where(on_side, 1.0, 0.0))
    axial = jnp.where(at_rim, at_rim_normal[1], jnp.where(on_side, 0.0, 1.0))
    distance = jnp.where(at_rim, ca.dot(at_rim_normal, beyond), jnp.where(on_side, side, end))

    other = jnp.where(on_side, end, side)
    middle = jnp.where(on_side, on_axis | (across <= tolerance), up * z <= tolerance)
    inside = (distance <= 0.0) & (middle | (distance - other <= tolerance))
    return PointDistance(distance, jnp.stack([*(radial * u for u in outward), axial * up]), inside)


def along_x(like: Float[Array, "*n"]) -> Float[Array, "3 *n"]:
    """The unit vector along x, with the shape of `like`."""
    zero = jnp.zeros_like(like)
    return jnp.stack([zero + 1.0, zero, zero])
