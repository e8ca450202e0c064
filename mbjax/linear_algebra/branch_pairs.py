"""A = Lᵀ D L of one world, an entry of L a turn.

XLA's CPU backend compiles a loop that moves less than 1 KB a turn as one kernel. To eliminate a whole node moves a
matrix; to eliminate it from one row, three rows. The arithmetic is that of `branch_factor`.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

MOST_DEPTH = 20  # numbers of float64 in a row, that a turn, and one of solving, moves less than 1 KB


@functools.cache
def pairs(parents: tuple[int, ...]) -> np.ndarray:
    """(node, its depth, an ancestor, the ancestor's depth) of each pair in the order of elimination, tips first."""
    lines: list[list[int]] = []
    for node, parent in enumerate(parents):
        lines.append([*(lines[parent - 1] if parent else []), node])
    found = [(line[-1], len(line) - 1, line[k], k) for line in reversed(lines) for k in range(len(line) - 1)]
    return np.array(found, np.int32).reshape(-1, 4)


def eliminate_pairs(parents: tuple[int, ...], rows: Float[Array, "n depth"]) -> Float[Array, "n depth"]:
    """D L by depth, from the rows of A by depth."""

    def step(rows: Array, pair: Array) -> tuple[Array, None]:
        node, own, ancestor, place = pair
        row, of_ancestor = (lax.dynamic_index_in_dim(rows, k, keepdims=False) for k in (node, ancestor))
        factor, pivot = (lax.dynamic_index_in_dim(row, k, keepdims=False) for k in (place, own))
        return lax.dynamic_update_index_in_dim(rows, of_ancestor - (factor / pivot) * row, ancestor, 0), None

    if not pairs(parents).size:
        return rows
    return lax.scan(step, rows, jax.tree.map(jnp.asarray, tuple(pairs(parents).T)))[0]
