"""Worlds last, and first again: transposed in blocks on a CPU, where XLA would read each number from its own line."""

import math

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.one_kernel import in_one_kernel, on_cpu

BLOCK = 8  # numbers: a line of a cache
FEWEST = 64  # numbers of one world; of fewer a kernel of its own takes longer to compile than it saves


def worlds_last(x: Float[Array, "w ..."]) -> Float[Array, "... w"]:
    """(w, ...) to (..., w)."""
    shape = (*x.shape[1:], x.shape[0])
    return transposed(x.reshape(x.shape[0], math.prod(x.shape[1:])), 1).reshape(shape)


def worlds_first(x: Float[Array, "... w"]) -> Float[Array, "w ..."]:
    """(..., w) to (w, ...)."""
    shape = (x.shape[-1], *x.shape[:-1])
    return transposed(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), 0).reshape(shape)


def transposed(x: Float[Array, "m n"], axis: int) -> Float[Array, "n m"]:
    """The transpose, a few rows (0) or columns (1) at a time, which are all numbers of one world."""
    if x.shape[axis] < FEWEST or x.shape[1 - axis] < BLOCK or not jnp.issubdtype(x.dtype, jnp.floating):
        return x.T

    def in_kernel(x: Array) -> Array:
        return in_one_kernel(rows_by_blocks if axis == 0 else columns_by_blocks, x)

    return on_cpu(in_kernel, jnp.transpose, x)


def rows_by_blocks(x: Float[Array, "m n"]) -> Float[Array, "n m"]:
    """`BLOCK` rows at a time."""
    m, n = x.shape

    def copy_block(y: Array, start: Array) -> tuple[Array, None]:
        rows = lax.dynamic_slice_in_dim(x, start, BLOCK, 0, allow_negative_indices=False)
        return lax.dynamic_update_slice_in_dim(y, rows.T, start, 1, allow_negative_indices=False), None

    return lax.scan(copy_block, jnp.zeros((n, m), x.dtype), starts_of_blocks(m))[0]


def columns_by_blocks(x: Float[Array, "m n"]) -> Float[Array, "n m"]:
    """`BLOCK` columns at a time."""
    m, n = x.shape

    def copy_block(y: Array, start: Array) -> tuple[Array, None]:
        columns = lax.dynamic_slice_in_dim(x, start, BLOCK, 1, allow_negative_indices=False)
        return lax.dynamic_update_slice_in_dim(y, columns.T, start, 0, allow_negative_indices=False), None

    return lax.scan(copy_block, jnp.zeros((n, m), x.dtype), starts_of_blocks(n))[0]


def starts_of_blocks(size: int) -> Int[Array, " k"]:
    """The last block overlaps the one before where `BLOCK` does not divide the size."""
    return jnp.asarray(np.minimum(np.arange(0, size, BLOCK), size - BLOCK), jnp.int32)
