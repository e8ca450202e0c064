"""Solves small positive definite systems by Gauss–Jordan elimination: one rolled loop of whole-matrix updates.

It has about six times the arithmetic of a Cholesky factorization, and no library call and no triangular part. So one
world is part of a single kernel, and many worlds are vectors over worlds.
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


def eliminate_positive_definite(A: Float[Array, "n n"], b: Float[Array, " n"]) -> Float[Array, " n"]:
    """Solves A x = b for a symmetric positive definite A; not differentiated."""
    n = A.shape[0]
    rows = jnp.arange(n)

    def advance(k: Array, table: Array) -> Array:
        row = lax.dynamic_index_in_dim(table, k, 0, False)
        column = lax.dynamic_index_in_dim(table, k, 1, False)
        row = row / lax.dynamic_index_in_dim(row, k, 0, False)
        return jnp.where((rows == k)[:, None], row[None], table - column[:, None] * row[None])

    return lax.fori_loop(0, n, advance, jnp.concatenate([A, b[:, None]], 1))[:, n]
