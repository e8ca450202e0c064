"""Flat contact of two convex shapes: corners of the overlap of their facing pieces of surface, along the normal.

Each shape shows a piece of its surface: up to four vertices of a polyhedron, or the end or a line of the side of a
cylinder. The edges of each piece are clipped by the other (Cyrus and Beck 1978), and four of their ends are kept.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_norm, safe_normalize, safe_sqrt

from .box_faces import relative_tolerance, spread_corners
from .choices import chosen_columns, sign_of
from .convex_shapes import tangents_of

PARALLEL_SINE = 0.1  # sine of the angle between two lines below which they lie along one another


class Piece(NamedTuple):
    """A piece of surface given by four points around it, in A; the first and the third are the ends of a line."""

    points: Float[Array, "3 4 *n"]
    dimension: Int[Array, "*n"]  # 0: a point, 1: a line, 2: a face
    normal: Float[Array, "3 *n"]  # normal of its plane, of any length
    disc: "Disc | None"


class Disc(NamedTuple):
    """The round end of a cylinder; the piece's four points are on its rim."""

    centre: Float[Array, "3 *n"]
    axis: Float[Array, "3 *n"]
    radius: Float[Array, "*n"]


class FlatContact(NamedTuple):
    """Four points of A with their distances from B along the normal, deepest first."""

    distance: Float[Array, "4 *n"]
    point: Float[Array, "3 4 *n"]
    valid: Bool[Array, "4 *n"]


def make_piece(
    points: Float[Array, "3 4 *n"], dimension: Int[Array, "*n"], disc: Disc | None, n: Float[Array, "3 *n"]
) -> Piece:
    """Makes a piece, with the normal of its face, or n projected perpendicular to its line."""
    first, second, third, fourth = jnp.unstack(points, axis=1)
    along = safe_normalize(third - first, 0)
    of_face = safe_normalize(ca.cross(third - first, fourth - second), 0)
    of_line = n - ca.scale(along, ca.dot(along, n))
    return Piece(points, dimension, jnp.where(dimension == 2, of_face, of_line), disc)


def length_of(piece: Piece) -> Float[Array, "*n"]:
    """Length of a piece: how far its points are at most from the first."""
    return jnp.max(safe_norm(piece.points - piece.points[:, :1], 0), axis=0)


def flat_contact(
    A: Piece, B: Piece, n: Float[Array, "3 *n"], size: Float[Array, "*n"], smaller: Float[Array, "*n"]
) -> FlatContact:
    """Flat contact of two pieces, along a direction n from A to B.

    Rounding goes with the `size` of both; which points are distinct goes with the length of the `smaller` one.
    """
    tolerance = relative_tolerance(n.dtype) * size
    of_A, is_on_B = clipped_edges(A, B, n, tolerance)
    of_B, is_on_A = clipped_edges(B, A, n, tolerance)
    from_A = height(B, n, of_A) * -1.0
    from_B = height(A, n, of_B)
    distance = jnp.concatenate([from_A, from_B])
    points = jnp.concatenate([of_A, of_B - n[:, None] * ca.spread(from_B, 3)], axis=1)
    possible = jnp.concatenate([is_on_B, is_on_A])

    frozen, frozen_distance, held = lax.stop_gradient((points, distance, n))
    across = [jnp.sum(frozen * t[:, None], axis=0) for t in tangents_of(held)]
    kept, valid = spread_corners(jnp.stack([*across, frozen_distance]), possible, tolerance, smaller)
    return FlatContact(
        jnp.stack([chosen_columns(index, distance) for index in kept]),
        jnp.stack([chosen_columns(index, points, axis=1) for index in kept], axis=1),
        valid,
    )


def height(piece: Piece, n: Float[Array, "3 *n"], points: Float[Array, "3 m *n"]) -> Float[Array, "m *n"]:
    """Height of points above the plane of a piece, along n."""
    above = points - piece.points[:, :1]
    return safe_divide(ca.dot(piece.normal[:, None], above), ca.dot(piece.normal, n))


