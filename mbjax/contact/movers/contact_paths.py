"""Paths of contact points: the constant sets of directions that move a point, found from the two bodies that touch."""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Int

from mbjax.topology import TreeTopology


class ContactPaths(NamedTuple):
    """The distinct paths of contact points: `forth` are directions that move B's material there, `back` A's.

    A direction that moves both bodies is in neither set, so its effect on the point is exactly zero. Two bodies of
    one tree share one path, as their velocities are about one origin T; bodies of two trees have one path each. A
    point has one side for each of its paths. The first sides of all m points come first, then the second sides of the
    points that have two.
    """

    forth: Bool[np.ndarray, "nd paths"]
    back: Bool[np.ndarray, "nd paths"]
    of_sides: Int[np.ndarray, " s"]  # the path of each side
    points: Int[np.ndarray, " s"]  # the point of each side
    is_A: Bool[np.ndarray, " s"]  # whether the side belongs to body A
    num_points: int

    @property
    def is_single(self) -> bool:
        """Whether one body alone moves at each point."""
        return len(self.points) == self.num_points and not np.any(self.forth.any(0) & self.back.any(0))


@functools.lru_cache(maxsize=256)
def find_contact_paths(topology: TreeTopology, mobods_A: tuple[int, ...], mobods_B: tuple[int, ...]) -> ContactPaths:
    """Paths of points between these mobods. Paths with `forth` alone come first, those with `back` alone last."""
    A, B = np.array(mobods_A, int), np.array(mobods_B, int)
    roots, moves = topology.mobod_roots, topology.moves
    across = (A > 0) & (B > 0) & (roots[A] != roots[B])
    only_A, only_B = moves[:, A] & ~moves[:, B], moves[:, B] & ~moves[:, A]
    none = np.zeros_like(only_A)
    forth = np.concatenate([only_B, none[:, across]], axis=1)
    back = np.concatenate([np.where(across, False, only_A), only_A[:, across]], axis=1)
    both, of_sides = np.unique(np.concatenate([forth, back]), axis=1, return_inverse=True)
    forth, back = np.split(both, 2)
    order = np.argsort(back.any(0).astype(int) + (back.any(0) & ~forth.any(0)), kind="stable")
    place = np.argsort(order)
    points = np.concatenate([np.arange(len(A)), np.flatnonzero(across)])
    is_A = np.concatenate([(A > 0) & (B == 0), np.ones(across.sum(), bool)])
    return ContactPaths(forth[:, order], back[:, order], place[of_sides.ravel()], points, is_A, len(A))
