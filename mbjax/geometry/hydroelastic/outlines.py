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

from .linear_functions import values_at
from .selection import take_columns

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
    nothing = np.zeros((16, 4), int)
    table = EdgeTable(nothing, nothing.copy(), nothing.copy(), np.zeros(16, int))
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
COLUMNS = np.concatenate([TABLE.above.T, TABLE.below.T, TABLE.faces.T, TABLE.num_corners[None]])


def cut_tetrahedra(corners: Float[Array, "3 4 n"], heights: Float[Array, "4 n"]) -> Outline:
    """Polygons where the heights of corners above planes change sign; a corner at height 0 counts as below."""
    row = (jnp.where(heights > 0.0, 1, 0) * jnp.array(POWERS)[:, None]).sum(axis=0)
    above, below, faces, number = jnp.split(take_columns(jnp.asarray(COLUMNS), row), (4, 8, 12))
    listed = jnp.concatenate([corners, heights[None]])
    start, end = taken_along(listed, above), taken_along(listed, below)
    share = safe_divide(start[3], start[3] - end[3])
    return Outline(start[:3] + share * (end[:3] - start[:3]), faces, number[0])


def whole_triangles(triangles: Float[Array, "3 3 n"]) -> Outline:
    """The outlines of triangles; the edge from corner k is in plane k."""
    count = triangles.shape[2]
    return Outline(triangles, jnp.broadcast_to(jnp.arange(3)[:, None], (3, count)), jnp.full(count, 3))


def clip(outline: Outline, planes: Float[Array, "4 m n"], first: int, num_slots: int) -> Outline:
    """The parts of polygons on the inner side of planes from the first one on, with slots for more corners."""
    more = num_slots - outline.corners.shape[1]
    corners = jnp.concatenate([outline.corners, jnp.repeat(outline.corners[:, :1], more, axis=1)], axis=1)
    edges = jnp.concatenate([outline.edges, jnp.repeat(outline.edges[:1], more, axis=0)])
    reach = jnp.abs(corners).max(axis=(0, 1))
    size = jnp.abs(planes[:3]).sum(axis=0) * reach + jnp.abs(planes[3])
    rounding = 16.0 * float(jnp.finfo(corners.dtype).eps) * size
    state = jnp.concatenate([corners, edges.astype(corners.dtype)[None]])

    def step(carry: tuple[Array, Array], plane: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        return clip_once(*carry, *plane), None

    count = planes.shape[1]
    steps = jnp.moveaxis(planes, 1, 0)[first:], rounding[first:], jnp.arange(first, count).astype(corners.dtype)
    (state, number), _ = jax.lax.scan(step, (state, outline.num_corners), steps)
    return Outline(state[:3], state[3].astype(int), number)


def clip_once(
    state: Float[Array, "4 corners n"],
    number: Int[Array, " n"],
    plane: Float[Array, "4 n"],
    rounding: Float[Array, " n"],
    index: Float[Array, ""],
) -> tuple[Float[Array, "4 corners n"], Int[Array, " n"]]:
    """Clips polygons by one plane each; the fourth component of a corner is the plane of the edge that follows.

    The corners inside a plane follow each other. A polygon is turned so that they come first. Then there are the points
    where it leaves the plane's inner side and where it comes back (Sutherland and Hodgman 1974). Corners up to
    `rounding` outside count as inside, or those in the plane would not follow each other.
    """
    num_slots = state.shape[1]
    slot = jnp.arange(num_slots)[:, None]
    is_last = slot == number - 1
    is_inside = (values_at(plane, state[:3]) >= -rounding) & (slot < number)
    num_inside = is_inside.sum(axis=0)
    is_last_inside = (is_inside & is_last).any(axis=0)
    comes_back = is_inside & ~jnp.concatenate([is_last_inside[None], is_inside[:-1]])
    start = jnp.where(comes_back, slot, 0).sum(axis=0)
    turn = start + slot
    turn = jnp.where(turn < number, turn, turn - number)
    turned = taken_along(state, jnp.clip(turn, 0, num_slots - 1))
    turned = jnp.where(slot < number, turned, turned[:, :1])
    ahead = jnp.roll(turned[:3], -1, axis=1)
    depth, depth_ahead = values_at(plane, turned[:3]), values_at(plane, ahead)
    share = jnp.clip(safe_divide(depth, depth - depth_ahead), 0.0, 1.0)
    crossings = turned[:3] + share * (ahead - turned[:3])
    out = jnp.concatenate([jnp.roll(crossings, 1, axis=1), jnp.full_like(state[:1], index)])
    back = jnp.where(is_last, jnp.concatenate([crossings, turned[3:]]), 0.0).sum(axis=1, keepdims=True)
    is_whole = num_inside == number
    clipped = jnp.where((slot < num_inside) | is_whole, turned, jnp.where(slot == num_inside, out, back))
    count = jnp.where(is_whole, number, jnp.where(num_inside > 0, num_inside + 2, 0))
    return jnp.where(slot < count, clipped, clipped[:, :1]), jnp.minimum(count, num_slots)


def corners_where_planes_meet(
    outline: Outline, face: Float[Array, "4 n"], planes: Float[Array, "4 m n"]
) -> Float[Array, "3 corners n"]:
    """Corners as where the face's plane meets those of the two edges: s·x + d = 0 for all three.

    From the outline's corner x the solution is x - (r1 s2 x s3 + r2 s3 x s1 + r3 s1 x s2) / det(s1, s2, s3) with the
    residuals r. Where two planes are so nearly parallel that rounding decides, the outline's corner stays, and has no
    derivative.
    """
    slot = jnp.arange(outline.edges.shape[0])[:, None]
    is_corner = slot < outline.num_corners
    last = jnp.where(slot == outline.num_corners - 1, outline.edges, 0).sum(axis=0, keepdims=True)
    x = outline.corners
    p, q = picked(planes, jnp.concatenate([last, outline.edges[:-1]])), picked(planes, outline.edges)
    f = jnp.broadcast_to(face[:, None], p.shape)
    pq = ca.cross(p[:3], q[:3])
    det = ca.dot(f[:3], pq)
    step = values_at(f, x) * pq + values_at(p, x) * ca.cross(q[:3], f[:3]) + values_at(q, x) * ca.cross(f[:3], p[:3])
    squares = ca.dot(f[:3], f[:3]) * ca.dot(p[:3], p[:3]) * ca.dot(q[:3], q[:3])
    meets = (det * det > float(jnp.finfo(x.dtype).eps) * squares) & is_corner
    corners = x - jnp.where(meets, step, 0.0) / jnp.where(meets, det, 1.0)
    return jnp.where(is_corner, corners, corners[:, :1])


def picked(planes: Float[Array, "4 m n"], index: Int[Array, "corners n"]) -> Float[Array, "4 corners n"]:
    """The plane of each corner: a sum over all, as the transpose of a gather is slow."""
    is_it = jnp.arange(planes.shape[1])[:, None] == index[:, None]
    return jnp.where(is_it, planes[:, None], 0.0).sum(axis=2)


def taken_along(x: Float[Array, "k corners n"], index: Int[Array, "slots n"]) -> Float[Array, "k slots n"]:
    """The corner of each slot, by indices that are known to be valid."""
    return jnp.take_along_axis(x, index[None], axis=1, mode="promise_in_bounds")