def clipped_edges(
    piece: Piece, other: Piece, n: Float[Array, "3 *n"], tolerance: Float[Array, "*n"]
) -> tuple[Float[Array, "3 8 *n"], Bool[Array, "8 *n"]]:
    """Both ends of a piece's four edges, clipped to the other piece along n, and which edges remain."""
    start = piece.points
    along = jnp.roll(start, -1, axis=1) - start
    first, last = jnp.zeros_like(start[0]), jnp.ones_like(start[0])
    is_outside = jnp.zeros(first.shape, bool)
    for corner, inward in borders(other, n):
        at_start = ca.dot(inward[:, None], start - corner[:, None])
        slope = ca.dot(inward[:, None], along)
        is_level = jnp.abs(slope) <= tolerance
        crossing = -at_start / jnp.where(is_level, 1.0, slope)
        is_outside |= is_level & (at_start < -tolerance)
        first = jnp.where(~is_level & (slope > 0.0) & (crossing > first), crossing, first)
        last = jnp.where(~is_level & (slope < 0.0) & (crossing < last), crossing, last)
    if other.disc is not None:
        enters, leaves, misses = crossings_of_disc(other.disc, start, along, tolerance)
        is_round = other.dimension == 2
        is_outside |= is_round & misses
        first = jnp.where(is_round & (enters > first), enters, first)
        last = jnp.where(is_round & (leaves < last), leaves, last)
    points = [start + ca.scale(along, t) for t in (first, last)]
    is_inside = ~is_outside & (first <= last) & lies_on(piece, other)
    return jnp.concatenate(points, axis=1), jnp.concatenate([is_inside, is_inside])


def borders(piece: Piece, n: Float[Array, "3 *n"]) -> list[tuple[Float[Array, "3 *n"], Float[Array, "3 *n"]]]:
    """A point on each border of a piece and the inward direction there, seen along n; zero where there is no border."""
    points = jnp.unstack(piece.points, axis=1)
    along = safe_normalize(points[2] - points[0], 0)
    ends = [along, jnp.zeros_like(along), -along, jnp.zeros_like(along)]
    is_face, is_line = piece.dimension == 2, piece.dimension == 1
    turn = lax.stop_gradient(sign_of(ca.dot(n, ca.cross(points[2] - points[0], points[3] - points[1]))))
    found = []
    for k in range(4):
        inward = safe_normalize(ca.cross(n, points[(k + 1) % 4] - points[k]), 0)
        inward = jnp.where(is_face if piece.disc is None else False, ca.scale(inward, turn), 0.0)
        found.append((points[k], jnp.where(is_line, ends[k], inward)))
    return found


def crossings_of_disc(
    disc: Disc, start: Float[Array, "3 m *n"], along: Float[Array, "3 m *n"], tolerance: Float[Array, "*n"]
) -> tuple[Float[Array, "m *n"], Float[Array, "m *n"], Bool[Array, "m *n"]]:
    """Parameters where lines enter and leave the cylinder over a disc, and whether they miss it."""
    axis = disc.axis[:, None]
    from_centre = start - disc.centre[:, None]
    from_axis, across = (x - axis * ca.spread(ca.dot(axis, x), 3) for x in (from_centre, along))
    squared, mixed = ca.dot(across, across), ca.dot(from_axis, across)
    beyond = ca.dot(from_axis, from_axis) - disc.radius * disc.radius
    is_point = squared <= tolerance * tolerance
    root = mixed * mixed - squared * beyond
    half = safe_sqrt(jnp.where(is_point, 0.0, root))
    divisor = jnp.where(is_point, 1.0, squared)
    misses = jnp.where(is_point, beyond > tolerance * disc.radius, root < 0.0)
    enters = jnp.where(is_point, 0.0, (-mixed - half) / divisor)
    return enters, jnp.where(is_point, 1.0, (half - mixed) / divisor), misses


def lies_on(piece: Piece, other: Piece) -> Bool[Array, "*n"]:
    """Whether the edges of a piece can lie on the other piece: on a face, or as a line along a line."""
    lines = (safe_normalize(x.points[:, 2] - x.points[:, 0], 0) for x in lax.stop_gradient((piece, other)))
    across = ca.cross(*lines)
    are_parallel = ca.dot(across, across) < PARALLEL_SINE**2
    are_lines = (piece.dimension == 1) & (other.dimension == 1) & are_parallel
    return ((piece.dimension > 0) & (other.dimension == 2)) | are_lines
