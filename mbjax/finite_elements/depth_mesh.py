"""Meshes on which a body has a depth everywhere below its surface.

A depth that is linear on tetrahedra, and zero on the surface, is zero all along an edge, a triangle or a tetrahedron
inside of the body whose corners are all on the surface. Such an edge gets a vertex in its middle, then such a triangle
and such a tetrahedron one in its centroid, as in Drake's tool for meshes of hydroelastic contact. A new vertex moves
with the corners of the edge, triangle or tetrahedron that it is the mean of: each tetrahedron stays within an element.
"""

import itertools
from collections import defaultdict
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
    outer, parts, added = set(on_surface.tolist()), SplitTetrahedra(elements), []
    for size in (2, 3, 4):
        whole = parts.in_order()[0]
        for corners in sorted(simplices(whole[np.isin(whole, on_surface).sum(axis=1) >= size], size)):
            if outer.issuperset(corners) and corners not in of_surface[size]:
                parts.split(corners, num_nodes + len(added))
                added.append(corners)
    tetrahedra, owners = parts.in_order()
    parents = np.array([(*corners, *(corners[0],) * (4 - len(corners))) for corners in added], int).reshape(-1, 4)
    weights = np.array([[1.0 / len(c)] * len(c) + [0.0] * (4 - len(c)) for c in added]).reshape(-1, 4)
    inner = np.setdiff1d(tetrahedra, on_surface)
    return DepthMesh(elements, tetrahedra, owners, parents, weights, inner)


class SplitTetrahedra:
    """Elements, and the tetrahedra that they are split into at one edge, triangle or tetrahedron after another."""

    def __init__(self, elements: Int[np.ndarray, "e 4"]):
        self.parts: dict[int, list[int]] = {}  # by a number that grows
        self.owners: list[int] = []  # of every part that there has been
        self.around: dict[int, set[int]] = defaultdict(set)  # the parts at each vertex
        for owner, corners in enumerate(elements.tolist()):
            self._add(corners, owner)

    def split(self, corners: tuple[int, ...], new: int) -> None:
        """Puts a vertex `new` within an edge, a triangle or a tetrahedron: parts around it have it for a corner."""
        numbers = sorted(set.intersection(*(self.around[corner] for corner in corners)))
        whole = [self._remove(number) for number in numbers]
        for corner in corners:
            for number, part in zip(numbers, whole, strict=True):
                self._add([new if x == corner else x for x in part], self.owners[number])

    def in_order(self) -> tuple[Int[np.ndarray, "m 4"], Int[np.ndarray, " m"]]:
        """The tetrahedra, in the order in which they arose, and the elements that they are parts of."""
        return np.array(list(self.parts.values())).reshape(-1, 4), np.array(self.owners)[list(self.parts)]

    def _add(self, corners: list[int], owner: int) -> None:
        number = len(self.owners)
        self.parts[number] = corners
        self.owners.append(owner)
        for corner in corners:
            self.around[corner].add(number)

    def _remove(self, number: int) -> list[int]:
        corners = self.parts.pop(number)
        for corner in corners:
            self.around[corner].remove(number)
        return corners


def simplices(cells: Int[np.ndarray, "m k"], size: int) -> set[tuple[int, ...]]:
    """All edges, triangles or tetrahedra of cells: their corners in order."""
    places = list(itertools.combinations(range(cells.shape[1]), size))
    found = np.unique(np.sort(cells[:, places].reshape(-1, size), axis=1), axis=0)
    return {tuple(corners) for corners in found.tolist()}
