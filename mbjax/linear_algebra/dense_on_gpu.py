"""Solves A x = b with dense positive definite matrices of many worlds on a GPU, in one kernel.

XLA's loop over the columns would start several kernels a column. Here a block of threads holds the matrix of a world
in its registers and eliminates by Gauss and Jordan: once every column is cleared, b has become the solution.
"""

from typing import Any

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution.gpu_blocks import NotInKernelError, load_tile, run_blocks, store_tile

SMALLEST_TILE, LARGEST_TILE = 16, 64  # rows; a larger matrix does not fit into registers


def solve_in_blocks(
    A: Float[Array, "n n w"], b: Float[Array, "n w"], least: Float[Array, "n w"] | None = None
) -> Float[Array, "n w"]:
    """Solves A x = b from the lower triangle of A, the last row first; a pivot is no less than `least`.

    Raises `NotInKernelError` where a matrix has more rows than a tile.
    """
    return eliminate_in_blocks(A, b, jnp.zeros_like(b) if least is None else least)[0]


def pivots_in_blocks(A: Float[Array, "n n w"]) -> Float[Array, "n w"]:
    """Pivots of A as `solve_in_blocks` meets them; raises as it does."""
    zeros = jnp.zeros(A.shape[1:], A.dtype)
    return eliminate_in_blocks(A, zeros, zeros)[1]


def eliminate_in_blocks(
    A: Float[Array, "n n w"], b: Float[Array, "n w"], least: Float[Array, "n w"]
) -> Float[Array, "2 n w"]:
    """The solution of A x = b, and the pivots."""
    n = A.shape[0]
    size = max(SMALLEST_TILE, 1 << (n - 1).bit_length())
    if not n or size > LARGEST_TILE:
        raise NotInKernelError
    worlds = max(x.shape[-1] for x in (A, b, least))
    arrays = [jnp.broadcast_to(x, (*x.shape[:-1], worlds)) for x in (A, least, b)]

    def kernel(world: Array, A: Any, least: Any, b: Any, found: Any) -> None:
        eliminate_tile(world, A, least, b, found, n, size)

    return run_blocks(kernel, arrays, (2, n, worlds), worlds, 1 if size < LARGEST_TILE else 4, "solve_dense")


def eliminate_tile(world: Array, A: Any, least: Any, b: Any, found: Any, n: int, size: int) -> None:
    """Loads the world's matrix as a tile of `size` rows, fills it up with zeros, and clears its first n columns."""
    index, world = jnp.arange(size, dtype=jnp.int32), jnp.asarray(world, jnp.int32)
    row, column, is_row = index[:, None], index[None, :], index < n
    inside = is_row[:, None] & is_row[None, :]
    lower = jnp.maximum(row, column), jnp.minimum(row, column), jnp.broadcast_to(world, (size, size))
    own = index, jnp.broadcast_to(world, (size,))
    H, floor, y = load_tile(A, lower, inside), load_tile(least, own, is_row), load_tile(b, own, is_row)

    def clear(turn: Array, state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        H, y, pivots = state
        here = index == n - 1 - turn
        of_row, of_column = jnp.sum(jnp.where(here[:, None], H, 0.0), 0), jnp.sum(jnp.where(here[None], H, 0.0), 1)
        pivot, least, of_b = (jnp.sum(jnp.where(here, x, 0.0)) for x in (of_row, floor, y))
        pivot = jnp.maximum(pivot, least)
        scaled, solved = of_row / pivot, of_b / pivot
        others = jnp.where(here, 0.0, of_column)
        H = jnp.where(here[:, None], scaled[None], H - others[:, None] * scaled[None])
        return H, jnp.where(here, solved, y - others * solved), jnp.where(here, pivot, pivots)

    _, y, pivots = lax.fori_loop(jnp.int32(0), jnp.int32(n), clear, (H, y, jnp.zeros_like(y)))
    for k, x in enumerate((y, pivots)):
        store_tile(found, (jnp.full((size,), k, jnp.int32), *own), x, is_row)
