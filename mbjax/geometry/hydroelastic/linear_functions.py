"""Linear functions of position on the elements of meshes, in homogeneous components.

A function (a, b, c, d) is a x + b y + c z + d at the point (x, y, z, 1), and positive on the inner side of the plane
where it is zero. Components come first, then the functions or points of an element, then elements.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import RigidTransform, safe_divide, safe_norm
from mbjax.spatial import component_algebra as ca

TETRAHEDRON_FACES = slice(0, 4)
TETRAHEDRON_PRESSURE = 4
TRIANGLE_EDGES = slice(0, 3)
TRIANGLE_FACE = 3


def functions_of_tetrahedra(
    corners: Float[Array, "3 4 n"], pressures: Float[Array, "4 n"]
) -> Float[Array, "4 functions n"]:
    """The four barycentric coordinates, which are 0 on the face opposite to a corner and 1 there, and the pressure.

    With edges from corner 0, that of corner 1 is (e2 x e3)·(x - corner 0) / e1·(e2 x e3). A flat tetrahedron has zeros.
    """
    origin = corners[:, 0]
    e1, e2, e3 = (corners[:, i] - origin for i in (1, 2, 3))
    normals = jnp.stack([ca.cross(e2, e3), ca.cross(e3, e1), ca.cross(e1, e2)], axis=1)
    volume = ca.dot(e1, normals[:, 0])
    slopes = safe_divide(normals, jnp.broadcast_to(volume, normals.shape))
    others = jnp.concatenate([slopes, -(slopes * origin[:, None]).sum(axis=0, keepdims=True)])
    is_solid = jnp.where(volume == 0.0, 0.0, 1.0)
    one = jnp.stack([*([jnp.zeros_like(volume)] * 3), is_solid])
    first = (one - others.sum(axis=1))[:, None]
    pressure = (others * (pressures[1:] - pressures[0])).sum(axis=1) + one * pressures[0]
    return jnp.concatenate([first, others, pressure[:, None]], axis=1)


def functions_of_triangles(corners: Float[Array, "3 3 n"]) -> Float[Array, "4 functions n"]:
    """Three functions that are 0 on the edge from a corner to the next and 1 at the third corner, and the distance.

    The distance is positive on the side from which the corners are counterclockwise. The edges' functions are
    (n x e)·(x - corner) / |n|², with the edge e and n = e0 x e1. A triangle without area has zeros.
    """
    edges = jnp.roll(corners, -1, axis=1) - corners
    normal = ca.cross(edges[:, 0], edges[:, 1])
    spread = jnp.broadcast_to(normal[:, None], edges.shape)
    slopes = safe_divide(ca.cross(spread, edges), jnp.broadcast_to(ca.dot(spread, spread), edges.shape))
    unit = safe_divide(normal, jnp.broadcast_to(safe_norm(normal, axis=0), normal.shape))
    slopes = jnp.concatenate([slopes, unit[:, None]], axis=1)
    points = jnp.concatenate([corners, corners[:, :1]], axis=1)
    return jnp.concatenate([slopes, -(slopes * points).sum(axis=0, keepdims=True)])


def moved_functions(X_CG: RigidTransform, functions_G: Float[Array, "4 *n"]) -> Float[Array, "4 *n"]:
    """Functions of positions in G as functions of positions in C: slope R s, and d - R s · p."""
    R_CG, p_CoGo_C = X_CG.rotation, X_CG.translation
    sides = jnp.concatenate([R_CG, -(p_CoGo_C @ R_CG)[None]])
    return matrix_times_columns(
        jnp.concatenate([sides, jnp.array([[0.0], [0.0], [0.0], [1.0]], sides.dtype)], axis=1), functions_G
    )


def moved_points(X_CG: RigidTransform, points_G: Float[Array, "4 *n"]) -> Float[Array, "4 *n"]:
    """Homogeneous points of G in C."""
    return matrix_times_columns(X_CG.as_matrix4(), points_G)


def matrix_times_columns(matrix: Float[Array, "4 4"], columns: Float[Array, "4 *n"]) -> Float[Array, "4 *n"]:
    """A matrix times many columns."""
    return jnp.tensordot(matrix, columns, axes=1, precision=jax.lax.Precision.HIGHEST)


def values_of_all(functions: Float[Array, "4 *n"], points: Float[Array, "4 ..."]) -> Float[Array, "..."]:
    """Values of all functions at all points."""
    return jnp.tensordot(functions, points, axes=(0, 0), precision=jax.lax.Precision.HIGHEST)


def homogeneous(positions: Float[Array, "3 *n"]) -> Float[Array, "4 *n"]:
    """Positions with a 1 as fourth component."""
    return jnp.concatenate([positions, jnp.ones_like(positions[:1])])


def values_at(functions: Float[Array, "4 *n"], positions: Float[Array, "3 ..."]) -> Float[Array, "..."]:
    """Values of functions each at its own points; axes after the components broadcast."""
    a, b, c, d = functions
    return a * positions[0] + b * positions[1] + c * positions[2] + d
