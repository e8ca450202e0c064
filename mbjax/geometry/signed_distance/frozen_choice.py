"""Choosing one of a few candidates in each pair and world: by comparison, without gathers.

The reductions are meant: XLA's CPU backend computes what leads to them once, where chains of comparisons would be
fused into every one of their uses and computed again in each (26 instead of 2 µs for two boxes, measured).
"""

import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int


def first_largest(scores: Float[Array, "m *n"]) -> tuple[Int[Array, "*n"], Float[Array, "*n"]]:
    """Index and value of the largest score, the first of equals."""
    return jnp.argmax(scores, axis=0).astype(jnp.int32), jnp.max(scores, axis=0)


def chosen(index: Int[Array, "*n"], candidates: Float[Array, "m *kn"], axis: int = 0) -> Float[Array, "*kn"]:
    """The candidate of that index along `axis`; the axes between it and those of `index` are kept."""
    place = lax.broadcasted_iota(jnp.int32, candidates.shape, axis)
    return jnp.sum(jnp.where(place == index, candidates, 0.0), axis=axis)


def rolled_to_last(index: Int[Array, "*n"], x: Float[Array, "3 *kn"], axis: int = 0) -> Float[Array, "3 *kn"]:
    """Components in cyclic order, so that the one of that index comes last."""
    return chosen(index, jnp.stack([jnp.roll(x, -k - 1, axis) for k in range(3)]))


def rolled_back(index: Int[Array, "*n"], x: Float[Array, "3 *kn"]) -> Float[Array, "3 *kn"]:
    """The inverse of `rolled_to_last`."""
    return chosen(index, jnp.stack([jnp.roll(x, k + 1, 0) for k in range(3)]))


def sign(x: Float[Array, "*n"]) -> Float[Array, "*n"]:
    """1 where x >= 0, else -1: a choice of side, without a zero between."""
    return jnp.where(x >= 0.0, 1.0, -1.0).astype(x.dtype)
