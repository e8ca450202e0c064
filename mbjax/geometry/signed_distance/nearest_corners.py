"""The vertices of a polyhedron near its farthest point along a direction."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_normalize, safe_sqrt

from .choices import chosen_columns, dot_columns, index_of_farthest, index_of_largest

DIRECTION_ROUNDING = 64.0  # rounding of directions, and of lengths relative to a shape's size, in machine epsilons
TIE = 1024.0  # relative difference, in machine epsilons, below which two vertices or edges count as equal
NARROW = 1e-6  # distance, relative to the farthest vertex, below which two vertices count as one


def heights(vertices: Float[Array, "3 m *n"], direction: Float[Array, "3 *n"]) -> Float[Array, "m *n"]:
    """Heights of vertices along a direction."""
    return ca.dot(vertices, direction[:, None])


def nearest_corners(
    vertices: Float[Array, "3 m *n"], direction: Float[Array, "3 *n"], towards: Float[Array, "3 *n"]
) -> Int[Array, "3 *n"]:
    """The farthest vertex, the other end of its flattest edge, and a third vertex of the flattest face there.

    A plane turns about the vertex, and then about the edge, until it meets another vertex (gift wrapping). Of vertices
    that are equally far it takes the one nearest to `towards`, and of level edges the one towards it.
    """
    up = heights(vertices, direction)
    rounding = DIRECTION_ROUNDING * float(jnp.finfo(up.dtype).eps) * jnp.max(sum(jnp.abs(vertices)), axis=0)
    beside = vertices - towards[:, None]
    is_farthest = up >= jnp.max(up, axis=0) - rounding
    tie = TIE * float(jnp.finfo(up.dtype).eps)
    first = index_of_farthest(jnp.where(is_farthest, -ca.dot(beside, beside), -jnp.inf), relative=tie)
    arms = vertices - chosen_columns(first, vertices, axis=1)[:, None]
    squared = ca.dot(arms, arms)
    least = NARROW**2 * jnp.max(squared, axis=0)
    drop = -heights(arms, direction)
    across = safe_sqrt(squared - drop * drop)
    aim = towards - chosen_columns(first, vertices, axis=1)
    aim = safe_normalize(aim - ca.scale(direction, dot_columns(direction, aim)), 0)
    flatness = jnp.where(is_farthest, ca.dot(arms, aim[:, None]) + 2.0 * across, -drop)
    is_other = (squared > least) & (across > 0.0)
    second = index_of_farthest(jnp.where(is_other, safe_divide(flatness, across), -jnp.inf), tie, tie)
    edge = safe_normalize(chosen_columns(second, arms, axis=1), 0)
    normal = safe_normalize(direction - ca.scale(edge, dot_columns(edge, direction)), 0)
    aside = jnp.abs(heights(arms, ca.cross(normal, edge)))
    slope = safe_divide(-heights(arms, normal), aside)
    third = index_of_farthest(jnp.where(aside * aside > least, -slope, -jnp.inf), tie, tie)
    near = jnp.stack([first, second, third])
    are_level = (
        chosen_columns(second, is_farthest.astype(up.dtype)) * chosen_columns(third, is_farthest.astype(up.dtype)) > 0.0
    )
    return jnp.where(are_level, nearest_edge_first(vertices, near, towards, rounding), near)


def nearest_edge_first(
    vertices: Float[Array, "3 m *n"],
    near: Int[Array, "3 *n"],
    point: Float[Array, "3 *n"],
    rounding: Float[Array, "*n"],
) -> Int[Array, "3 *n"]:
    """Orders three vertices so that the edge from the first to the second is the one nearest to a point.

    Of edges that are as near within rounding, it is the first in the order of the vertices.
    """
    first, second, third = (chosen_columns(index, vertices, axis=1) for index in near)
    start = jnp.stack([first, first, second], axis=1)
    along = jnp.stack([second - first, third - first, third - second], axis=1)
    arm = point[:, None] - start
    part = jnp.clip(safe_divide(dot_columns(arm, along), dot_columns(along, along)), 0.0, 1.0)
    off = arm - part * along
    edge, _ = index_of_largest(-safe_sqrt(dot_columns(off, off)), rounding)
    return chosen_columns(edge, jnp.stack([near, near[np.array([0, 2, 1])], near[np.array([1, 2, 0])]], axis=1), axis=1)
