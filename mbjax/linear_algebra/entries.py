"""Single entries of matrices, in loops of one kernel: each is a row of numbers, one for each world."""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.execution.recursions import Row

Index = Int[Array, ""]


def entry(M: Float[Array, "m n *w"], i: Index, j: Index) -> Row:
    """M_ij as a `Row`, which the stage that needs it reads."""
    return Row(M.reshape(-1, *M.shape[2:]), i * M.shape[1] + j)


def with_entry(M: Float[Array, "m n *w"], value: Float[Array, "*w"], i: Index, j: Index) -> Float[Array, "m n *w"]:
    """M with its entry ij set to `value`."""
    start = i, j, *[jnp.zeros_like(i)] * (M.ndim - 2)
    value = jnp.broadcast_to(value, M.shape[2:])
    return lax.dynamic_update_slice(M, value[None, None], start, allow_negative_indices=False)
