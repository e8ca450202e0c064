"""Free bodies, each a tree of its own: vectors of velocities kept body by body."""

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.execution.arrays import take
from mbjax.linear_algebra import LARGEST
from mbjax.topology import TreeTopology


class BodyBlocks(NamedTuple):
    """The velocities of t bodies, at most s each, and the bodies of the mobods; t stands for what never moves."""

    velocities: Int[np.ndarray, "t s"]  # of each body; the number of velocities where there is none
    within: Int[np.ndarray, " nv"]  # the place of each velocity among the t s
    of_mobods: Int[np.ndarray, " nm"]

    @property
    def count(self) -> int:
        """t."""
        return len(self.velocities)


@functools.lru_cache(maxsize=256)
def body_blocks(topology: TreeTopology) -> BodyBlocks:
    """The blocks of a topology's bodies, in the order of their velocities."""
    movers = list(dict.fromkeys(topology.velocity_mobods.tolist()))
    groups = [np.flatnonzero(topology.velocity_mobods == mobod) for mobod in movers]
    size, nv = max(map(len, groups)), len(topology.velocity_mobods)
    velocities = np.array([[*group, *[nv] * (size - len(group))] for group in groups])
    within = np.argsort(velocities.ravel(), kind="stable")[:nv]
    of_mobods = np.full(topology.num_mobods, len(movers))
    of_mobods[movers] = np.arange(len(movers))
    return BodyBlocks(velocities, within, of_mobods)


def are_free_bodies(topology: TreeTopology) -> bool:
    """Whether every body that moves is a tree of its own, with at most `LARGEST` velocities."""
    is_alone = np.array(topology.mobod_roots) == np.arange(topology.num_mobods)
    return bool(is_alone.all()) and max(topology.mobod_num_velocities) <= LARGEST


def in_blocks(blocks: BodyBlocks, x: Float[Array, " nv"]) -> Float[Array, "t s"]:
    """Numbers of velocities, tree by tree, zero where a tree has fewer."""
    padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
    return take(padded, blocks.velocities.ravel(), 0).reshape(*blocks.velocities.shape, *x.shape[1:])


def from_blocks(blocks: BodyBlocks, x: Float[Array, "t s"]) -> Float[Array, " nv"]:
    """Numbers of velocities in their own order."""
    return take(x.reshape(-1, *x.shape[2:]), blocks.within, 0)


def with_still(x: Float[Array, "t s"]) -> Float[Array, "t+1 s"]:
    """Adds the zeros of what never moves."""
    return jnp.concatenate([x, jnp.zeros_like(x[:1])])
