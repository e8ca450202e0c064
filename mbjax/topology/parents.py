"""The tree as scans meet it, one direction or one mobod at a time: the parent of each, from 1, with 0 the world."""

from collections.abc import Sequence

import numpy as np

from mbjax.execution import ON_BASE

from .tree_topology import TreeTopology


def direction_parents(topology: TreeTopology) -> tuple[int, ...]:
    """The tree seen one direction at a time, 1-based with 0 the world: the direction inboard of each.

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
    """The six directions of a body that moves freely, of several the one that carries most; none: []."""
    starts, counts = topology.mobod_v_starts, topology.mobod_num_velocities
    carried = topology.is_ancestor.sum(0)
    free = [k for k, parent in enumerate(topology.mobod_parents) if parent == 0 and counts[k] == 6]
    start = starts[max(free, key=lambda k: carried[k])] if free else 0
    return list(range(start, start + 6)) if free else []


def parents_beyond(topology: TreeTopology, base: Sequence[int]) -> tuple[int, ...]:
    """`direction_parents` of the directions that are not those of a base; ON_BASE where it is one of those."""
    parents = direction_parents(topology)
    number = np.cumsum([0, *(j not in base for j in range(len(parents)))])
    return tuple(
        ON_BASE if parent - 1 in base else int(number[parent]) for j, parent in enumerate(parents) if j not in base
    )


def mobod_parents(topology: TreeTopology) -> tuple[int, ...]:
    """The tree of mobods, the world the first of its nodes, 1-based."""
    return tuple(parent + 1 for parent in topology.mobod_parents)


def last_velocities(topology: TreeTopology) -> list[int]:
    """Per mobod, the outermost direction that moves it, 1-based; 0 for none."""
    last = [0]
    for parent, start, count in zip(
        topology.mobod_parents[1:], topology.mobod_v_starts[1:], topology.mobod_num_velocities[1:], strict=True
    ):
        last.append(start + count if count else last[parent])
    return last
