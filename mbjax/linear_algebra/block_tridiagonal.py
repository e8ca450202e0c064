"""Block tridiagonal matrices, symmetric and positive definite, as finite elements give: factors block by block.

One row of blocks follows another in a loop, so that a program is as small for a thousand rows as for two. Nothing here
is differentiated: callers wrap solves as linear systems.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution import call_library

from . import lapack


class BlockTridiagonal(NamedTuple):
    """A symmetric matrix: blocks on the diagonal, and those below it; `lower[i]` joins rows i and i + 1."""

    diagonal: Float[Array, "rows b b"]
    lower: Float[Array, "rows-1 b b"]


class BlockCholesky(NamedTuple):
    """Factors L of a symmetric positive definite matrix: triangular blocks, and those below; `beside[0]` is zero."""

    pivots: Float[Array, "rows b b"]
    beside: Float[Array, "rows b b"]


def factor_block_tridiagonal(A: BlockTridiagonal) -> BlockCholesky:
    """Cholesky factors of a symmetric positive definite matrix; NaN where it is not."""
    zero = jnp.zeros_like(A.diagonal[0])
    lower = jnp.concatenate([zero[None], A.lower])

    def eliminate(before: Array, blocks: tuple[Array, Array]) -> tuple[Array, tuple[Array, Array]]:
        diagonal, lower = blocks
        beside = call_library(lapack.solve_lower, before, lower.T)[0].T
        pivot = call_library(lapack.cholesky, diagonal - beside @ beside.T)[0]
        return pivot, (pivot, beside)

    identity = jnp.eye(zero.shape[0], dtype=zero.dtype)
    return BlockCholesky(*lax.scan(eliminate, identity, (A.diagonal, lower))[1])


def solve_lower_block_tridiagonal(factors: BlockCholesky, b: Float[Array, "rows b k"]) -> Float[Array, "rows b k"]:
    """Solves L y = b for k right-hand sides."""

    def inward(before: Array, row: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        pivot, beside, b = row
        y = call_library(lapack.solve_lower, pivot, b - beside @ before)[0]
        return y, y

    return lax.scan(inward, jnp.zeros_like(b[0]), (factors.pivots, factors.beside, b))[1]


def solve_block_tridiagonal(factors: BlockCholesky, b: Float[Array, "rows b k"]) -> Float[Array, "rows b k"]:
    """Solves A x = b for k right-hand sides."""

    def outward(after: tuple[Array, Array], row: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        pivot, beside, y = row
        next_beside, next_x = after
        x = call_library(lapack.solve_lower_transposed, pivot, y - next_beside.T @ next_x)[0]
        return (beside, x), x

    y = solve_lower_block_tridiagonal(factors, b)
    start = (jnp.zeros_like(factors.beside[0]), jnp.zeros_like(b[0]))
    return lax.scan(outward, start, (factors.pivots, factors.beside, y), reverse=True)[1]


def times_block_tridiagonal(A: BlockTridiagonal, x: Float[Array, "rows b k"]) -> Float[Array, "rows b k"]:
    """A x."""
    product = jnp.einsum("rij,rjk->rik", A.diagonal, x)
    product = product.at[1:].add(jnp.einsum("rij,rjk->rik", A.lower, x[:-1]))
    return product.at[:-1].add(jnp.einsum("rji,rjk->rik", A.lower, x[1:]))


def dense_of(A: BlockTridiagonal) -> Float[Array, "n n"]:
    """The matrix as a dense one; for tests and small systems."""
    rows, b, _ = A.diagonal.shape
    identity = jnp.eye(rows * b, dtype=A.diagonal.dtype).reshape(rows, b, rows * b)
    return times_block_tridiagonal(A, identity).reshape(rows * b, rows * b)
