"""Signed distance of a box and a capsule, whose axis is the segment c(t) = p + t d, |t| <= h.

While the axis is outside, its nearest point minimises the convex |c - clamp(c)|², whose slope is piecewise linear in t.
The slope's root follows exactly from its values where c crosses the planes of the faces. Where the axis runs through
the box, the depth is the least of six separating directions: three faces, and the axis crossed with three edges.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial.safe_math import safe_direction

from .choices import clamp, direction_rounding, flags_of_largest, rounding, sign_of
from .point_distance import distance_from_box
from .witnesses import PairFunction, Witnesses, make_witnesses

FACE_COSINE = 0.99  # cosine of the angle to a face's normal within which an axis inside is pushed out of that face
FLAT_SINE = 0.1  # sine of the angle between axis and face below which a capsule has three points
APART = 0.1  # distance, relative to the radius, within which an end duplicates the nearest point


class Axis(NamedTuple):
    """The capsule's axis, in the frame of a box with half lengths H."""

    H: Float[Array, "3 n *w"]
    p: Float[Array, "3 n *w"]
    d: Float[Array, "3 n *w"]
    half_length: Float[Array, "n *w"]

    def points(self, t: Float[Array, "k n *w"]) -> Float[Array, "3 k n *w"]:
        """Points c(t) at several t."""
        return self.p[:, None] + self.d[:, None] * t

    def crossings(self, sides: Float[Array, "3 n *w"]) -> Float[Array, "3 n *w"]:
        """Parameters t where c crosses the face planes on these sides; the nearer end where c does not cross."""
        distance = sides * self.H - self.p
        crosses = (jnp.abs(self.d) > no_turn(self.d)) & (jnp.abs(distance) <= jnp.abs(self.d) * self.half_length)
        return jnp.where(
            crosses,
            distance / jnp.where(crosses, self.d, 1.0),
            sides * sign_of(self.d, direction_rounding(self.d.dtype)) * self.half_length,
        )

    def slopes(self, t: Float[Array, "k n *w"]) -> Float[Array, "k n *w"]:
        """Half the slope of the squared distance, d · (c - clamp(c)), at several t."""
        c = self.points(t)
        return ca.dot(self.d[:, None], c - clamp(c, self.H[:, None]))


def no_turn(like: Array) -> float:
    """Sine of the largest angle that counts as zero."""
    return float(jnp.finfo(like.dtype).eps)


class Overlap(NamedTuple):
    """The shortest way to push the axis out of the box."""

    distance: Float[Array, "n *w"]
    normal: Float[Array, "3 n *w"]  # points out of the box
    place: Float[Array, "n *w"]  # t of the deepest point
    degenerate: Bool[Array, "n *w"]


