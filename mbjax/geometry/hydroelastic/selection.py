"""The first few of many elements that pass a test, in a fixed number of slots."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Int


class Selection(NamedTuple):
    """Indices of elements in slots, which slots are filled, and how many elements had none."""

    indices: Int[Array, " slots"]
    filled: Bool[Array, " slots"]
    left_out: Int[Array, ""]


def select(passed: Bool[Array, " n"], num_slots: int) -> Selection:
    """Selects the elements that passed, in their order."""
    (indices,) = jnp.nonzero(passed, size=num_slots, fill_value=0)
    count = passed.sum()
    return Selection(indices, jnp.arange(num_slots) < count, jnp.maximum(count - num_slots, 0))
