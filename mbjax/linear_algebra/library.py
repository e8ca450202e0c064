"""Factorizations and solves of general matrices by LAPACK: the only place that calls it.

Everything is for one matrix; `vmap` gives many, in batches that are safe on every version (`call_library`). Solves are
differentiated as linear systems, to any order; factors by Cholesky's method and singular values have rules.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.execution import call_library

from . import lapack


@jax.custom_jvp
def cholesky(A: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Factor L of A = L Lᵀ, lower triangular, of the symmetric part of A; NaN where A is not positive definite."""
    return call_library(lapack.cholesky, A)[0]


@cholesky.defjvp
def _cholesky_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    """dL = L Φ(L⁻¹ dA L⁻ᵀ), where Φ takes the lower triangle and half the diagonal."""
    (A,), (dA,) = primals, tangents
    L = cholesky(A)
    inner = solve_lower_triangular(L, solve_lower_triangular(L, 0.5 * (dA + dA.T)).T)
    return L, L @ (jnp.tril(inner) - 0.5 * jnp.diag(jnp.diag(inner)))


def cholesky_solve(L: Float[Array, "n n"], b: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solves L Lᵀ x = b."""
    fixed = lax.stop_gradient(L)
    return lax.custom_linear_solve(
        lambda x: times(L, times(L.T, x)), b, lambda _, b: by_columns(lapack.cholesky_solve, fixed, b=b), symmetric=True
    )


def solve_lower_triangular(L: Float[Array, "n n"], b: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solves L x = b from the lower triangle of L."""
    fixed, lower = lax.stop_gradient(L), jnp.tril(L)
    return lax.custom_linear_solve(
        lambda x: times(lower, x),
        b,
        lambda _, b: by_columns(lapack.solve_lower, fixed, b=b),
        lambda _, b: by_columns(lapack.solve_lower_transposed, fixed, b=b),
    )


def solve_upper_triangular(R: Float[Array, "n n"], b: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solves R x = b from the upper triangle of R."""
    fixed, upper = lax.stop_gradient(R).T, jnp.triu(R)
    return lax.custom_linear_solve(
        lambda x: times(upper, x),
        b,
        lambda _, b: by_columns(lapack.solve_lower_transposed, fixed, b=b),
        lambda _, b: by_columns(lapack.solve_lower, fixed, b=b),
    )


def solve_positive_definite(A: Float[Array, "n n"], b: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solves A x = b of a symmetric positive definite A; NaN where it is not."""
    L = call_library(lapack.cholesky, lax.stop_gradient(A))[0]
    return lax.custom_linear_solve(
        lambda x: times(A, x), b, lambda _, b: by_columns(lapack.cholesky_solve, L, b=b), symmetric=True
    )


class TriangularFactors(NamedTuple):
    """Factors P A = L U with row exchanges, as LAPACK keeps them."""

    LU: Float[Array, "n n"]
    exchanges: Int[Array, " n"]


def factor_general(A: Float[Array, "n n"]) -> TriangularFactors:
    """Factors a square matrix; the factors are not differentiated."""
    return TriangularFactors(*call_library(lapack.lu, lax.stop_gradient(A)))


def solve_with_factors(
    A: Float[Array, "n n"], factors: TriangularFactors, b: Float[Array, "n *k"]
) -> Float[Array, "n *k"]:
    """Solves A x = b by the factors of A, differentiable by A and b."""
    return lax.custom_linear_solve(
        lambda x: times(A, x),
        b,
        lambda _, b: by_columns(lapack.lu_solve, *factors, b=b),
        lambda _, b: by_columns(lapack.lu_solve_transposed, *factors, b=b),
    )


def solve(A: Float[Array, "n n"], b: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solves A x = b of a square A by elimination with row exchanges."""
    return solve_with_factors(A, factor_general(A), b)


def log_determinant(A: Float[Array, "n n"]) -> Float[Array, ""]:
    """log det A of a symmetric positive definite matrix; NaN where it is not."""
    return 2.0 * jnp.sum(jnp.log(jnp.diag(cholesky(A))))


def triangular_factor(A: Float[Array, "m n"]) -> Float[Array, "k n"]:
    """The factor R of A = Q R by reflections, with AᵀA = RᵀR; not differentiated."""
    return call_library(lapack.qr_r, A)[0]


def orthogonal_factors(A: Float[Array, "m n"]) -> tuple[Float[Array, "m k"], Float[Array, "k n"]]:
    """Q and R of A = Q R; not differentiated."""
    Q, R = call_library(lapack.qr, A)
    return Q, R


def singular_value_factors(
    A: Float[Array, "m n"],
) -> tuple[Float[Array, "m k"], Float[Array, " k"], Float[Array, "k n"]]:
    """U, S and Vᵀ of A = U S Vᵀ, the largest first; not differentiated."""
    U, S, Vt = call_library(lapack.svd, A)
    return U, S, Vt


@jax.custom_jvp
def singular_values(A: Float[Array, "m n"]) -> Float[Array, " k"]:
    """Singular values, the largest first, with the derivative dS_i = u_iᵀ dA v_i, where they are distinct."""
    return call_library(lapack.singular_values, A)[0]


@singular_values.defjvp
def _singular_values_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    U, S, Vt = singular_value_factors(lax.stop_gradient(primals[0]))
    return S, jnp.sum((U.T @ tangents[0]) * Vt, axis=1)


def eigenvalues(A: Float[Array, "n n"]) -> Float[Array, " n"]:
    """Eigenvalues of the symmetric part of A, the smallest first; not differentiated."""
    return call_library(lapack.eigenvalues, A)[0]


def pseudo_inverse(A: Float[Array, "m n"], rtol: float) -> Float[Array, "n m"]:
    """A⁺ without the singular values below `rtol` times the largest; not differentiated."""
    U, S, Vt = singular_value_factors(lax.stop_gradient(A))
    kept = rtol * jnp.max(S, initial=0.0) < S
    one_over_S = jnp.where(kept, 1.0 / jnp.where(kept, S, 1.0), 0.0)
    return times(Vt.T, one_over_S[:, None] * U.T)


def by_columns(function: Callable, *factors: Array, b: Float[Array, "n *k"]) -> Float[Array, "n *k"]:
    """Solves for a vector, or for each column of a matrix."""
    columns = b if b.ndim == 2 else b[:, None]
    return call_library(function, *factors, columns, right_sides=len(factors))[0].reshape(b.shape)


def times(A: Float[Array, "m n"], x: Float[Array, "n *k"]) -> Float[Array, "m *k"]:
    """A x at full precision on every device."""
    return jnp.matmul(A, x, precision=lax.Precision.HIGHEST)
