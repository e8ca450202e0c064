"""The first few of many elements that pass a test, in a fixed number of slots."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

MOST_IN_TWO_LEVELS = 4096


class Selection(NamedTuple):
    """Indices of elements in slots, which slots are filled, and how many elements had none."""

    indices: Int[Array, " slots"]
    filled: Bool[Array, " slots"]
    left_out: Int[Array, ""]


def select(passed: Bool[Array, " n"], num_slots: int) -> Selection:
    """Selects the elements that passed, in their order.

    The elements are the leaves of a tree of two or three levels whose nodes know how many of theirs passed. Each slot
    walks down from the root: the children before the right one hold as many as its rank or fewer. On a CPU this is
    several times faster than `jnp.nonzero`, to run and to compile.
    """
    (num_elements,) = passed.shape
    levels = 2 if num_elements <= MOST_IN_TWO_LEVELS else 3
    width = max(2, math.ceil(num_elements ** (1.0 / levels)))
    leaves = jnp.pad(passed.astype(jnp.float32), (0, width**levels - num_elements))
    counts = [leaves.reshape(-1, width)]
    while len(counts) < levels:
        counts.append(counts[-1].sum(axis=1).reshape(-1, width))
    slot = jnp.arange(num_slots)
    node, rank = jnp.zeros(num_slots, int), slot.astype(jnp.float32)
    for children in reversed(counts):
        node, rank = descend(children[node], node, rank)
    total = counts[-1].sum().astype(int)
    filled = slot < total
    return Selection(jnp.where(filled, node, 0), filled, jnp.maximum(total - num_slots, 0))


def descend(
    children: Float[Array, "slots width"], node: Int[Array, " slots"], rank: Float[Array, " slots"]
) -> tuple[Int[Array, " slots"], Float[Array, " slots"]]:
    """The child that holds the element of a rank among those of a node, and the rank within the child."""
    width = children.shape[1]
    before_and_in = jnp.triu(jnp.ones((width, width), children.dtype))
    held = jnp.matmul(children, before_and_in, precision=jax.lax.Precision.HIGHEST)
    is_before = held <= rank[:, None]
    child = jnp.minimum(is_before.sum(axis=1), width - 1)
    return node * width + child, rank - jnp.where(is_before, children, 0.0).sum(axis=1)
