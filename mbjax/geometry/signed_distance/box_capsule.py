"""Box against capsule: the capsule's axis is a segment c(t) = p + t d, |t| <= h, and the box is convex.

While the axis is outside, the nearest point of it minimises the convex |c - clamp(c)|², whose slope is piecewise linear
in t: its root is found exactly from its values where c crosses the planes of the faces. Where the axis runs through the
box, the depth is that of the best of six separating directions: three faces, and the axis crossed with three edges.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide
from mbjax.spatial.safe_math import safe_direction

from .numbers import clamp, first_largest, rounding, sign_of
from .point_distance import along_x, distance_from_box
from .witnesses import PairFunction, Witnesses, make_witnesses

FACE_COSINE = 0.99  # of the angle from a face's normal within which an axis inside is pushed out of that face
FLAT_SINE = 0.1  # of the angle between axis and face below which a capsule has three points
APART = 0.1  # of the radius: a point nearer than that to the nearest point is not counted twice

Components = Sequence[Float[Array, "n *w"]]


class Axis(NamedTuple):
    """The capsule's axis beside a box of half lengths H, all by components."""

    H: Components
    p: Components
    d: Components
    half_length: Float[Array, "n *w"]

    def point(self, t: Float[Array, "n *w"]) -> Float[Array, "3 n *w"]:
        """c(t)."""
        return jnp.stack([p + t * d for p, d in zip(self.p, self.d, strict=True)])

    def crossing(self, k: int, side: float) -> Float[Array, "n *w"]:
        """t where c crosses a face's plane; 0 where it runs along it."""
        return safe_divide(side * self.H[k] - self.p[k], self.d[k])

    def slope(self, t: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
        """d · (c - clamp(c)), half the slope of the squared distance."""
        return ca.sum_products(self.d, [c - clamp(c, h) for c, h in zip(self.point(t), self.H, strict=True)])


class Overlap(NamedTuple):
    """How to push the axis out of the box."""

    distance: Float[Array, "n *w"]
    normal: Float[Array, "3 n *w"]  # out of the box
    place: Float[Array, "n *w"]  # t of the deepest point
    degenerate: Bool[Array, "n *w"]


def box_capsule(
    size_A: Float[Array, "3 n *w"],
    size_B: Float[Array, "2 n *w"],
    R_AB: Float[Array, "3 3 n *w"],
    p_AB: Float[Array, "3 n *w"],
) -> Witnesses:
    """The nearest point of the axis, and of a capsule lying on a face both ends of where it lies there."""
    radius, length = jnp.unstack(size_B)
    vectors = [*jnp.unstack(0.5 * size_A), *jnp.unstack(p_AB), *jnp.unstack(jnp.unstack(R_AB, axis=1)[2])]
    *vectors, radius, half_length = jnp.broadcast_arrays(*vectors, radius, 0.5 * length)
    axis = Axis(vectors[:3], vectors[3:6], vectors[6:], half_length)
    half_size = jnp.stack(axis.H)

    outside = nearest_place(axis)
    core = distance_from_box(half_size, axis.point(outside))
    inside = calc_overlap(axis)
    runs_through = core.distance <= 0.0
    place = jnp.where(runs_through, inside.place, outside)
    distance = jnp.where(runs_through, inside.distance, core.distance)
    normal = jnp.where(runs_through, inside.normal, core.normal)

    faces = first_largest([jnp.abs(n) for n in jnp.unstack(normal)])
    up = sign_of(ca.sum_products(normal, [jnp.where(f, 1.0, 0.0) for f in faces]))
    face_normal = jnp.stack([jnp.where(f, up, 0.0) for f in faces])
    lies = jnp.abs(ca.sum_products(face_normal, axis.d)) < FLAT_SINE
    lower, upper = part_over_face(axis, axis.point(place), faces)
    distances, normals, places, valid = [distance], [normal], [place], [jnp.ones(lies.shape, bool)]
    for t in (lower, upper):
        c = axis.point(t)
        beside = distance_from_box(half_size, c)
        is_inside = beside.distance <= 0.0
        pushed_elsewhere = is_inside & (ca.dot(face_normal, normal) < FACE_COSINE)
        height = ca.dot(face_normal, c) - ca.dot(jnp.abs(face_normal), half_size)
        distances.append(jnp.where(is_inside, height, beside.distance))
        normals.append(jnp.where(is_inside, face_normal, beside.normal))
        places.append(t)
        valid.append(lies & ~pushed_elsewhere & (lower < upper) & (jnp.abs(t - place) > APART * radius))
    points = [axis.point(t) - ca.scale(n, s) for t, n, s in zip(places, normals, distances, strict=True)]
    degenerate = runs_through & inside.degenerate
    return make_witnesses([s - radius for s in distances], [-n for n in normals], points, valid, degenerate)


def nearest_place(axis: Axis) -> Float[Array, "n *w"]:
    """t where the squared distance from the box is least; the middle where it is so along a part."""
    h = axis.half_length
    tolerance = rounding(h, *axis.H)
    candidates = [-h, h, *(clamp(axis.crossing(k, side), h) for k in range(3) for side in (-1.0, 1.0))]
    before, after = h * -1.0, h
    slope_before, slope_after = axis.slope(before), axis.slope(after)
    at_start, at_end = slope_before > tolerance, slope_after < -tolerance
    for t in candidates:
        slope = axis.slope(t)
        closer = (slope <= tolerance) & (t > before)
        before, slope_before = jnp.where(closer, t, before), jnp.where(closer, slope, slope_before)
        closer = (slope >= -tolerance) & (t < after)
        after, slope_after = jnp.where(closer, t, after), jnp.where(closer, slope, slope_after)
    rise = jnp.where(after > before, slope_after - slope_before, 1.0)
    crossing = before - slope_before * (after - before) / jnp.where(rise > 0.0, rise, 1.0)
    inner = jnp.where(after > before, crossing, 0.5 * (before + after))
    return jnp.where(at_start, -h, jnp.where(at_end, h, inner))


def part_over_face(
    axis: Axis, contact: Float[Array, "3 n *w"], faces: Sequence[Bool[Array, "n *w"]]
) -> tuple[Float[Array, "n *w"], Float[Array, "n *w"]]:
    """From where to where the axis stays between the planes beside a face that the contact is between."""
    lower, upper = -axis.half_length, axis.half_length
    for k, is_face in enumerate(faces):
        bounds = ~is_face & (axis.d[k] != 0.0) & (jnp.abs(contact[k]) <= axis.H[k] + rounding(axis.H[k]))
        ends = axis.crossing(k, -1.0), axis.crossing(k, 1.0)
        first, last = jnp.where(axis.d[k] < 0.0, ends[1], ends[0]), jnp.where(axis.d[k] < 0.0, ends[0], ends[1])
        lower = jnp.where(bounds & (first > lower), first, lower)
        upper = jnp.where(bounds & (last < upper), last, upper)
    return lower, upper


def calc_overlap(axis: Axis) -> Overlap:
    """The least deep of three faces and three edge directions, in this order where several are."""
    zero = jnp.zeros_like(axis.half_length)
    found = []
    for k in range(3):
        up = sign_of(axis.p[k])
        offset = up * axis.p[k]
        reach = jnp.abs(axis.d[k]) * axis.half_length
        normal = jnp.stack([up if i == k else zero for i in range(3)])
        place = -up * sign_of(axis.d[k]) * axis.half_length
        found.append((offset - reach - axis.H[k], normal, place, offset))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        across, along_edge = safe_direction(jnp.stack([axis.d[k], -axis.d[j]]), along_x(zero)[:2])
        p = jnp.stack([axis.p[j], axis.p[k]])
        up = sign_of(ca.dot(across, p))
        across = ca.scale(across, up)
        offset = ca.dot(across, p)
        corner = jnp.stack([sign_of(across[0]) * axis.H[j], sign_of(across[1]) * axis.H[k]])
        d = jnp.stack([axis.d[j], axis.d[k]])
        squared = ca.dot(d, d)
        place = clamp(ca.dot(corner - p, d) / jnp.where(along_edge, 1.0, squared), axis.half_length)
        parts = {i: zero, j: across[0], k: across[1]}
        distance = jnp.where(along_edge, -jnp.inf, offset - ca.dot(across, corner))
        found.append((distance, jnp.stack([parts[m] for m in range(3)]), place, offset))
    best, (distance, normal, place, offset) = [], found[0]
    for candidate in found[1:]:
        is_better = candidate[0] > distance
        best.append(jnp.where(is_better, distance, candidate[0]))
        distance, normal, place, offset = (
            jnp.where(is_better, new, old)
            for new, old in zip(candidate, (distance, normal, place, offset), strict=True)
        )
    tolerance = rounding(*axis.H)
    runner_up = jnp.max(jnp.stack(best), axis=0)
    return Overlap(distance, normal, place, (distance - runner_up <= tolerance) | (offset <= tolerance))


BOX_CAPSULE_PAIRS: dict[tuple[str, str], PairFunction] = {("Box", "Capsule"): PairFunction(box_capsule, 3)}
