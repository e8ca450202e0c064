"""The nodes that take part in a step's convex problem: those fixed to bodies, and those that touch something.

All others follow them. The problem is therefore condensed on a few nodes, which are known only when the program runs;
there are slots for as many as contact of usual depth has.
"""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.finite_elements import CondensedNodes, MeshMatrix, condense

from .nodes_of_step import NodesOfProblem


class Participants(NamedTuple):
    """Numbers of the nodes in k slots, n where a slot is empty; and each node's slot, k or more if it has none."""

    nodes: Int[Array, " k"]
    slots: Int[Array, " n"]


def find_participants(
    nodes: Int[Array, "3 m"],
    weights: Float[Array, "3 m"],
    active: Bool[Array, " m"],
    num_nodes: int,
    fixed: tuple[int, ...],
    num_slots: int,
) -> Participants:
    """Slots of the nodes that are fixed, in their order, then of those that touch."""
    touches = jnp.zeros(num_nodes, bool).at[nodes].max(active & (weights != 0.0))
    slots = jnp.full(num_nodes, num_slots, jnp.int32)
    if fixed:
        places = np.array(fixed)
        touches = touches.at[places].set(False)
        slots = slots.at[places].set(np.arange(len(fixed), dtype=np.int32))
    slots = jnp.where(touches, len(fixed) - 1 + jnp.cumsum(touches, dtype=jnp.int32), slots)
    numbers = jnp.full(num_slots, num_nodes, jnp.int32)
    return Participants(numbers.at[slots].set(jnp.arange(num_nodes, dtype=jnp.int32), mode="drop"), slots)


def condense_nodes(nodes: NodesOfProblem) -> tuple[CondensedNodes, NodesOfProblem]:
    """The problem on the nodes that take part; not differentiable."""
    assert isinstance(nodes.inertia, MeshMatrix)
    fixed = () if nodes.fixed is None else nodes.fixed.places
    of_nodes = nodes.nodes, nodes.weights, nodes.law.active
    found = find_participants(*of_nodes, nodes.inertia.mesh.num_nodes, fixed, nodes.num_slots)
    condensed = condense(nodes.inertia, found.nodes)
    v_free = nodes.v_free.at[found.nodes].get(mode="fill", fill_value=0.0)
    own = nodes.fixed
    if own is not None:
        own = dataclasses.replace(own, places=tuple(range(len(fixed))))
    slots = jnp.minimum(found.slots, nodes.num_slots - 1)[nodes.nodes]  # those of points without weight do not matter
    return condensed, dataclasses.replace(nodes, inertia=condensed.matrix, v_free=v_free, nodes=slots, fixed=own)
