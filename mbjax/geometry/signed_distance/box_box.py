"""Signed distance of two boxes, with up to four contact points.

The faces, edges and corners in contact are chosen without derivatives. Distance, normal and points then follow from
these features, which turn and move with their boxes in the derivative.

- Overlapping boxes: the distance is the least depth over the fifteen axes. If the axis is that of two edges but a face
  normal is within 8 degrees of it, contact points are measured along that normal, at most 1 % deeper. So a box across
  an edge of another keeps both ends of their shared line when it is tilted. `nearest_points` keeps to the axis.
- Boxes apart: the distance is exact. The nearest features are a corner with a face, an edge or a corner, or two edges;
  a corner over a face counts as face contact.
- A face contact gives up to four corners of the overlap, some of which may be apart; other contacts give one point.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_norm, safe_normalize, safe_sqrt

from .box_axes import edge_separations, face_separations
from .box_faces import FaceContact, face_contact, relative_tolerance
from .choices import chosen_columns, direction_rounding, index_of_largest, rolled_back, rolled_to_last, sign_of
from .witnesses import Witnesses, make_witnesses

ALIGNED = 0.99  # cosine of the angle, 8 degrees, within which an edge across a face counts as lying on it
CORNERS = [[x, y, z] for x in (1.0, -1.0) for y in (1.0, -1.0) for z in (1.0, -1.0)]


class PointContact(NamedTuple):
    """A contact at one point on A, with the normal from B to A and the distance."""

    distance: Float[Array, "*n"]
    normal: Float[Array, "3 *n"]
    point: Float[Array, "3 *n"]


class Boxes(NamedTuple):
    """Two boxes: half lengths, and the pose of B in A."""

    half_A: Float[Array, "3 *n"]
    half_B: Float[Array, "3 *n"]
    R_AB: Float[Array, "3 3 *n"]
    p_AB: Float[Array, "3 *n"]


class Separations(NamedTuple):
    """What separates two boxes most: a face, two edges or, where they are apart, a corner."""

    faces: Float[Array, "6 *n"]  # separation along each face normal of A, then of B
    face: Int[Array, "*n"]  # the face that separates most ...
    s_face: Float[Array, "*n"]  # ... and its separation
    s_edge: Float[Array, "*n"]  # the largest separation along a product of edges
    crossing: PointContact  # contact of these two edges ...
    is_crossing: Bool[Array, "*n"]  # ... and whether its points lie on them
    single: PointContact  # the crossing or, for boxes apart, the nearest corner if that is nearer
    is_apart: Bool[Array, "*n"]
    exceeds_faces: Bool[Array, "*n"]  # whether `single` separates more than all faces


def box_box(
    size_A: Float[Array, "3 *n"], size_B: Float[Array, "3 *n"], R_AB: Float[Array, "3 3 *n"], p_AB: Float[Array, "3 *n"]
) -> Witnesses:
    """Witnesses of two boxes, up to four points; sizes are full lengths."""
    boxes, tolerance = as_boxes(size_A, size_B, R_AB, p_AB)
    found = find_separations(boxes, tolerance)
    s_edge, is_apart, exceeds_faces, single = found.s_edge, found.is_apart, found.exceeds_faces, found.single
    alignment = normals_along(found.crossing.normal, lax.stop_gradient(boxes.R_AB))
    near_face, cosine = largest_of_faces(alignment, direction_rounding(p_AB.dtype))
    lying = lying_contact(jnp.where(exceeds_faces & ~is_apart, near_face, found.face), *boxes, tolerance)
    is_as_deep = jnp.abs(lying.distance[0] - s_edge) <= (1.0 - ALIGNED) * jnp.abs(s_edge) + tolerance
    passes_as_lying = ~is_apart & (~found.is_crossing | ((cosine > ALIGNED) & is_as_deep))
    is_lying = lying.valid[0] & (~exceeds_faces | passes_as_lying)

    distance = jnp.where(is_lying, lying.distance, single.distance)
    normal = jnp.where(is_lying, lying.normal, single.normal)
    point = jnp.where(is_lying, lying.point, single.point[:, None])
    valid = jnp.stack([jnp.ones_like(is_lying), *(is_lying & lying.valid[k] for k in range(1, 4))])
    is_degenerate = ~is_apart & has_rival(found, lax.stop_gradient(boxes), tolerance)
    return Witnesses(distance, jnp.stack([normal] * 4, axis=1), point, valid, is_degenerate)


def nearest_points(
    size_A: Float[Array, "3 *n"], size_B: Float[Array, "3 *n"], R_AB: Float[Array, "3 3 *n"], p_AB: Float[Array, "3 *n"]
) -> Witnesses:
    """The nearest points of two boxes, one each, or those of the least depth where they overlap.

    The distance is exact, and its derivative is that of the axis of least depth: d(distance)/dp_AB = -normal.
    """
    boxes, tolerance = as_boxes(size_A, size_B, R_AB, p_AB)
    found = find_separations(boxes, tolerance)
    on_face = contact_with_face(found.face, boxes, tolerance)
    nearest = (jnp.where(found.exceeds_faces, x, y) for x, y in zip(found.single, on_face, strict=True))
    is_degenerate = ~found.is_apart & ~found.exceeds_faces & has_rival(found, lax.stop_gradient(boxes), tolerance)
    return make_witnesses(*([x] for x in nearest), degenerate=is_degenerate)


def as_boxes(size_A: Array, size_B: Array, R_AB: Array, p_AB: Array) -> tuple[Boxes, Float[Array, "*n"]]:
    """Boxes of one common shape, from full lengths, and the rounding error of their lengths."""
    n = jnp.broadcast_shapes(size_A.shape[1:], size_B.shape[1:], R_AB.shape[2:], p_AB.shape[1:])
    half_A, half_B, p_AB = (jnp.broadcast_to(x, (3, *n)) for x in (0.5 * size_A, 0.5 * size_B, p_AB))
    boxes = Boxes(half_A, half_B, jnp.broadcast_to(R_AB, (3, 3, *n)), p_AB)
    lengths = lax.stop_gradient(jnp.stack([*half_A, *half_B]))
    return boxes, relative_tolerance(p_AB.dtype) * jnp.max(lengths, axis=0)


def find_separations(boxes: Boxes, tolerance: Float[Array, "*n"]) -> Separations:
    """The features that separate two boxes most, chosen without derivatives."""
    frozen = lax.stop_gradient(boxes)
    faces = face_separations(*frozen)
    face, s_face = largest_of_faces(faces, tolerance)
    edges = edge_separations(*frozen, tolerance)
    edge, s_edge = index_of_largest(edges.reshape(9, *edges.shape[2:]), tolerance)
    is_apart = (s_face > 0.0) | (s_edge > 0.0)

    crossing, is_crossing = edge_contact(edge, *boxes, tolerance)
    corner = corner_contact(*boxes, tolerance)
    d_corner = lax.stop_gradient(corner.distance)
    is_corner = is_apart & ~(is_crossing & (s_edge < d_corner - tolerance))
    single = PointContact(*(jnp.where(is_corner, x, y) for x, y in zip(corner, crossing, strict=True)))
    exceeds_faces = jnp.where(is_apart, single.distance, s_edge) > s_face + tolerance
    return Separations(faces, face, s_face, s_edge, crossing, is_crossing, single, is_apart, exceeds_faces)


def largest_of_faces(
    scores: Float[Array, "6 *n"], tolerance: Float[Array, "*n"] | float
) -> tuple[Int[Array, "*n"], Float[Array, "*n"]]:
    """The face with the largest score, and the score; a face of A unless one of B wins by more than `tolerance`."""
    face_A, score_A = index_of_largest(scores[:3], tolerance)
    face_B, score_B = index_of_largest(scores[3:], tolerance)
    is_of_B = score_B > score_A + tolerance
    return jnp.where(is_of_B, face_B + 3, face_A), jnp.where(is_of_B, score_B, score_A)


def normals_along(normal: Float[Array, "3 *n"], R_AB: Float[Array, "3 3 *n"]) -> Float[Array, "6 *n"]:
    """|cosine| between a direction and the face normals of A, then of B."""
    normal = lax.stop_gradient(normal)
    return jnp.abs(jnp.concatenate([normal, ca.transposed_matvec(R_AB, normal)]))


def lying_contact(
    face: Int[Array, "*n"],
    half_A: Float[Array, "3 *n"],
    half_B: Float[Array, "3 *n"],
    R_AB: Float[Array, "3 3 *n"],
    p_AB: Float[Array, "3 *n"],
    tolerance: Float[Array, "*n"],
) -> FaceContact:
    """Contact of the other box with a face of one box, in A: points on A, normal from B to A."""
    of_B = face >= 3
    distance, normal, point, valid = face_contact(
        face % 3, *seen_from(of_B, Boxes(half_A, half_B, R_AB, p_AB)), tolerance
    )
    on_face = point - normal[:, None] * ca.spread(distance, 3)
    R = ca.spread(R_AB, 4, 2)
    in_A = ca.matvec(R, point) + ca.spread(p_AB, 4, 1)
    normal = jnp.where(of_B, ca.matvec(R_AB, normal), -normal)
    return FaceContact(distance, normal, jnp.where(of_B, in_A, on_face), valid)


def seen_from(of_B: Bool[Array, "*n"], boxes: Boxes) -> Boxes:
    """The boxes with the one that has the face first: A, or B with A in its frame."""
    half_A, half_B, R_AB, p_AB = boxes
    p_BA = -ca.transposed_matvec(R_AB, p_AB)
    swapped = half_B, half_A, ca.transpose(R_AB), p_BA
    return Boxes(*(jnp.where(of_B, x, y) for x, y in zip(swapped, boxes, strict=True)))


def contact_with_face(face: Int[Array, "*n"], boxes: Boxes, tolerance: Float[Array, "*n"]) -> PointContact:
    """The deepest point below a face, in A, where the face separates most.

    It is held at its place in the other box, as a fraction of that box's lengths, and turns and moves with the box.
    """
    of_B = face >= 3
    seen = seen_from(of_B, boxes)
    _, half_other, R, p = held = lax.stop_gradient(seen)
    contact = lax.stop_gradient(face_contact(face % 3, *held, tolerance))
    normal = contact.normal
    lowest = -sign_of(ca.transposed_matvec(R, normal))  # where rounding finds no overlap of the faces
    place = safe_divide(ca.transposed_matvec(R, contact.point[:, 0] - p), half_other)
    point = seen.p_AB + ca.matvec(seen.R_AB, jnp.where(contact.valid[0], place, lowest) * seen.half_B)
    distance = ca.dot(normal, point) - ca.dot(jnp.abs(normal), seen.half_A)
    in_A = boxes.p_AB + ca.matvec(boxes.R_AB, point)
    normal_A = jnp.where(of_B, ca.matvec(boxes.R_AB, normal), -normal)
    return PointContact(distance, normal_A, jnp.where(of_B, in_A, point - ca.scale(normal, distance)))


def edge_contact(
    edge: Int[Array, "*n"],
    half_A: Float[Array, "3 *n"],
    half_B: Float[Array, "3 *n"],
    R_AB: Float[Array, "3 3 *n"],
    p_AB: Float[Array, "3 *n"],
    tolerance: Float[Array, "*n"],
) -> tuple[PointContact, Bool[Array, "*n"]]:
    """Contact at the nearest points of two edges' lines, and whether these points lie on the edges.

    Axes are permuted so that A's edge is along z. B's edge has direction d. The normal is (-dy, dx, 0) / |.|, on the
    side of B.
    """
    axis_A, axis_B = edge // 3, edge % 3
    half_A, half_B, p = rolled_to_last(axis_A, half_A), rolled_to_last(axis_B, half_B), rolled_to_last(axis_A, p_AB)
    R = rolled_to_last(axis_B, rolled_to_last(axis_A, R_AB), axis=1)
    b_x, b_y, d = jnp.unstack(R, axis=1)
    across = jnp.stack([-d[1], d[0]])
    n_AB = safe_normalize(across, 0)
    n_AB = ca.scale(n_AB, sign_of(lax.stop_gradient(ca.dot(n_AB, p[:2])), tolerance))
    n_frozen, R_frozen = lax.stop_gradient((n_AB, R))
    level = direction_rounding(p.dtype)
    p_A = half_A[:2] * sign_of(n_frozen, level)
    reach_x = half_B[0] * sign_of(ca.dot(n_frozen, R_frozen[:2, 0]), level)
    reach_y = half_B[1] * sign_of(ca.dot(n_frozen, R_frozen[:2, 1]), level)
    p_B = p - ca.scale(b_x, reach_x) - ca.scale(b_y, reach_y)

    gap = p_B[:2] - p_A
    along_B = -safe_divide(ca.dot(gap, d[:2]), ca.dot(d[:2], d[:2]))
    along_A = p_B[2] + along_B * d[2]
    is_crossing = (jnp.abs(along_A) <= half_A[2] + tolerance) & (jnp.abs(along_B) <= half_B[2] + tolerance)
    zero = jnp.zeros_like(along_A)
    point = rolled_back(axis_A, jnp.stack([p_A[0], p_A[1], along_A]))
    normal = rolled_back(axis_A, jnp.stack([-n_AB[0], -n_AB[1], zero]))
    return PointContact(ca.dot(n_AB, gap), normal, point), lax.stop_gradient(is_crossing)


def corner_contact(
    half_A: Float[Array, "3 *n"],
    half_B: Float[Array, "3 *n"],
    R_AB: Float[Array, "3 3 *n"],
    p_AB: Float[Array, "3 *n"],
    tolerance: Float[Array, "*n"],
) -> PointContact:
    """Contact at the corner of one box that is nearest to the other box, for boxes apart."""
    p_BA = -ca.transposed_matvec(R_AB, p_AB)
    R_BA = ca.transpose(R_AB)
    frozen_A, frozen_B, from_A, from_B, p_A, p_B = lax.stop_gradient((half_A, half_B, R_AB, R_BA, p_AB, p_BA))
    distances = jnp.concatenate(
        [
            squared_distances(frozen_A, frozen_B, from_A, p_A),
            squared_distances(frozen_B, frozen_A, from_B, p_B),
        ]
    )
    index = index_of_largest(-safe_sqrt(distances), tolerance)[0]
    signs = jnp.asarray(CORNERS * 2, p_AB.dtype).T.reshape(3, 16, *(1,) * index.ndim)
    corner = chosen_columns(index, signs, axis=1)

    of_A = index >= 8
    point = jnp.where(of_A, p_BA, p_AB) + ca.matvec(
        jnp.where(of_A, R_BA, R_AB), corner * jnp.where(of_A, half_A, half_B)
    )
    half = jnp.where(of_A, half_B, half_A)
    nearest = jnp.where(point > half, half, jnp.where(point < -half, -half, point))
    distance = safe_norm(point - nearest, 0)
    outward = safe_normalize(point - nearest, 0)
    return PointContact(
        distance,
        jnp.where(of_A, ca.matvec(R_AB, outward), -outward),
        jnp.where(of_A, corner * half_A, nearest),
    )


def squared_distances(
    half: Float[Array, "3 *n"], half_other: Float[Array, "3 *n"], R: Float[Array, "3 3 *n"], p: Float[Array, "3 *n"]
) -> Float[Array, "8 *n"]:
    """Squared distances from a box to the eight corners of another box."""
    x, y, z = jnp.unstack(R * half_other[None], axis=1)
    corners = (p + sx * x + sy * y + sz * z for sx, sy, sz in CORNERS)
    outside = (jnp.maximum(jnp.abs(corner) - half, 0.0) for corner in corners)
    return jnp.stack([ca.dot(delta, delta) for delta in outside])


def has_rival(found: Separations, boxes: Boxes, tolerance: Float[Array, "*n"]) -> Bool[Array, "*n"]:
    """Whether another direction separates as much as the chosen face, so that the normal is not unique."""
    R_AB, p_AB = boxes.R_AB, boxes.p_AB
    axes_of_A = jnp.broadcast_to(identity_like(R_AB), R_AB.shape)
    normal = chosen_columns(found.face, jnp.concatenate([axes_of_A, R_AB], axis=1), axis=1)
    centres = jnp.concatenate([p_AB, ca.transposed_matvec(R_AB, p_AB)])
    is_rival = (normals_along(normal, R_AB) < ALIGNED) & (found.faces >= found.s_face - tolerance)
    return jnp.any(is_rival, axis=0) | (jnp.abs(chosen_columns(found.face, centres)) <= tolerance)


def identity_like(R: Float[Array, "3 3 *n"]) -> Float[Array, "3 3 *n"]:
    """The identity matrix, shaped to broadcast with R."""
    return jnp.eye(3, dtype=R.dtype).reshape(3, 3, *(1,) * (R.ndim - 2))
