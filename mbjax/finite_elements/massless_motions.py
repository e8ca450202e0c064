"""Motions of linear elements that nothing resists, as neither mass nor stiffness takes part in them.

A linear element has its mass at its centroid alone. Where no element is strained and no centroid moves, the matrix of a
step is singular: as for one element that turns about its centroid, or for one that hangs on a body by a vertex.

Elements joined by faces move as one rigid body where nothing is strained. Such groups have six numbers each, the
velocity v at the group's middle and the angular velocity w, and all of these must be zero where centroids and held
nodes do not move and where the nodes that groups share, those of an edge or a vertex, move alike.
"""

import numpy as np
from jaxtyping import Bool, Float, Int

from .element_kinds import OUTWARD_FACES

ROUNDING_OF_MESHES = 1e-7  # of a singular value, relative to the largest, and of a width, relative to the length


def find_massless_element(
    points: Float[np.ndarray, "n 3"], tetrahedra: Int[np.ndarray, "m 4"], held: Bool[np.ndarray, " n"]
) -> int | None:
    """A linear element that can move with neither inertia nor strain while held nodes stay; None where none can."""
    group = groups_joined_by_faces(tetrahedra)
    order = np.argsort(group, kind="stable")
    waiting = np.split(order, np.cumsum(np.bincount(group))[:-1])
    centroids, rests = points[tetrahedra].mean(axis=1), np.array(held)

    def points_at_rest(members: Int[np.ndarray, " k"]) -> Float[np.ndarray, "p 3"]:
        nodes = np.unique(tetrahedra[members])
        return np.concatenate([centroids[members], points[nodes[rests[nodes]]]])

    while waiting:  # three points at rest that are not on a line hold a group, and its nodes rest as well
        found = [members for members in waiting if span_a_plane(points_at_rest(members))]
        if not found:
            break
        rests[tetrahedra[np.concatenate(found)]] = True
        waiting = [members for members in waiting if not rests[tetrahedra[members]].all()]
    for linked in linked_by_nodes([np.unique(tetrahedra[members]) for members in waiting], ~rests):
        groups = [waiting[k] for k in linked]
        moving = moving_group(points, [tetrahedra[x] for x in groups], [points_at_rest(x) for x in groups], ~rests)
        if moving is not None:
            return int(groups[moving][0])
    return None


def groups_joined_by_faces(tetrahedra: Int[np.ndarray, "m 4"]) -> Int[np.ndarray, " m"]:
    """The number of each tetrahedron's group; neighbours with a common face are in one."""
    faces = np.sort(np.concatenate([tetrahedra[:, face] for face in OUTWARD_FACES]).astype(np.int64), axis=1)
    count = int(tetrahedra.max()) + 1
    _, face = np.unique((faces[:, 0] * count + faces[:, 1]) * count + faces[:, 2], return_inverse=True)
    return components(np.tile(np.arange(len(tetrahedra)), 4), face.reshape(-1), len(tetrahedra))


def linked_by_nodes(
    nodes_of_groups: list[Int[np.ndarray, " k"]], moves: Bool[np.ndarray, " n"]
) -> list[Int[np.ndarray, " g"]]:
    """Groups in parts, such that groups of two parts have no common node that moves."""
    if not nodes_of_groups:
        return []
    owner = np.repeat(np.arange(len(nodes_of_groups)), [len(x) for x in nodes_of_groups])
    nodes = np.concatenate(nodes_of_groups)
    part = components(owner[moves[nodes]], nodes[moves[nodes]], len(nodes_of_groups))
    return [np.flatnonzero(part == k) for k in range(part.max() + 1)]


def components(owner: Int[np.ndarray, " k"], shared: Int[np.ndarray, " k"], count: int) -> Int[np.ndarray, " count"]:
    """The number of the connected part of each of `count` owners, which are joined where they share a thing."""
    from scipy.sparse import coo_matrix  # here: few models have deformable bodies
    from scipy.sparse.csgraph import connected_components

    size = count + (int(shared.max()) + 1 if len(shared) else 0)
    graph = coo_matrix((np.ones(len(owner), np.int8), (owner, count + shared)), (size, size))
    return np.unique(connected_components(graph, directed=False)[1][:count], return_inverse=True)[1].reshape(-1)


def span_a_plane(points: Float[np.ndarray, "n 3"]) -> bool:
    """Whether points are not all on one line."""
    if len(points) < 3:
        return False
    lengths = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(lengths[1] > ROUNDING_OF_MESHES * lengths[0])


def moving_group(
    points: Float[np.ndarray, "n 3"],
    elements: list[Int[np.ndarray, "k 4"]],
    at_rest: list[Float[np.ndarray, "p 3"]],
    moves: Bool[np.ndarray, " n"],
) -> int | None:
    """The group that moves most in a motion of linked groups that nothing resists; None without such a motion.

    Each group has its elements and its points at rest; `moves` says which nodes are not at rest.
    """
    rows: list[np.ndarray] = []
    last_row_of_node: dict[int, np.ndarray] = {}

    def velocity(k: int, point: Float[np.ndarray, "3"]) -> Float[np.ndarray, "3 c"]:
        """A point's velocity by the numbers of all groups, where group k has it; w is in units of v over a size."""
        of_group = points[elements[k]].reshape(-1, 3)
        x, y, z = (point - of_group.mean(axis=0)) / np.ptp(of_group, axis=0).max()
        found = np.zeros((3, 6 * len(elements)))
        found[:, 6 * k : 6 * k + 6] = np.concatenate([np.eye(3), [[0, z, -y], [-z, 0, x], [y, -x, 0]]], axis=1)
        return found

    for k, resting in enumerate(at_rest):
        rows += [velocity(k, point) for point in resting]
        for node in np.unique(elements[k][moves[elements[k]]]).tolist():
            row = velocity(k, points[node])
            if node in last_row_of_node:
                rows.append(row - last_row_of_node[node])
            last_row_of_node[node] = row
    at_least = np.zeros((6 * len(elements), 6 * len(elements)))  # as many rows as numbers
    _, sizes, motions = np.linalg.svd(np.concatenate([at_least, *rows]), full_matrices=False)
    if sizes[-1] > ROUNDING_OF_MESHES * sizes[0]:
        return None
    return int(np.argmax(np.linalg.norm(motions[-1].reshape(-1, 6), axis=1)))
