"""Many worlds: moves the axis of worlds last, and first again; in blocks on a CPU, which spares lines of the cache.

XLA would read each number from a cache line of its own.
"""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from ..targets.by_device import on_cpu
from ..targets.cpu_kernel import in_one_kernel

BLOCK = 8  # numbers in a line of a cache
FEWEST = 64  # numbers of one world; for fewer a kernel takes longer to compile than it saves


def worlds_last(x: Float[Array, "w ..."]) -> Float[Array, "... w"]:
    """Moves the axis of worlds last: (w, ...) to (..., w)."""
    shape = (*x.shape[1:], x.shape[0])
    return transposed(x.reshape(x.shape[0], math.prod(x.shape[1:])), 1).reshape(shape)


def worlds_first(x: Float[Array, "... w"]) -> Float[Array, "w ..."]:
    """Moves the axis of worlds first: (..., w) to (w, ...)."""
    shape = (x.shape[-1], *x.shape[:-1])
    return transposed(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), 0).reshape(shape)


def transposed(x: Float[Array, "m n"], axis: int) -> Float[Array, "n m"]:
    """Transpose, a few rows (0) or columns (1) at a time; each of them is one number of all worlds."""
    if x.shape[axis] < FEWEST or x.shape[1 - axis] < BLOCK or not jnp.issubdtype(x.dtype, jnp.floating):
        return x.T

    def in_kernel(x: Array) -> Array:
        return in_one_kernel(partial(by_blocks, axis=axis), x)

    return on_cpu(in_kernel, jnp.transpose, x)


def by_blocks(x: Float[Array, "m n"], axis: int) -> Float[Array, "n m"]:
    """Transpose, `BLOCK` rows (0) or columns (1) at a time."""

    def copy_block(y: Array, start: Array) -> tuple[Array, None]:
        block = lax.dynamic_slice_in_dim(x, start, BLOCK, axis, allow_negative_indices=False)
        return lax.dynamic_update_slice_in_dim(y, block.T, start, 1 - axis, allow_negative_indices=False), None

    return lax.scan(copy_block, jnp.zeros(x.shape[::-1], x.dtype), starts_of_blocks(x.shape[axis]))[0]


def starts_of_blocks(size: int) -> Int[Array, " k"]:
    """Starts of the blocks; the last overlaps the one before where `BLOCK` does not divide the size."""
    return jnp.asarray(np.minimum(np.arange(0, size, BLOCK), size - BLOCK), jnp.int32)
