"""Meshes of boxes whose tetrahedra end at the medial axis, where the distance to the surface has its ridge.

The medial axis of a box is a point, a line or a rectangle in the middle, and slanted sheets from there to the edges.
A tetrahedron that crossed it could not hold the distance to the surface as a linear function. Each face of the box
sees a roof of the medial axis: triangles and trapezoids over its edges, and perhaps the rectangle. The tetrahedra
join the centre of the face to the triangles of its roof.
"""

import itertools
from collections.abc import Iterator

import numpy as np

from mbjax.geometry.shapes import Box

from .mesh_pattern import MeshPattern, oriented

EQUAL = 1e-14  # lengths that differ by less count as equal, relative to the shortest one where that is over 1 m
CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
FACES = np.concatenate([-np.eye(3, dtype=int), np.eye(3, dtype=int)])
NUM_CORNERS, NUM_ON_SURFACE = 8, 14


def box_pattern(shape: Box) -> MeshPattern:
    """The mesh of a box: 24 tetrahedra for a cube, 40 where the two shortest sides are equal, otherwise 44.

    The connectivity follows from which sides are the shortest; it fits other boxes with the same shortest sides.
    """
    half = 0.5 * np.array(shape.size)
    is_shortest = half - half.min() <= EQUAL * max(1.0, half.min())
    axes, signs = canonical_axes(is_shortest, half)
    points, tetrahedra, depth = canonical_mesh(is_shortest[axes])
    basis = np.zeros_like(points)
    basis[:, axes[:, None], axes] = points * signs[:, None]
    tetrahedra = oriented(tetrahedra, basis @ half)
    interior = np.arange(len(points)) >= NUM_ON_SURFACE
    return MeshPattern(tetrahedra, 0.5 * basis, interior, 0.5 * depth[np.argsort(axes)], np.full(3, 2.0))


def canonical_axes(is_shortest: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The box's axes that the canonical axes x, y, z are along, and the signs of their directions.

    A medial rectangle is normal to the canonical x axis, a medial line lies along z. The directions decide which
    diagonals split the trapezoids, and are those of Drake.
    """
    if is_shortest.sum() == 1:
        axes = ((1, 2, 3), (2, -1, 3), (3, 2, -1))[int(np.argmin(half))]
    elif is_shortest.sum() == 2:
        axes = ((3, 2, -1), (1, 3, -2), (1, 2, 3))[int(np.argmax(half))]
    else:
        axes = (1, 2, 3)
    return np.abs(axes) - 1, np.sign(axes)


def canonical_mesh(is_shortest: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Points (n, 3, 3) per half length along the canonical axes, tetrahedra of any orientation, and weights of depth.

    Corners come first, then centres of faces, then the medial vertices. The depth is the shortest half length, or the
    mean of those that are equally short.
    """
    depth = is_shortest / is_shortest.sum()
    towards, medial = np.unique(CORNERS * ~is_shortest, axis=0, return_inverse=True)
    if is_shortest.sum() == 2:  # a line, which its middle splits
        towards = np.concatenate([towards, np.zeros((1, 3), int)])
    points = np.concatenate(
        [CORNERS[:, :, None] * np.eye(3), FACES[:, :, None] * np.eye(3), towards[:, :, None] * (np.eye(3) - depth)]
    )
    tetrahedra = [
        (NUM_CORNERS + face, *(NUM_ON_SURFACE + ~vertex if vertex < 0 else vertex for vertex in triangle))
        for face in range(len(FACES))
        for triangle in roof_of_face(face, medial.reshape(-1), is_shortest)
    ]
    return points, np.array(tetrahedra), depth


def roof_of_face(face: int, medial: np.ndarray, is_shortest: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Triangles of the medial axis that a face sees; a corner is given by its index, the medial vertex i by ~i."""
    axis = int(np.argmax(FACES[face] != 0))
    on_face = [corner for corner in range(NUM_CORNERS) if CORNERS[corner, axis] == FACES[face, axis]]
    for low, high in itertools.combinations(on_face, 2):
        if (CORNERS[low] != CORNERS[high]).sum() > 1:
            continue
        over_low, over_high = ~medial[low], ~medial[high]
        if over_low == over_high:
            yield low, high, over_low
        elif is_shortest.sum() == 2:
            middle = ~(medial.max() + 1)
            yield from ((low, over_low, middle), (low, high, middle), (high, over_high, middle))
        else:
            yield from ((low, high, over_high), (low, over_high, over_low))
    if is_shortest.sum() == 1 and is_shortest[axis]:
        yield from ((~1, ~2, ~3), (~1, ~2, ~0))
