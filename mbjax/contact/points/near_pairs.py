"""The broad phase: each world looks closely at a fixed number of its nearest pairs of each kind of shapes."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.geometry.signed_distance.witnesses import Witnesses


class NearPairs(eqx.Module):
    """The k nearest of n pairs, and every pair's rank by nearness; a rank of k or more means not looked at."""

    pair: Int[Array, "k *w"]
    place: Int[Array, "n *w"]

    def is_near(self) -> Array:
        """Whether each pair is looked at, (n, w)."""
        return self.place < self.pair.shape[0]

    def choose(self, x: Any, axis: int) -> Any:
        """Selects the near pairs from arrays that have all n pairs on `axis`, ahead of the axis of worlds."""
        return jax.tree.map(lambda x: columns(x, self.pair, axis), x)

    def put_back(self, witnesses: Witnesses, gap: Float[Array, "n *w"]) -> Witnesses:
        """Witnesses of all n pairs. Pairs not looked at have no points, and their gap stands in for the distance."""
        place, is_near = jnp.minimum(self.place, self.pair.shape[0] - 1), self.is_near()

        def put(x: Array, axis: int, other: Array | float | bool) -> Array:
            return jnp.where(is_near, columns(x, place, axis), other)

        along_z = jnp.asarray([0.0, 0.0, 1.0], gap.dtype).reshape(3, 1, 1, *(1,) * (gap.ndim - 1))
        return Witnesses(
            put(witnesses.distance, 1, gap),
            put(witnesses.normal, 2, along_z),
            put(witnesses.point, 2, 0.0),
            put(witnesses.valid, 1, False),
            put(witnesses.degenerate, 0, False),
        )


def find_near_pairs(gap: Float[Array, "n *w"], count: int) -> NearPairs:
    """The `count` pairs with the smallest gaps; ties go to the first. NaN counts as nearest, so that it shows."""
    order = jnp.argsort(jnp.where(jnp.isnan(gap), -jnp.inf, gap), axis=0).astype(jnp.int32)
    return NearPairs(order[:count], jnp.argsort(order, axis=0).astype(jnp.int32))


def columns(x: Array, index: Int[Array, "k *w"], axis: int) -> Array:
    """Selects from x, in each world, the columns at that world's own indices."""
    index = jnp.expand_dims(index, [k for k in range(x.ndim - index.ndim + 1) if k != axis])
    return jnp.take_along_axis(x, index, axis, mode="promise_in_bounds")
