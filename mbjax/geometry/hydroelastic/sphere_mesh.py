"""Meshes of spheres and ellipsoids: an octahedron whose triangles are split in four until edges are short enough."""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int

from mbjax.geometry.shapes import Ellipsoid, Sphere

from .mesh_pattern import MeshPattern

FINEST_LEVEL = 8  # about half a million tetrahedra
OCTAHEDRON = np.array([[1, 5, 2], [2, 5, 3], [3, 5, 4], [4, 5, 1], [2, 6, 1], [3, 6, 2], [4, 6, 3], [1, 6, 4]])
OCTAHEDRON_VERTICES = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1]], float)


def sphere_pattern(shape: Sphere, resolution_hint: float, margin: float) -> MeshPattern:
    """Tetrahedra from the centre of a sphere to the triangles on its surface."""
    tetrahedra, vertices = unit_sphere(refinement_level(resolution_hint / (shape.radius + margin)))
    return MeshPattern(tetrahedra, vertices[:, :, None], interior_of(vertices), np.ones(1), np.ones(1))


def ellipsoid_pattern(shape: Ellipsoid, resolution_hint: float, margin: float) -> MeshPattern:
    """The unit sphere's mesh, stretched by the three semi-axes."""
    longest = max(shape.a, shape.b, shape.c) + margin
    tetrahedra, vertices = unit_sphere(refinement_level(resolution_hint / longest))
    basis = vertices[:, :, None] * np.eye(3)
    return MeshPattern(tetrahedra, basis, interior_of(vertices), np.zeros(3), np.ones(3))


def refinement_level(edge: float) -> int:
    """Number of splits until edges on the equator of the unit sphere are at most as long as given.

    At level L an edge spans the angle pi / 2^(L + 1).
    """
    angle = math.asin(min(edge, 2.0) / 2.0)  # half the angle that an edge may span
    return min(max(0, math.ceil(math.log2(math.pi / angle)) - 2), FINEST_LEVEL)


@lru_cache
def unit_sphere(level: int) -> tuple[Int[np.ndarray, "elements 4"], Float[np.ndarray, "vertices 3"]]:
    """Tetrahedra and vertices of the unit sphere; vertex 0 is the centre, and the last one of every tetrahedron."""
    triangles, vertices = OCTAHEDRON, OCTAHEDRON_VERTICES
    for _ in range(level):
        triangles, vertices = split_in_four(triangles, vertices)
    return np.column_stack([triangles, np.zeros(len(triangles), int)]), vertices


def split_in_four(triangles: np.ndarray, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Splits each triangle at the middles of its edges, which move onto the unit sphere."""
    edges = np.sort(triangles[:, [[1, 2], [0, 1], [0, 2]]].reshape(-1, 2), axis=1)
    unique, index = np.unique(edges, axis=0, return_inverse=True)
    middles = vertices[unique].mean(axis=1)
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    a, b, c = triangles.T
    d, e, f = len(vertices) + index.reshape(-1, 3).T
    split = np.stack([[a, e, f], [b, d, e], [c, f, d], [e, d, f]])
    return split.transpose(2, 0, 1).reshape(-1, 3), np.concatenate([vertices, middles])


def interior_of(vertices: np.ndarray) -> np.ndarray:
    """Marks the centre."""
    return np.arange(len(vertices)) == 0
