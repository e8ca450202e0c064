"""Thresholds that tell whether rows of a set are independent of the others, to within rounding."""

import jax.numpy as jnp
from jaxtyping import Array, Float

INDEPENDENT = 16.0  # times size and eps: squared sine of the smallest angle to the span of other rows
NONZERO = 256.0  # times eps: length of the smallest row, relative to the largest


def smallest_pivots(squared_lengths: Float[Array, "n *w"]) -> Float[Array, "n *w"]:
    """Smallest squared length that an independent row must keep when its part along the others is removed.

    A row that cancels to rounding has no direction, so it is compared with the largest row as well.
    """
    n, eps = squared_lengths.shape[0], jnp.finfo(squared_lengths.dtype).eps
    largest = jnp.max(squared_lengths, axis=0, initial=0.0)
    return jnp.maximum(INDEPENDENT * n * eps * squared_lengths, (NONZERO * eps) ** 2 * largest)