def box_capsule(
    size_A: Float[Array, "3 n *w"],
    size_B: Float[Array, "2 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """Witnesses at the axis's nearest point and, for a capsule lying on a face, at both ends of the part over it."""
    radius, half_length = size_B[0], 0.5 * size_B[1]
    half_size, p, d = ca.with_equal_columns(0.5 * size_A, p_AB, jnp.unstack(R_AB, axis=1)[2])
    axis = Axis(half_size, p, d, half_length)
    outside = calc_nearest_place(axis)
    core = distance_from_box(axis.H, axis.points(outside[None])[:, 0])
    inside = calc_overlap(axis)
    runs_through = core.distance <= 0.0
    place = jnp.where(runs_through, inside.place, outside)
    distance = jnp.where(runs_through, inside.distance, core.distance)
    normal = jnp.where(runs_through, inside.normal, core.normal)

    face = jnp.stack(flags_of_largest(list(jnp.unstack(jnp.abs(normal))), direction_rounding(p.dtype)))
    face_normal = jnp.where(face, sign_of(normal), 0.0)
    ends = jnp.stack(part_over_face(axis, axis.points(place[None])[:, 0], face))
    c = axis.points(ends)
    beside = distance_from_box(axis.H[:, None], c)
    is_inside = beside.distance <= 0.0
    height = ca.dot(face_normal[:, None], c) - ca.dot(jnp.abs(face_normal), axis.H)
    end_distances = jnp.where(is_inside, height, beside.distance)
    end_normals = jnp.where(is_inside, face_normal[:, None], beside.normal)

    lies = (jnp.abs(ca.dot(face_normal, axis.d)) < FLAT_SINE) & (ends[0] < ends[1])
    pushed_elsewhere = is_inside & (ca.dot(face_normal, normal) < FACE_COSINE)
    ends_count = lies & ~pushed_elsewhere & (jnp.abs(ends - place) > APART * radius)

    distances = [distance, *jnp.unstack(end_distances)]
    normals = [normal, *jnp.unstack(end_normals, axis=1)]
    centers = [axis.points(place[None])[:, 0], *jnp.unstack(c, axis=1)]
    return make_witnesses(
        [s - radius for s in distances],
        [-n for n in normals],
        [x - ca.scale(n, s) for x, n, s in zip(centers, normals, distances, strict=True)],
        [True, *jnp.unstack(ends_count)],
        runs_through & inside.degenerate,
    )


def calc_nearest_place(axis: Axis) -> Float[Array, "n *w"]:
    """Parameter t of least squared distance from the box; the middle if a whole part of the axis is nearest.

    It is found without derivatives, then recomputed with them from the faces that c is beyond. The middle of a part is
    held as a fixed point of the capsule.
    """
    held = Axis(*lax.stop_gradient(axis))
    h = held.half_length
    tolerance = rounding(h, *jnp.unstack(held.H))
    ones = jnp.ones_like(held.d)
    t = ca.concatenate([h[None], -h[None], held.crossings(-ones), held.crossings(ones)], axis=0)
    slopes = held.slopes(t)
    before = jnp.max(jnp.where(slopes <= tolerance, t, -h), axis=0)
    after = jnp.min(jnp.where(slopes >= -tolerance, t, h), axis=0)
    rising = before < after
    slope_before, slope_after = held.slopes(jnp.stack([before, after]))
    weight = jnp.where(rising, -slope_before / jnp.where(rising, slope_after - slope_before, 1.0), 0.5)
    place = before + weight * (after - before)

    c = held.points(place[None])[:, 0]
    steepness = jnp.where(jnp.abs(c) > held.H, axis.d, 0.0)
    squared = ca.dot(steepness, steepness)
    crosses = rising & (squared > no_turn(squared) ** 2)
    inner = -ca.dot(steepness, axis.p - sign_of(c) * axis.H) / jnp.where(crosses, squared, 1.0)
    start, end = slopes[1] > tolerance, slopes[0] < -tolerance
    inner = jnp.where(crosses, inner, place)
    return jnp.where(start, -axis.half_length, jnp.where(end, axis.half_length, inner))


def part_over_face(
    axis: Axis, contact: Float[Array, "3 n *w"], face: Bool[Array, "3 n *w"]
) -> tuple[Float[Array, "n *w"], Float[Array, "n *w"]]:
    """Range of t in which the axis stays over a face: between its side planes, if the contact is between them."""
    bounds = ~face & (jnp.abs(contact) <= axis.H + rounding(axis.H))
    ahead, h = sign_of(axis.d, direction_rounding(axis.d.dtype)), axis.half_length
    lower = jnp.where(bounds, axis.crossings(-ahead), -h)
    upper = jnp.where(bounds, axis.crossings(ahead), h)
    return jnp.max(lower, axis=0), jnp.min(upper, axis=0)


def calc_overlap(axis: Axis) -> Overlap:
    """The overlap of least depth over three faces and three edge directions; ties go to the first in this order."""
    tolerance, level = rounding(*jnp.unstack(axis.H)), direction_rounding(axis.p.dtype)
    up = sign_of(axis.p, tolerance)
    face_offset = up * axis.p
    face_distance = face_offset - jnp.abs(axis.d) * axis.half_length - axis.H
    face_place = -up * sign_of(axis.d, level) * axis.half_length

    # For each edge direction i, seen in the plane (i + 1, i + 2), the axis is a line and the edge a corner.
    d, p, H = (jnp.stack([jnp.roll(x, -1, 0), jnp.roll(x, -2, 0)]) for x in (axis.d, axis.p, axis.H))
    squared = ca.dot(d, d)
    along_edge = squared <= no_turn(squared) ** 2
    across, _ = safe_direction(jnp.stack([d[1], -d[0]]), jnp.ones_like(d))
    across = across * sign_of(ca.dot(across, p), tolerance)
    edge_offset = ca.dot(across, p)
    corner = sign_of(across, level) * H
    edge_distance = jnp.where(along_edge, -jnp.inf, edge_offset - ca.dot(across, corner))
    edge_place = clamp(ca.dot(corner - p, d) / jnp.where(along_edge, 1.0, squared), axis.half_length)

    distances = [*jnp.unstack(face_distance), *jnp.unstack(edge_distance)]
    chosen = jnp.stack(flags_of_largest(distances, tolerance))
    distance, place, offset = (
        jnp.sum(jnp.where(chosen, jnp.concatenate(x), 0.0), axis=0)
        for x in ((face_distance, edge_distance), (face_place, edge_place), (face_offset, edge_offset))
    )
    of_edges = jnp.where(chosen[3:], across, 0.0)
    normal = jnp.where(chosen[:3], up, 0.0) + jnp.roll(of_edges[0], 1, 0) + jnp.roll(of_edges[1], 2, 0)
    runner_up = jnp.max(jnp.where(chosen, -jnp.inf, jnp.stack(distances)), axis=0)
    return Overlap(distance, normal, place, (distance - runner_up <= tolerance) | (offset <= tolerance))


BOX_CAPSULE_PAIRS: dict[tuple[str, str], PairFunction] = {("Box", "Capsule"): PairFunction(box_capsule, 3)}
