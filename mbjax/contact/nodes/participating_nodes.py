"""The nodes that take part in a step's convex problem: those fixed to bodies, and those that touch something.

All others follow them. The problem is therefore condensed on a few nodes, which are known only when the program runs;
there are slots for as many as contact of usual depth has.
"""

import dataclasses

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.finite_elements import CondensedNodes, KeptNodes, MeshMatrix, condense

from .nodes_of_step import NodesOfProblem


def find_participants(
    nodes: Int[Array, "k m"],
    weights: Float[Array, "k m"],
    active: Bool[Array, " m"],
    num_nodes: int,
    fixed: tuple[int, ...],
    num_slots: int,
) -> KeptNodes:
    """Slots of the nodes that are fixed, in their order, then of those that touch."""
    touches = jnp.zeros(num_nodes, bool).at[nodes].max(active & (weights != 0.0))
    slots = jnp.full(num_nodes, num_slots, jnp.int32)
    if fixed:
        places = np.array(fixed)
        touches = touches.at[places].set(False)
        slots = slots.at[places].set(np.arange(len(fixed), dtype=np.int32))
    slots = jnp.where(touches, len(fixed) - 1 + jnp.cumsum(touches, dtype=jnp.int32), slots)
    numbers = jnp.full(num_slots, num_nodes, jnp.int32)
    return KeptNodes(numbers.at[slots].set(jnp.arange(num_nodes, dtype=jnp.int32), mode="drop"), slots)


def condense_nodes(nodes: NodesOfProblem) -> tuple[CondensedNodes, NodesOfProblem]:
    """The problem on the nodes that take part; not differentiable."""
    assert isinstance(nodes.inertia, MeshMatrix)
    kept, fixed = nodes.participants, nodes.fixed
    condensed = condense(nodes.inertia, kept)
    v_free = nodes.v_free.at[kept.nodes].get(mode="fill", fill_value=0.0)
    if fixed is not None:
        fixed = dataclasses.replace(fixed, places=tuple(range(len(fixed.places))))
    slots = jnp.minimum(kept.slots, kept.nodes.shape[0] - 1)[
        nodes.nodes
    ]  # those of points without weight do not matter
    return condensed, dataclasses.replace(nodes, inertia=condensed.matrix, v_free=v_free, nodes=slots, fixed=fixed)
