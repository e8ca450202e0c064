"""LAPACK's functions as `call_library` takes them: of one matrix, each the same object in every call."""

import jax
import jax.numpy as jnp
from jaxtyping import Array


def cholesky(A: Array) -> list[Array]:
    return [jnp.linalg.cholesky(A)]


def cholesky_solve(L: Array, b: Array) -> list[Array]:
    return [jax.scipy.linalg.cho_solve((L, True), b)]


def solve_lower(L: Array, b: Array) -> list[Array]:
    return [jax.scipy.linalg.solve_triangular(L, b, lower=True)]


def solve_lower_transposed(L: Array, b: Array) -> list[Array]:
    return [jax.scipy.linalg.solve_triangular(L, b, trans=1, lower=True)]


def lu(A: Array) -> list[Array]:
    return list(jax.scipy.linalg.lu_factor(A))


def lu_solve(LU: Array, exchanges: Array, b: Array) -> list[Array]:
    return [jax.scipy.linalg.lu_solve((LU, exchanges), b)]


def lu_solve_transposed(LU: Array, exchanges: Array, b: Array) -> list[Array]:
    return [jax.scipy.linalg.lu_solve((LU, exchanges), b, trans=1)]


def qr(A: Array) -> list[Array]:
    return list(jnp.linalg.qr(A))


def qr_r(A: Array) -> list[Array]:
    return [jnp.linalg.qr(A, mode="r")]


def svd(A: Array) -> list[Array]:
    return list(jnp.linalg.svd(A, full_matrices=False))


def singular_values(A: Array) -> list[Array]:
    return [jnp.linalg.svd(A, compute_uv=False)]


def eigenvalues(A: Array) -> list[Array]:
    return [jnp.linalg.eigvalsh(A)]
