"""Inertias as numbers that may take any value: the logarithmic Cholesky factor of the central second moment.

The second moment of mass per mass about the centre of mass, S = tr(G)/2 1 - G with G = G_SScm_E, is positive definite
where the pseudo-inertia is, that is for a body with a density (Wensing, Kim, Slotine 2018). S = U Uᵀ with U upper
triangular, of which the diagonal's logarithms and, divided by the diagonal of their column, the other entries are six
numbers that may take any value. With the logarithm of the mass and the centre of mass they are the ten log-Cholesky
parameters of Rucker and Wensing (2022), up to scale. Leading axes are batch axes.
"""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from .inertia_kernels import point_mass_unit_inertia, rotational_inertia_matrix


def central_second_moment(p_PScm_E: Float[Array, "*batch 3"], G_SP_E: Float[Array, "*batch 6"]) -> Array:
    """S in m², as a matrix (..., 3, 3)."""
    G = G_SP_E - point_mass_unit_inertia(p_PScm_E)
    half_trace = 0.5 * (G[..., 0] + G[..., 1] + G[..., 2])
    return half_trace[..., None, None] * jnp.eye(3, dtype=G.dtype) - rotational_inertia_matrix(G)


def unit_inertia_of_second_moment(p_PScm_E: Float[Array, "*batch 3"], S: Float[Array, "*batch 3 3"]) -> Array:
    """The inverse of `central_second_moment`: G_SP_E, six numbers in m²."""
    xx, yy, zz = S[..., 0, 0], S[..., 1, 1], S[..., 2, 2]
    central = [yy + zz, xx + zz, xx + yy, -S[..., 0, 1], -S[..., 0, 2], -S[..., 1, 2]]
    return jnp.stack(central, -1) + point_mass_unit_inertia(p_PScm_E)


def log_cholesky(
    S: Float[Array, "*batch 3 3"], smallest: Float[Array, "*batch"]
) -> tuple[Float[Array, "*batch 6"], Bool[Array, "*batch"]]:
    """[log u11, log u22, log u33, u12/u22, u13/u33, u23/u33], and whether S is positive definite.

    Pivots must be greater than `smallest`, in m²; elsewhere the numbers are zero, and so are their derivatives.
    """
    a, d, f = S[..., 0, 0], S[..., 1, 1], S[..., 2, 2]
    b, c, e = S[..., 0, 1], S[..., 0, 2], S[..., 1, 2]
    third = f > smallest
    f = jnp.where(third, f, 1.0)
    n13, n23 = c / f, e / f  # u13/u33 = c/f, as u13 = c/u33
    pivot_2 = d - e * n23
    second = third & (pivot_2 > smallest)
    pivot_2 = jnp.where(second, pivot_2, 1.0)
    n12 = (b - c * n23) / pivot_2
    pivot_1 = a - c * n13 - pivot_2 * n12**2
    is_definite = second & (pivot_1 > smallest)
    pivot_1 = jnp.where(is_definite, pivot_1, 1.0)
    logs = [0.5 * jnp.log(x) for x in (pivot_1, pivot_2, f)]
    numbers = jnp.stack([*logs, n12, n13, n23], -1)
    return jnp.where(is_definite[..., None], numbers, 0.0), is_definite


def from_log_cholesky(numbers: Float[Array, "*batch 6"]) -> Float[Array, "*batch 3 3"]:
    """S = U Uᵀ of the six numbers, in m²: positive definite, whatever they are."""
    d1, d2, d3 = (jnp.exp(2.0 * numbers[..., i]) for i in range(3))
    n12, n13, n23 = (numbers[..., i] for i in range(3, 6))
    b, c, e = n12 * d2 + n13 * n23 * d3, n13 * d3, n23 * d3
    a, d = d1 + n12**2 * d2 + n13**2 * d3, d2 + n23**2 * d3
    rows = [jnp.stack(row, -1) for row in ((a, b, c), (b, d, e), (c, e, d3))]
    return jnp.stack(rows, -2)
