"""Parents for scans over the tree by directions or by mobods: nodes are counted from 1, and 0 is the world."""

from collections.abc import Sequence

import numpy as np

from mbjax.execution.recursions import ON_BASE

from .tree_topology import TreeTopology


def direction_parents(topology: TreeTopology) -> tuple[int, ...]:
    """Per direction, the direction inboard of it, 1-based with 0 the world.

    Several directions of one joint follow one another at the same point.
    """
    starts, counts = topology.mobod_v_starts, topology.mobod_num_velocities
    inboard = []
    for j, mobod in enumerate(topology.velocity_mobods):
        parent = topology.mobod_parents[mobod]
        first = j == starts[mobod]
        inboard.append(j if not first else (starts[parent] + counts[parent] if parent > 0 else 0))
    return tuple(inboard)


def free_base(topology: TreeTopology) -> list[int]:
    """The six directions of a free body next to the world, of several the one that carries most; [] without one."""
    starts, counts = topology.mobod_v_starts, topology.mobod_num_velocities
    carried = topology.is_ancestor.sum(0)
    free = [k for k, parent in enumerate(topology.mobod_parents) if parent == 0 and counts[k] == 6]
    start = starts[max(free, key=lambda k: carried[k])] if free else 0
    return list(range(start, start + 6)) if free else []


def parents_beyond(topology: TreeTopology, base: Sequence[int]) -> tuple[int, ...]:
    """`direction_parents` of the directions beyond a base, counted among these; ON_BASE where the parent is in it."""
    parents = direction_parents(topology)
    number = np.cumsum([0, *(j not in base for j in range(len(parents)))])
    return tuple(
        ON_BASE if parent - 1 in base else int(number[parent]) for j, parent in enumerate(parents) if j not in base
    )


def mobod_parents(topology: TreeTopology) -> tuple[int, ...]:
    """Parents of all mobods, 1-based, with the world itself the first node."""
    return tuple(parent + 1 for parent in topology.mobod_parents)


def last_velocities(topology: TreeTopology) -> list[int]:
    """Per mobod, the outermost direction that moves it, 1-based; 0 for none."""
    last = [0]
    for parent, start, count in zip(
        topology.mobod_parents[1:], topology.mobod_v_starts[1:], topology.mobod_num_velocities[1:], strict=True
    ):
        last.append(start + count if count else last[parent])
    return last
