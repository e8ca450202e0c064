"""Solves A x = b with dense positive definite matrices of many worlds by A = LᵀL, a block of rows at a time.

Eliminating row by row would read and write the rest of the matrix once a row; here it is once a block. Within a block
the rows are written out, as in `small_factor`.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from mbjax.execution.arrays import compiled_apart, scan, sum_over_axis
from mbjax.spatial.component_algebra import concatenate, sum_products

from .small_factor import LARGEST, SmallFactor, eliminate_small, factor_small, solve_small_outward


def solve_dense(
    A: Float[Array, "n n w"], b: Float[Array, "n w"], least: Float[Array, "n w"] | None = None
) -> Float[Array, "n w"]:
    """Solves A x = b from the lower triangle of A; a pivot is no less than `least`."""
    n, worlds = A.shape[0], jnp.broadcast_shapes(A.shape[2:], b.shape[1:])
    starts = np.arange(0, n, LARGEST, dtype=np.int32)
    size = len(starts) * LARGEST
    floor = jnp.zeros_like(b) if least is None else least
    b, floor = (jnp.pad(jnp.broadcast_to(x, (n, *worlds)), ((0, size - n), (0, 0))) for x in (b, floor))
    rows_of_identity = np.eye(size)[n:, :, None]
    A = concatenate([jnp.pad(A, ((0, 0), (0, size - n), (0, 0))), jnp.asarray(rows_of_identity, A.dtype)], 0)
    A = jnp.broadcast_to(A, (size, size, *worlds))

    def eliminate(rows: Array, block: Array, b: Array, is_before: Array, floor: Array) -> tuple[SmallFactor, Array]:
        factor = factor_small(block, b, floor)
        return factor, jnp.where(is_before, jnp.stack(eliminate_small(factor, rows)[::-1]), 0.0)

    def inward(left: tuple[Array, Array], x: tuple) -> tuple:
        (A, b), (start, *of_block) = left, x
        rows, b_rows = (lax.dynamic_slice_in_dim(y, start, LARGEST) for y in left)
        block = lax.dynamic_slice_in_dim(rows, start, LARGEST, 1)
        factor, lines = compiled_apart(start, eliminate, rows, block, b_rows, *of_block)
        each, y = jnp.unstack(lines), [line[0] for line in reversed(factor.lines)]
        A = A - sum_products([line[:, None] for line in each], [line[None] for line in each])  # in place
        return (A, b - sum_products(each, y)), (factor, lines)

    def substitute(x: Array, factor: SmallFactor, lines: Array) -> Array:
        beyond = jnp.unstack(sum_over_axis(lines * x[None], 1))
        rest = [
            jnp.concatenate([line[:1] - y, line[1:]]) for line, y in zip(factor.lines, reversed(beyond), strict=True)
        ]
        return solve_small_outward(SmallFactor(tuple(rest), factor.diagonal))

    def outward(x: Array, block: tuple) -> tuple[Array, None]:
        start, factor, lines = block
        return lax.dynamic_update_slice_in_dim(x, compiled_apart(start, substitute, x, factor, lines), start, 0), None

    is_before = jnp.asarray(np.arange(size) < starts[:, None])[:, None, :, None]
    floors = floor.reshape(len(starts), LARGEST, *worlds)
    _, (factors, lines) = scan(inward, (A, b), (jnp.asarray(starts), is_before, floors), reverse=True)
    return scan(outward, jnp.zeros_like(b), (jnp.asarray(starts), factors, lines))[0][:n]
