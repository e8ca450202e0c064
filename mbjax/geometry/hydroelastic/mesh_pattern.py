"""Meshes of fixed connectivity whose vertices are linear in the lengths of a shape."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

CORNERS_OF_FACES = ((1, 2, 3), (3, 2, 0), (1, 3, 0), (2, 1, 0))  # of a tetrahedron, counterclockwise seen from outside


class MeshPattern(NamedTuple):
    """A mesh for any lengths of a shape, in the frame G of the shape.

    Vertices are `basis` times the lengths. A tetrahedron's fourth vertex lies on the side that the right-handed normal
    of the first three points to; normals of surface triangles point outward. `interior` marks vertices on the medial
    axis, where the pressure is greatest. `depth` times the lengths is the distance from the medial axis to the
    surface, and a margin grows the lengths by `growth` times the margin.
    """

    elements: Int[np.ndarray, "elements corners"]
    basis: Float[np.ndarray, "vertices 3 lengths"]
    interior: Bool[np.ndarray, " vertices"]
    depth: Float[np.ndarray, " lengths"]
    growth: Float[np.ndarray, " lengths"]


def surface_of(pattern: MeshPattern) -> MeshPattern:
    """The triangles that bound a mesh of tetrahedra, with their vertices alone."""
    faces = boundary_faces(pattern.elements)
    kept, renumbered = np.unique(faces, return_inverse=True)
    return pattern._replace(
        elements=renumbered.reshape(faces.shape), basis=pattern.basis[kept], interior=pattern.interior[kept]
    )


def boundary_faces(tetrahedra: Int[np.ndarray, "elements 4"]) -> Int[np.ndarray, "faces 3"]:
    """Faces that only one tetrahedron has, counterclockwise seen from outside."""
    faces = tetrahedra[:, CORNERS_OF_FACES].reshape(-1, 3)
    _, first, count = np.unique(np.sort(faces, axis=1), axis=0, return_index=True, return_counts=True)
    return faces[first[count == 1]]


def oriented(tetrahedra: Int[np.ndarray, "elements 4"], vertices: Float[np.ndarray, "vertices 3"]) -> np.ndarray:
    """The tetrahedra with two vertices swapped where the volume would be negative."""
    corners = vertices[tetrahedra]
    inside_out = np.linalg.det(corners[:, 1:] - corners[:, :1]) < 0.0
    return np.where(inside_out[:, None], tetrahedra[:, [1, 0, 2, 3]], tetrahedra)
