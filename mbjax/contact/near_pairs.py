"""The broad phase: of the pairs of one kind of shapes a world looks closely at the nearest only, a fixed number."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.geometry.signed_distance.witnesses import Witnesses


class NearPairs(eqx.Module):
    """Which k of n pairs these are, and the place of each pair among them; one that is not among them has k or more."""

    pair: Int[Array, "k *w"]
    place: Int[Array, "n *w"]

    def is_near(self) -> Array:
        """(n, w) whether the pair is looked at."""
        return self.place < self.pair.shape[0]

    def choose(self, x: Any, axis: int) -> Any:
        """What belongs to the near pairs, of arrays with all n on an axis before that of worlds."""
        return jax.tree.map(lambda x: columns(x, self.pair, axis), x)

    def put_back(self, witnesses: Witnesses, gap: Float[Array, "n *w"]) -> Witnesses:
        """Those of all n pairs. The others have no points; their gap stands for their distance."""
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
    """The pairs with the smallest gaps, of equal ones the first. What is no number comes before all, to be seen."""
    order = jnp.argsort(jnp.where(jnp.isnan(gap), -jnp.inf, gap), axis=0).astype(jnp.int32)
    return NearPairs(order[:count], jnp.argsort(order, axis=0).astype(jnp.int32))


def columns(x: Array, index: Int[Array, "k *w"], axis: int) -> Array:
    """Of each world, the columns of x at its own indices."""
    index = jnp.expand_dims(index, [k for k in range(x.ndim - index.ndim + 1) if k != axis])
    return jnp.take_along_axis(x, index, axis, mode="promise_in_bounds")
