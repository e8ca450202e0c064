"""Maps between velocities and the directions of joints: a velocity drives several directions where joints mimic others.

Directions of joints that mimic are scaled by their multipliers (`calc_position_kinematics`), so that both maps are
constant: a velocity is copied to each of its directions, and numbers of directions are summed per velocity.
"""

import functools

import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import dot_with_mask, take

from .tree_topology import TreeTopology
from .tree_traversal import direction_parents


def over_directions(topology: TreeTopology, x: Float[Array, "..."], axis: int = 0) -> Float[Array, "..."]:
    """Copies numbers of velocities, along an axis, to each direction that they drive."""
    return take(x, topology.velocities_of_directions, axis) if topology.followers else x


def sum_directions(topology: TreeTopology, x: Float[Array, "..."], axis: int = 0) -> Float[Array, "..."]:
    """Sums numbers of directions, along an axis, per velocity."""
    if not topology.followers:
        return x
    drives = topology.velocities_of_directions[:, None] == np.arange(topology.num_velocities)
    return dot_with_mask(x, drives, axis)


def ends_of_joints(topology: TreeTopology) -> tuple[np.ndarray, np.ndarray]:
    """(nd,) masks of the directions that are the first, and the last, of their joint."""
    owner = topology.velocity_mobods
    starts, counts = np.array(topology.mobod_v_starts)[owner], np.array(topology.mobod_num_velocities)[owner]
    places = np.arange(owner.size) - starts
    return places == 0, places == counts - 1


@functools.lru_cache(maxsize=256)
def velocity_parents(topology: TreeTopology) -> tuple[int, ...]:
    """The tree of velocities along whose paths the nonzeros of the mass matrix lie, 1-based with 0 the world.

    Joints that mimic couple branches. The result is then the matrix's elimination tree from the last velocity inward;
    further pairs count as coupled until the tree is numbered depth first.
    """
    if not topology.followers:
        return direction_parents(topology)
    inboard = topology.moves[:, topology.velocity_mobods]
    drives = topology.velocities_of_directions[:, None] == np.arange(topology.num_velocities)
    coupled = drives.T @ (inboard | inboard.T) @ drives
    parents = elimination_parents(coupled)
    while (node := first_off_path(parents)) is not None:
        coupled[node, node - 1] = True
        parents = elimination_parents(coupled)
    return parents


def elimination_parents(coupled: np.ndarray) -> tuple[int, ...]:
    """Elimination tree: per node the nearest one before it that it couples with, fill-in included; 0 for none."""
    filled, parents = coupled.copy(), [0] * len(coupled)
    for node in reversed(range(len(coupled))):
        before = np.flatnonzero(filled[node, :node])
        filled[np.ix_(before, before)] = True
        parents[node] = int(before[-1]) + 1 if before.size else 0
    return tuple(parents)


def first_off_path(parents: tuple[int, ...]) -> int | None:
    """The first node, from 0, whose parent is not on the path of the node before it."""
    for node in range(1, len(parents)):
        on_path = node  # the node before it, from 1
        while on_path not in (0, parents[node]):
            on_path = parents[on_path - 1]
        if on_path != parents[node]:
            return node
    return None
