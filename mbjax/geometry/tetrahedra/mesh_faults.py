"""What makes points and corners no mesh of tetrahedra: each fault in words, with its numbers and the way out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

FLATTEST = 1e-12  # six times the volume over the cube of the longest edge; below it, rounding decides the sign
MOST_LISTED = 6
TOOLS = "fTetWild (pytetwild), TetGen or Gmsh"
CELLS_BY_CORNERS = {
    2: "lines",
    3: "triangles, thus a surface",
    8: "hexahedra",
    10: "ten-node tetrahedra",
}


class MeshFault(NamedTuple):
    """What is wrong, and the node or the tetrahedron where it is seen first."""

    words: str
    node: int | None = None
    tetrahedron: int | None = None


def first_fault(points: Float[np.ndarray, "nodes 3"], tetrahedra: Int[np.ndarray, "tetrahedra 4"]) -> MeshFault | None:
    """The first fault of a mesh, or None."""
    return (
        fault_of_corners(points, tetrahedra)
        or fault_of_nodes(points, tetrahedra)
        or fault_of_repeated_tetrahedra(tetrahedra)
        or fault_of_volumes(points, tetrahedra)
    )


def fault_of_corners(points: np.ndarray, tetrahedra: np.ndarray) -> MeshFault | None:
    """No tetrahedra, numbers that are not finite, nodes that are not there, or a node twice in a tetrahedron."""
    if not len(tetrahedra):
        return MeshFault("has no tetrahedra; a deformable body needs one at least")
    not_finite = np.flatnonzero(~np.isfinite(points).all(axis=1))
    if len(not_finite):
        node = int(not_finite[0])
        return MeshFault(f"has node {node} at {in_words(points[node])}; give finite numbers in metres", node)
    outside = np.flatnonzero(((tetrahedra < 0) | (tetrahedra >= len(points))).any(axis=1))
    if len(outside):
        return fault_of_numbers(len(points), tetrahedra, int(outside[0]))
    ordered = np.sort(tetrahedra, axis=1)
    twice = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if len(twice):
        first = int(twice[0])
        return MeshFault(
            f"has {listed('tetrahedron', 'tetrahedra', twice)} with a node twice, the first of nodes "
            f"{corners_of(tetrahedra, first)}; give four different nodes to each, or remove it",
            tetrahedron=first,
        )
    return None


def fault_of_numbers(num_nodes: int, tetrahedra: np.ndarray, first: int) -> MeshFault:
    """The tetrahedron `first` has a node that is not there."""
    corners = tetrahedra[first]
    node = int(corners[(corners < 0) | (corners >= num_nodes)][0])
    counts_from_one = tetrahedra.min() == 1 and tetrahedra.max() == num_nodes
    return MeshFault(
        f"has tetrahedron {first} of nodes {corners_of(tetrahedra, first)}, but there are {num_nodes} nodes, numbered "
        f"from 0, and no node {node}; "
        + ("the numbers start at 1: subtract 1" if counts_from_one else "give numbers of nodes that are there"),
        tetrahedron=first,
    )


def fault_of_nodes(points: np.ndarray, tetrahedra: np.ndarray) -> MeshFault | None:
    """Nodes in no tetrahedron, or at the same place."""
    is_used = np.zeros(len(points), bool)
    is_used[tetrahedra.ravel()] = True
    unused = np.flatnonzero(~is_used)
    if len(unused):
        node = int(unused[0])
        return MeshFault(
            f"has {listed('node', 'nodes', unused)} in no tetrahedron, the first at {in_words(points[node])}; remove "
            "them, since nothing holds them, or let repair=True do it",
            node,
        )
    first_at = first_at_same_place(points)
    repeated = np.flatnonzero(first_at != np.arange(len(points)))
    if len(repeated):
        node = int(repeated[0])
        return MeshFault(
            f"has {listed('node', 'nodes', repeated)} where there is another node already, the first with node "
            f"{first_at[node]} at {in_words(points[node])}; merge them, since what they belong to is not joined there, "
            "or let repair=True do it",
            node,
        )
    return None


def first_at_same_place(points: Float[np.ndarray, "nodes 3"]) -> Int[np.ndarray, " nodes"]:
    """For each node the first one with the same coordinates, itself where there is no other."""
    order = np.lexsort(points.T)
    is_new = np.ones(len(points), bool)
    is_new[1:] = (points[order[1:]] != points[order[:-1]]).any(axis=1)
    first_of_place = np.minimum.reduceat(order, np.flatnonzero(is_new))
    result = np.empty(len(points), int)
    result[order] = first_of_place[np.cumsum(is_new) - 1]
    return result


def fault_of_repeated_tetrahedra(tetrahedra: np.ndarray) -> MeshFault | None:
    """Tetrahedra of the same four nodes as another one."""
    repeated = repeated_tetrahedra(tetrahedra)
    if not len(repeated):
        return None
    first = int(repeated[0])
    return MeshFault(
        f"has {listed('tetrahedron', 'tetrahedra', repeated)} of the same nodes as another one, the first of nodes "
        f"{corners_of(tetrahedra, first)}; remove them, or let repair=True do it",
        tetrahedron=first,
    )


def repeated_tetrahedra(tetrahedra: np.ndarray) -> Int[np.ndarray, " repeated"]:
    """Numbers of the tetrahedra whose nodes an earlier one has, in ascending order."""
    ordered = np.sort(tetrahedra, axis=1)
    order = np.lexsort((np.arange(len(ordered)), *ordered.T))
    same = (ordered[order[1:]] == ordered[order[:-1]]).all(axis=1)
    return np.sort(order[1:][same])


def fault_of_volumes(points: np.ndarray, tetrahedra: np.ndarray) -> MeshFault | None:
    """Tetrahedra that are flat or inverted."""
    volumes, fullness = volumes_and_fullness(points, tetrahedra)
    flat = np.flatnonzero(~(np.abs(fullness) > FLATTEST))
    if len(flat):
        first = int(flat[0])
        return MeshFault(
            f"has {listed('tetrahedron', 'tetrahedra', flat)} without volume, the first with {volumes[first]:.3g} m³ "
            f"between nodes {corners_of(tetrahedra, first)}; no stress follows from a flat one: mesh the solid again, "
            f"with {TOOLS}",
            tetrahedron=first,
        )
    inverted = np.flatnonzero(fullness < 0.0)
    if len(inverted):
        first = int(inverted[0])
        which = "only tetrahedra" if len(inverted) == len(tetrahedra) else listed("tetrahedron", "tetrahedra", inverted)
        return MeshFault(
            f"has {which} inside out, the first with {volumes[first]:.3g} m³ between nodes "
            f"{corners_of(tetrahedra, first)}; det[p1 - p0, p2 - p0, p3 - p0] must be positive: swap two nodes of "
            "each, or let repair=True do it",
            tetrahedron=first,
        )
    return None


def volumes_and_fullness(
    points: Float[np.ndarray, "nodes 3"], tetrahedra: Int[np.ndarray, "tetrahedra 4"]
) -> tuple[Float[np.ndarray, " tetrahedra"], Float[np.ndarray, " tetrahedra"]]:
    """Signed volumes in m³, and six times the volumes over the cubes of the longest edges: at most 0.77."""
    corners = points[tetrahedra]
    with np.errstate(over="ignore", invalid="ignore"):
        arms = corners[:, 1:] - corners[:, :1]
        across = arms - np.roll(arms, 1, axis=1)
        longest = np.sqrt((np.concatenate([arms, across], axis=1) ** 2).sum(axis=2)).max(axis=1)
        arms = arms / np.where(longest > 0.0, longest, 1.0)[:, None, None]
        fullness = (arms[:, 0] * np.cross(arms[:, 1], arms[:, 2])).sum(axis=1)
        return fullness * longest**3 / 6.0, fullness


def words_for_corners(num_corners: int) -> str:
    """What cells with another number of corners than four are, and how to get tetrahedra."""
    kind = CELLS_BY_CORNERS.get(num_corners, f"cells of {num_corners} nodes")
    if num_corners <= 3:
        return f"has {kind}, where a solid of tetrahedra is needed; {TOOLS} makes tetrahedra within a closed surface"
    if num_corners == 10:
        return f"has {kind}; give the first four nodes of each, or export with element order 1"
    return f"has {kind}; only tetrahedra of four nodes are simulated: mesh the solid with {TOOLS}"


def listed(one: str, several: str, numbers: Sequence[int] | np.ndarray) -> str:
    """Numbers in words: "node 3", "tetrahedra 1, 2 and 5", or the first few and how many more."""
    shown = [str(int(number)) for number in numbers[:MOST_LISTED]]
    more = len(numbers) - len(shown)
    if len(numbers) == 1:
        return f"{one} {shown[0]}"
    if more:
        return f"{several} {', '.join(shown)} and {more} more"
    return f"{several} {', '.join(shown[:-1])} and {shown[-1]}"


def in_words(point: np.ndarray) -> str:
    return "(" + ", ".join(f"{coordinate:.6g}" for coordinate in point) + ")"


def corners_of(tetrahedra: np.ndarray, index: int) -> str:
    return ", ".join(str(int(node)) for node in tetrahedra[index])
