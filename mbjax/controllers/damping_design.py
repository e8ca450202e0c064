"""Damping matrices that give every mode of an inertia on springs the damping ratio asked for."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

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
    """Symmetric root S of a symmetric positive definite matrix, S S = X."""
    U, values, _ = singular_value_factors(X)
    return (U * safe_sqrt(values)) @ U.T


@matrix_root.defjvp
def _matrix_root_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dS solves S dS + dS S = dX, also where eigenvalues are equal."""
    (X,), (dX,) = primals, tangents
    S, one = matrix_root(X), jnp.eye(len(X), dtype=X.dtype)
    both = jnp.kron(S, one) + jnp.kron(one, S)
    return S, solve(both, dX.ravel()).reshape(X.shape)
