"""Damping matrices that give every mode of an inertia on springs the damping ratio asked for."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.linear_algebra import cholesky, singular_value_factors, solve, solve_lower_triangular
from mbjax.spatial import safe_sqrt


def damping_matrix(inertia: Float[Array, "n n"], stiffness: Float[Array, "n n"], ratio: Array) -> Float[Array, "n n"]:
    """Damping D = 2 ζ L (L⁻¹ K L⁻ᵀ)^½ Lᵀ with the inertia Λ = L Lᵀ and the stiffness K.

    Λ and K are diagonal in the same coordinates, in which each mode has the damping ratio ζ: double diagonalization
    (Albu-Schäffer et al. 2003, "Cartesian impedance control of redundant robots").
    """
    L = cholesky(inertia)
    half = solve_lower_triangular(L, stiffness)
    modes = solve_lower_triangular(L, half.T)
    return 2.0 * ratio * L @ matrix_root(0.5 * (modes + modes.T)) @ L.T


@jax.custom_jvp
def matrix_root(X: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Symmetric root S of a symmetric positive semidefinite matrix, S S = X."""
    U, values, _ = singular_value_factors(X)
    return (U * safe_sqrt(jnp.where(are_zero(values), 0.0, values))) @ U.T


def are_zero(values: Float[Array, " n"]) -> Bool[Array, " n"]:
    """Which eigenvalues, the largest first, are zero but for rounding."""
    return values <= len(values) * jnp.finfo(values.dtype).eps * values[0]


@matrix_root.defjvp
def _matrix_root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dS solves S dS + dS S = dX, also where eigenvalues are equal, and is zero within the null space of X."""
    (X,), (dX,) = primals, tangents
    S, P, one = matrix_root(X), null_projector(X), jnp.eye(len(X), dtype=X.dtype)
    both = jnp.kron(S, one) + jnp.kron(one, S) + jnp.kron(P, P)
    return S, solve(both, (dX - P @ dX @ P).ravel()).reshape(X.shape)


@jax.custom_jvp
def null_projector(X: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Projector P onto the null space of a symmetric positive semidefinite matrix: P P = P and X P = 0."""
    U, values, _ = singular_value_factors(X)
    return (U * are_zero(values).astype(X.dtype)) @ U.T


@null_projector.defjvp
def _null_projector_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dP = -(Y + Yᵀ) with Y = X⁺ dX P, where the number of zero eigenvalues stays."""
    (X,), (dX,) = primals, tangents
    P = null_projector(X)
    change = dX @ P
    Y = solve(X + P, change - P @ change)
    return P, -(Y + Y.T)
