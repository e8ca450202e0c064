"""The unit ball and the unit disk in tetrahedra and triangles: an octahedron, refined until edges are short enough."""

from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from ..hydroelastic.sphere_mesh import unit_sphere

EDGES = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])  # of a tetrahedron
# Of a tetrahedron with nodes 0 to 3 and the middles 4 to 9 of its edges: the four tetrahedra at its corners, and three
# ways to split the octahedron amid them, around each of its diagonals
AT_CORNERS = np.array([[0, 4, 5, 6], [1, 7, 4, 8], [5, 7, 2, 9], [9, 6, 8, 3]])
AMID_CORNERS = np.array(
    [
        [[6, 7, 8, 4], [6, 5, 7, 4], [6, 8, 7, 9], [6, 7, 5, 9]],
        [[5, 8, 4, 7], [5, 8, 7, 9], [5, 8, 9, 6], [5, 4, 8, 6]],
        [[4, 7, 9, 8], [4, 8, 9, 6], [4, 6, 9, 5], [4, 5, 9, 7]],
    ]
)


@lru_cache
def unit_ball(level: int) -> tuple[Int[np.ndarray, "tetrahedra 4"], Float[np.ndarray, "nodes 3"]]:
    """Tetrahedra and nodes of the unit ball, 8^(level + 1) tetrahedra: each is split in eight, again and again.

    Middles of edges between nodes on the sphere move onto it. Nodes and tetrahedra are those of Drake's deformable
    spheres, up to their order.
    """
    if level == 0:
        return unit_sphere(0)
    coarse, points = unit_ball(level - 1)
    ends, index = np.unique(np.sort(coarse[:, EDGES].reshape(-1, 2), axis=1), axis=0, return_inverse=True)
    middles = points[ends].mean(axis=1)
    on_sphere = np.isclose((points[ends] ** 2).sum(axis=2), 1.0, rtol=1e-9).all(axis=1)
    middles[on_sphere] /= np.linalg.norm(middles[on_sphere], axis=1, keepdims=True)
    points = np.concatenate([points, middles])
    nodes = np.concatenate([coarse, len(points) - len(middles) + index.reshape(-1, len(EDGES))], axis=1)
    tetrahedra = np.concatenate([nodes[:, AT_CORNERS], best_amid_corners(nodes, points)], axis=1)
    return tetrahedra.reshape(-1, 4), points


def best_amid_corners(nodes: Int[np.ndarray, "n 10"], points: Float[np.ndarray, "nodes 3"]) -> Int[np.ndarray, "n 4 4"]:
    """The split of each octahedron amid corners that makes the best tetrahedra.

    Many are equally good by symmetry, and rounding decides. So the sums stand in the order of Drake's, who takes the
    first of the best ones.
    """
    ways = np.stack([nodes[:, way] for way in AMID_CORNERS])
    quality = shape_qualities(points[ways])
    total = quality[..., 0] + quality[..., 1] + quality[..., 2] + quality[..., 3]
    return ways[total.argmax(axis=0), np.arange(len(nodes))]


def shape_qualities(corners: Float[np.ndarray, "*rows 4 3"]) -> Float[np.ndarray, "*rows"]:
    """Squared volumes over the cubed sums of squared edges, which are greatest for regular tetrahedra."""
    arms = corners[..., 1:, :] - corners[..., :1, :]
    (ax, ay, az), (bx, by, bz), (cx, cy, cz) = np.moveaxis(arms, (-2, -1), (0, 1))
    volume = ((ay * bz - az * by) * cx + (az * bx - ax * bz) * cy + (ax * by - ay * bx) * cz) / 6.0
    x, y, z = np.moveaxis(corners[..., EDGES[:, 0], :] - corners[..., EDGES[:, 1], :], -1, 0)
    squares = np.moveaxis(x * x + y * y + z * z, -1, 0)
    edges = squares[0] + squares[1] + squares[2] + squares[3] + squares[4] + squares[5]
    return volume * volume / (edges * edges * edges)


def unit_disk(level: int) -> Int[np.ndarray, "triangles 3"]:
    """Nodes of the unit ball whose triangles fill its disk z = 0."""
    tetrahedra, points = unit_ball(level)
    above = tetrahedra[points[tetrahedra, 2].sum(axis=1) > 0.0]
    is_on_disk = points[above, 2] == 0.0
    has_face = is_on_disk.sum(axis=1) == 3
    return above[has_face][is_on_disk[has_face]].reshape(-1, 3)
