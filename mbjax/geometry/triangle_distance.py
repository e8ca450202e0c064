"""Distance of points to the nearest of many triangles."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_sqrt

EQUALLY_NEAR = 1e3  # times the rounding: of triangles so nearly as near as the nearest, the first one counts


def distance_to_triangles(points: Float[Array, "k 3"], triangles: Float[Array, "m 3 3"]) -> Float[Array, " k"]:
    """Distances of points to the nearest triangle, in m. They are differentiated with that triangle held."""
    corners = jnp.transpose(triangles, (2, 1, 0))
    each, all_corners = points.T[:, :, None], corners[:, :, None]
    squares = jax.lax.stop_gradient(squared_distance(each, all_corners))  # k, m
    limit = squares.min(axis=1, keepdims=True) * (1.0 + EQUALLY_NEAR * float(jnp.finfo(points.dtype).eps))
    nearest = jnp.argmax(squares <= limit, axis=1)
    return safe_sqrt(squared_distance(points.T, corners[:, :, nearest]))


def squared_distance(p: Float[Array, "3 ..."], corners: Float[Array, "3 3 ..."]) -> Float[Array, "..."]:
    """Squared distances of points to triangles: of the nearest edge, or of the plane where the foot is inside."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    normal = ca.cross(b - a, c - a)
    of_edges, inside = [], True
    for start, end in ((a, b), (b, c), (c, a)):
        edge, arm = end - start, p - start
        share = jnp.clip(safe_divide(ca.dot(arm, edge), ca.dot(edge, edge)), 0.0, 1.0)
        off = arm - share * edge
        of_edges.append(ca.dot(off, off))
        inside = inside & (ca.dot(ca.cross(edge, arm), normal) >= 0.0)
    height = ca.dot(p - a, normal)
    of_plane = safe_divide(height * height, ca.dot(normal, normal))
    return jnp.where(inside, of_plane, jnp.minimum(jnp.minimum(of_edges[0], of_edges[1]), of_edges[2]))
