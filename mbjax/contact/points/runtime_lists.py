"""Lists found when the program runs: which entries are wanted, and rows of arrays read and written by index."""

import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution.arrays import repeat_turns


def list_of(wanted: Bool[Array, " n"], is_one_world: bool) -> tuple[Int[Array, " n"], Int[Array, ""]]:
    """Indices of the entries that are wanted first, in their order, and how many they are.

    Of one world they are found one by one, as a kernel cannot sort.
    """
    count = jnp.sum(wanted, dtype=jnp.int32)
    if not is_one_world:
        return jnp.argsort(~wanted).astype(jnp.int32), count

    def note(k: Array, carry: tuple) -> tuple:
        found, place = carry
        found = lax.dynamic_update_index_in_dim(found, k, place, 0, allow_negative_indices=False)
        return found, place + row_at(wanted, k).astype(jnp.int32)

    n = wanted.shape[0]
    start = jnp.zeros(n + 1, jnp.int32), jnp.zeros((), jnp.int32)
    found, count = repeat_turns(np.int32(n), note, start)
    return found[:n], count


def row_at(rows: Any, index: Array) -> Any:
    """Reads row `index` of each array."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False, allow_negative_indices=False), rows)


def with_row(x: Array, row: Array, index: Array) -> Array:
    """Writes a row."""
    return lax.dynamic_update_index_in_dim(x, row, index, 0, allow_negative_indices=False)


def add_row(x: Array, row: Array, index: Array) -> Array:
    """Adds to a row."""
    return with_row(x, row_at(x, index) + row, index)


def with_column(x: Float[Array, "*c m"], column: Float[Array, "*c"], index: Array) -> Float[Array, "*c m"]:
    """Writes a column."""
    return lax.dynamic_update_index_in_dim(x, column, index, x.ndim - 1, allow_negative_indices=False)


def sum_in_order(x: Array, axis: int) -> Array:
    """Sum over a short axis, first to last."""
    return functools.reduce(operator.add, jnp.unstack(x, axis=axis))
