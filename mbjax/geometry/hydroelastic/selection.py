"""The first few of many elements that pass a test, in a fixed number of slots."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int

MOST_IN_TWO_LEVELS = 4096


class Selection(NamedTuple):
    """Indices of elements in slots, which slots are filled, and how many elements had none."""

    indices: Int[Array, " slots"]
    filled: Bool[Array, " slots"]
    left_out: Int[Array, ""]


def select(passed: Bool[Array, " n"], num_slots: int) -> Selection:
    """Selects the elements that passed, in their order.

    The elements are the leaves of a tree of two or three levels. Each node knows how many elements passed in its
    children up to each one. Each slot walks down from the root: the children before the right one hold as many as its
    rank or fewer. On a CPU this is several times faster than `jnp.nonzero`, to run and to compile.
    """
    (num_elements,) = passed.shape
    levels = 2 if num_elements <= MOST_IN_TWO_LEVELS else 3
    width = max(2, math.ceil(num_elements ** (1.0 / levels)))
    counts = jnp.pad(passed.astype(jnp.float32), (0, width**levels - num_elements)).reshape(-1, width)
    up_to_and_in = jnp.triu(jnp.ones((width, width), jnp.float32))
    tree = []
    while len(tree) < levels:
        held = jnp.matmul(counts, up_to_and_in, precision=jax.lax.Precision.HIGHEST)
        tree.append(held)
        counts = held[:, -1].reshape(-1, width) if len(tree) < levels else held
    slot = jnp.arange(num_slots)
    node, rank = jnp.zeros(num_slots, int), slot.astype(jnp.float32)
    for held in reversed(tree):
        of_node = take_columns(held.T, node) if len(held) > 1 else held.T
        is_before = of_node <= rank
        node = node * width + is_before.sum(axis=0)
        rank = rank - jnp.where(is_before, of_node, 0.0).max(axis=0)
    total = tree[-1][0, -1].astype(int)
    filled = slot < total
    return Selection(jnp.where(filled, node, 0), filled, jnp.maximum(total - num_slots, 0))


def take_columns(x: Array, index: Int[Array, "..."]) -> Array:
    """The entries of the last axis at indices that are known to be valid."""
    return x.at[..., index].get(mode="promise_in_bounds")
