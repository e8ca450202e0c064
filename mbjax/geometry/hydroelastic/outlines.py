"""Polygons on face planes that other planes bound: which planes bound them, and where their corners are.

Which planes meet at a corner is found by cutting and clipping, without derivatives. Then all corners are computed as
where three planes meet, which has derivatives of every order, and no trace of the way there.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide

from .planes import Planes

POWERS = (1, 2, 4, 8)


class Outline(NamedTuple):
    """Corners of polygons, and for each corner the index of the plane that the edge to the next corner lies in.

    Slots after the last corner repeat the first one.
    """

    corners: Float[Array, "3 corners n"]
    edges: Int[Array, "corners n"]
    num_corners: Int[Array, " n"]


class EdgeTable(NamedTuple):
    """How a plane cuts a tetrahedron, by the row sum(2^i) over the corners i above it.

    The polygon's corners are on the tetrahedron's edges from a corner above to one below. Its edges are in the faces
    opposite to the corners `faces`. It winds counterclockwise about the plane's normal, which points up. A missing
    fourth corner repeats the first.
    """

    above: Int[np.ndarray, "16 4"]
    below: Int[np.ndarray, "16 4"]
    faces: Int[np.ndarray, "16 4"]
    num_corners: Int[np.ndarray, " 16"]


def edge_table() -> EdgeTable:
    """The table, from a tetrahedron that is not inside out."""
    table = EdgeTable(*(np.zeros((16, 4), int) for _ in range(3)), np.zeros(16, int))
    reference = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    for row in range(1, 15):
        above = [i for i in range(4) if row >> i & 1]
        below = [i for i in range(4) if not row >> i & 1]
        edges = [(i, j) for i in above for j in below]
        if len(edges) == 4:  # around the quadrilateral
            edges[2:] = edges[3], edges[2]
        middles = np.array([reference[[i, j]].mean(axis=0) for i, j in edges])
        up = reference[above].mean(axis=0) - reference[below].mean(axis=0)
        if np.cross(middles[1] - middles[0], middles[2] - middles[0]) @ up < 0.0:
            edges.reverse()
        table.num_corners[row] = len(edges)
        following = edges[1:] + edges[:1]
        faces = [({0, 1, 2, 3} - {*edge, *after}).pop() for edge, after in zip(edges, following, strict=True)]
        for slot in range(4):
            which = slot if slot < len(edges) else 0
            table.above[row, slot], table.below[row, slot] = edges[which]
            table.faces[row, slot] = faces[which]
    return table


TABLE = edge_table()


def cut_tetrahedra(corners: Float[Array, "3 4 n"], heights: Float[Array, "4 n"]) -> Outline:
    """Polygons where the heights of corners above planes change sign; a corner at height 0 counts as below."""
    row = sum(jnp.where(height > 0.0, power, 0) for height, power in zip(heights, POWERS, strict=True))
    above, below, faces = (jnp.asarray(part.T)[:, row] for part in TABLE[:3])
    height_above = jnp.take_along_axis(heights, above, axis=0)
    height_below = jnp.take_along_axis(heights, below, axis=0)
    start = jnp.take_along_axis(corners, above[None], axis=1)
    end = jnp.take_along_axis(corners, below[None], axis=1)
    share = safe_divide(height_above, height_above - height_below)
    return Outline(start + share * (end - start), faces, jnp.asarray(TABLE.num_corners)[row])


def whole_triangles(triangles: Float[Array, "3 3 n"]) -> Outline:
    """The outlines of triangles; the edge from corner k is in plane k."""
    count = triangles.shape[2]
    edges = jnp.broadcast_to(jnp.arange(3)[:, None], (3, count))
    return Outline(triangles, edges, jnp.full(count, 3))


def clip(outline: Outline, planes: Planes, first: int, num_slots: int) -> Outline:
    """The parts of polygons on the inner side of planes (…, m, n) from the first one on, with slots for more corners."""
    more = num_slots - outline.corners.shape[1]
    corners = jnp.concatenate([outline.corners, jnp.repeat(outline.corners[:, :1], more, axis=1)], axis=1)
    edges = jnp.concatenate([outline.edges, jnp.repeat(outline.edges[:1], more, axis=0)])
    reach = jnp.abs(corners).max(axis=(0, 1))
    size = jnp.abs(planes.slope).sum(axis=0) * reach + jnp.abs(planes.at_origin)
    rounding = 16.0 * float(jnp.finfo(corners.dtype).eps) * size

    def step(outline: Outline, plane: tuple[Planes, Array, Array]) -> tuple[Outline, None]:
        return clip_once(outline, *plane), None

    slopes, values = jnp.moveaxis(planes.slope, 1, 0)[first:], planes.at_origin[first:]
    steps = Planes(slopes, values), rounding[first:], jnp.arange(first, len(planes.at_origin))
    return jax.lax.scan(step, Outline(corners, edges, outline.num_corners), steps)[0]


def clip_once(outline: Outline, plane: Planes, rounding: Float[Array, " n"], index: Int[Array, ""]) -> Outline:
    """Clips polygons by one plane each.

    The corners inside a plane follow each other. A polygon is turned so that they come first. Then there are the points
    where it leaves the plane's inner side and where it comes back (Sutherland and Hodgman 1974). Corners up to
    `rounding` outside count as inside, or those in the plane would not follow each other.
    """
    num_slots = outline.corners.shape[1]
    slot = jnp.arange(num_slots)[:, None]
    number = jnp.maximum(outline.num_corners, 1)
    is_inside = (plane.at(outline.corners) >= -rounding) & (slot < outline.num_corners)
    num_inside = is_inside.sum(axis=0)
    comes_back = is_inside & ~jnp.take_along_axis(is_inside, (slot - 1) % number, axis=0)
    start = jnp.argmax(comes_back, axis=0)
    turn = (start + slot) % number
    corners = jnp.take_along_axis(outline.corners, turn[None], axis=1)
    edges = jnp.take_along_axis(outline.edges, turn, axis=0)
    depth = plane.at(corners)
    last = jnp.stack([num_inside - 1, number - 1]) % number  # before the crossings out of the plane's side, and back
    ends = jnp.stack([num_inside % number, jnp.zeros_like(number)])
    crossings = crossings_of(corners, depth, last, ends)
    is_whole = num_inside == outline.num_corners
    count = jnp.where(is_whole, outline.num_corners, jnp.where(num_inside > 0, num_inside + 2, 0))
    last_edge = jnp.take_along_axis(edges, last[1:], axis=0)
    is_out, is_back = (slot == num_inside) & ~is_whole, (slot == num_inside + 1) & ~is_whole
    corners = jnp.where(is_out, crossings[:, :1], jnp.where(is_back, crossings[:, 1:], corners))
    edges = jnp.where(is_out, index, jnp.where(is_back, last_edge, edges))
    return Outline(jnp.where(slot < count, corners, corners[:, :1]), edges, jnp.minimum(count, num_slots))


def crossings_of(
    corners: Float[Array, "3 corners n"],
    depth: Float[Array, "corners n"],
    start: Int[Array, "edges n"],
    end: Int[Array, "edges n"],
) -> Float[Array, "3 edges n"]:
    """Points of depth 0 between two corners; a corner that counts as inside has a depth of 0 or more."""
    depth_start, depth_end = (jnp.take_along_axis(depth, index, axis=0) for index in (start, end))
    share = safe_divide(depth_start, depth_start - depth_end)
    p_start, p_end = (jnp.take_along_axis(corners, index[None], axis=1) for index in (start, end))
    return p_start + jnp.clip(share, 0.0, 1.0) * (p_end - p_start)


def corners_where_planes_meet(outline: Outline, face: Planes, planes: Planes) -> Float[Array, "3 corners n"]:
    """Corners as where the face's plane meets those of the two edges, s·x + c = 0 for all three.

    From the outline's corner x the solution is x - (r1 s2 x s3 + r2 s3 x s1 + r3 s1 x s2) / det(s1, s2, s3) with the
    residuals r. Where two planes are so nearly parallel that rounding decides, the outline's corner stays, and has no
    derivative.
    """
    num_slots = outline.corners.shape[1]
    slot = jnp.arange(num_slots)[:, None]
    before = jnp.take_along_axis(outline.edges, (slot - 1) % jnp.maximum(outline.num_corners, 1), axis=0)
    x = jax.lax.stop_gradient(outline.corners)
    face = Planes(face.slope[:, None], face.at_origin)
    p, q = picked(planes, before), picked(planes, outline.edges)
    pq = ca.cross(p.slope, q.slope)
    face_slope = jnp.broadcast_to(face.slope, pq.shape)
    det = ca.dot(face_slope, pq)
    moved = face.at(x) * pq + p.at(x) * ca.cross(q.slope, face_slope) + q.at(x) * ca.cross(face_slope, p.slope)
    squares = ca.dot(face_slope, face_slope) * ca.dot(p.slope, p.slope) * ca.dot(q.slope, q.slope)
    meets = (det * det > float(jnp.finfo(x.dtype).eps) * squares) & (slot < outline.num_corners)
    corners = x - jnp.where(meets, moved / jnp.where(meets, det, 1.0), 0.0)
    return jnp.where(slot < outline.num_corners, corners, corners[:, :1])


def picked(planes: Planes, index: Int[Array, "corners n"]) -> Planes:
    """The plane of each corner: a sum over all, as the transpose of a gather is slow."""
    is_it = jnp.arange(planes.at_origin.shape[0])[:, None] == index[:, None]
    slope = jnp.where(is_it, planes.slope[:, None], 0.0).sum(axis=2)
    return Planes(slope, jnp.where(is_it, planes.at_origin, 0.0).sum(axis=1))
