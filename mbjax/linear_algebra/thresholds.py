"""Thresholds that tell whether rows of a set are independent of the others, to within rounding."""

import jax.numpy as jnp
from jaxtyping import Array, Float

INDEPENDENT = 16.0  # times size and eps: squared sine of the smallest angle to the span of other rows
NONZERO = 256.0  # times eps: length of the smallest row, relative to the largest


def smallest_pivots(squared_lengths: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """Smallest squared length that an independent row must keep when its part along the others is removed.

    A row that cancels to rounding has no direction, so it is compared with the largest row as well.
    """
    return jnp.maximum(_independent(squared_lengths), _cancelled(squared_lengths))


def smallest_pivots_of_mobilities(
    mobilities: Float[Array, "n *w"], squared_lengths: Float[Array, "n *w"]
) -> Float[Array, "n *w"]:
    """Smallest pivot that an independent row must keep in G M⁻¹ Gᵀ, whose diagonal are the `mobilities`.

    A row that cancels to rounding is told by its length beside the others, in which no mass plays a part: it loses its
    whole mobility. A row that a light body has is not small beside that of a heavy one.
    """
    is_cancelled = squared_lengths <= _cancelled(squared_lengths)
    return jnp.maximum(_independent(mobilities), jnp.where(is_cancelled, mobilities, 0.0))


def _independent(squared_lengths: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    n, eps = squared_lengths.shape[0], jnp.finfo(squared_lengths.dtype).eps
    return INDEPENDENT * n * eps * squared_lengths


def _cancelled(squared_lengths: Float[Array, "n *w"]) -> Float[Array, " *w"]:
    eps = jnp.finfo(squared_lengths.dtype).eps
    return (NONZERO * eps) ** 2 * jnp.max(squared_lengths, axis=0, initial=0.0)
