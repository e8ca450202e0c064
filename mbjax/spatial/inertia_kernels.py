"""Inertia formulas on plain arrays, for the dynamics kernels and for the inertia classes.

A rotational inertia is six numbers, [Ixx, Iyy, Izz, Ixy, Ixz, Iyz]: the entries of its symmetric
matrix (products are the entries themselves, the negative integrals of x y dm and so on).
A spatial inertia is (mass, com, G6): mass in kg, com = p_PScm_E in m, and the unit inertia
G_SP_E in m^2 about point P, so that the rotational inertia about P is mass * G6.
Leading axes are batch axes, the same for all arguments of one call.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from .rotation import skew
from .small_matrices import cross3, small_matmul, small_matvec


def rotational_inertia_matrix(moments_products: Float[Array, "*batch 6"]) -> Array:
    """Symmetric (3, 3) matrix of [Ixx, Iyy, Izz, Ixy, Ixz, Iyz]."""
    xx, yy, zz, xy, xz, yz = (moments_products[..., i] for i in range(6))
    entries = jnp.stack([xx, xy, xz, xy, yy, yz, xz, yz, zz], axis=-1)
    return entries.reshape((*moments_products.shape[:-1], 3, 3))


def rotational_inertia_from_matrix(matrix: Float[Array, "*batch 3 3"]) -> Float[Array, "*batch 6"]:
    """Inverse of `rotational_inertia_matrix`; reads the upper triangle."""
    rows_columns = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    return jnp.stack([matrix[..., i, j] for i, j in rows_columns], axis=-1)


def re_express_rotational_inertia(
    R_AE: Float[Array, "*batch 3 3"], inertia_E: Float[Array, "*batch 6"]
) -> Float[Array, "*batch 6"]:
    """Re-expresses a rotational inertia from frame E in frame A: R I R^T."""
    matrix = small_matmul(R_AE, rotational_inertia_matrix(inertia_E))
    return rotational_inertia_from_matrix(small_matmul(matrix, jnp.swapaxes(R_AE, -1, -2)))


def point_mass_unit_inertia(p_PQ_E: Float[Array, "*batch 3"]) -> Float[Array, "*batch 6"]:
    """Unit inertia |p|^2 1 - p p^T about P of a particle at Q."""
    x, y, z = p_PQ_E[..., 0], p_PQ_E[..., 1], p_PQ_E[..., 2]
    xx, yy, zz = x * x, y * y, z * z
    return jnp.stack([yy + zz, xx + zz, xx + yy, -x * y, -x * z, -y * z], axis=-1)


def shift_unit_inertia(
    G_SP_E: Float[Array, "*batch 6"],
    p_PScm_E: Float[Array, "*batch 3"],
    p_QScm_E: Float[Array, "*batch 3"],
) -> Float[Array, "*batch 6"]:
    """Unit inertia about Q from the one about P, by the parallel axis theorem twice."""
    G_SScm_E = G_SP_E - point_mass_unit_inertia(p_PScm_E)
    return G_SScm_E + point_mass_unit_inertia(p_QScm_E)


def spatial_inertia_matrix(
    mass: Float[Array, "*batch"], com: Float[Array, "*batch 3"], G6: Float[Array, "*batch 6"]
) -> Float[Array, "*batch 6 6"]:
    """Spatial mass matrix about P, rotation first (Jain 2010, section 2.1).

    M_SP_E = [[m G, m [c]x], [-m [c]x, m 1]]
    """
    mass_matrix = mass[..., None, None]
    first_moment = mass_matrix * skew(com)
    identity = jnp.broadcast_to(jnp.eye(3, dtype=com.dtype), first_moment.shape)
    upper = [mass_matrix * rotational_inertia_matrix(G6), first_moment]
    lower = [-first_moment, mass_matrix * identity]
    return jnp.concatenate([jnp.concatenate(upper, axis=-1), jnp.concatenate(lower, axis=-1)], axis=-2)


def spatial_inertia_times_vector(
    mass: Float[Array, "*batch"],
    com: Float[Array, "*batch 3"],
    G6: Float[Array, "*batch 6"],
    A: Float[Array, "*batch 6"],
) -> Float[Array, "*batch 6"]:
    """Product M_SP_E A without forming the matrix: [m G alpha + m c x a, m (a - c x alpha)]."""
    alpha, a = A[..., :3], A[..., 3:]
    rotational = small_matvec(rotational_inertia_matrix(G6), alpha) + cross3(com, a)
    translational = a - cross3(com, alpha)
    return mass[..., None] * jnp.concatenate([rotational, translational], axis=-1)
