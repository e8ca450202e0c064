"""Meshes on which a body has a depth everywhere below its surface.

A depth that is linear on tetrahedra, and zero on the surface, is zero all along an edge, a triangle or a tetrahedron
inside of the body whose corners are all on the surface. Such an edge gets a vertex in its middle, then such a triangle
and such a tetrahedron one in its centroid, as in Drake's tool for meshes of hydroelastic contact. A new vertex moves
with the corners of the edge, triangle or tetrahedron that it is the mean of: each tetrahedron stays within an element.
"""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int


class DepthMesh(NamedTuple):
    """Tetrahedra, the elements that they are parts of by number, and vertices that are added to the nodes.

    An added vertex is the sum of four nodes times weights. `inner` are all vertices below the surface.
    """

    elements: Int[np.ndarray, "e 4"]
    tetrahedra: Int[np.ndarray, "m 4"]
    owners: Int[np.ndarray, " m"]
    parents: Int[np.ndarray, "k 4"]
    weights: Float[np.ndarray, "k 4"]
    inner: Int[np.ndarray, " i"]


def depth_mesh(elements: Int[np.ndarray, "e 4"], surface: Int[np.ndarray, "f 3"], num_nodes: int) -> DepthMesh:
    """The mesh of these elements, split where they have no depth; `surface` are the triangles around them."""
    on_surface = np.unique(surface)
    of_surface = {2: simplices(surface, 2), 3: simplices(surface, 3), 4: set()}
    tetrahedra, owners, added = np.array(elements), np.arange(len(elements)), []
    for size in (2, 3, 4):
        for corners in sorted(simplices(tetrahedra[np.isin(tetrahedra, on_surface).sum(axis=1) >= size], size)):
            if corners in of_surface[size] or not np.isin(corners, on_surface).all():
                continue
            new = num_nodes + len(added)
            added.append(corners)
            is_around = np.isin(tetrahedra, corners).sum(axis=1) == size
            parts = [np.where(tetrahedra[is_around] == corner, new, tetrahedra[is_around]) for corner in corners]
            tetrahedra = np.concatenate([tetrahedra[~is_around], *parts])
            owners = np.concatenate([owners[~is_around], *[owners[is_around]] * size])
    parents = np.array([(*corners, *(corners[0],) * (4 - len(corners))) for corners in added], int).reshape(-1, 4)
    weights = np.array([[1.0 / len(c)] * len(c) + [0.0] * (4 - len(c)) for c in added]).reshape(-1, 4)
    inner = np.setdiff1d(tetrahedra, on_surface)
    return DepthMesh(elements, tetrahedra, owners, parents, weights, inner)


def simplices(cells: Int[np.ndarray, "m k"], size: int) -> set[tuple[int, ...]]:
    """All edges, triangles or tetrahedra of cells: their corners in order."""
    places = list(itertools.combinations(range(cells.shape[1]), size))
    found = np.unique(np.sort(cells[:, places].reshape(-1, size), axis=1), axis=0)
    return {tuple(corners) for corners in found.tolist()}
