"""Kinds of tetrahedral elements: their nodes, shape functions, and the points at which integrals are summed.

Places in an element are barycentric coordinates L (…, 4) of its corners. Edges are straight at rest, so that the
gradients of L are the same all over an element.
"""

import dataclasses
import functools
import itertools
from typing import Any

import numpy as np
from jaxtyping import Float, Int

OUTWARD_FACES = ((1, 2, 3), (0, 3, 2), (0, 1, 3), (0, 2, 1))  # corners, counterclockwise from outside
ENDS_OF_EDGES = ((0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (2, 3))  # in the order of VTK's quadratic tetrahedron
CENTROID = np.full((1, 4), 0.25)


@dataclasses.dataclass(frozen=True, eq=False)
class ElementKind:
    """A kind of element: four corners, and a node in the middle of each of `edges`.

    Elastic energy is summed at `points`, each for a share of the volume; loads per volume at `load_points`, of equal
    shares; mass at `mass_points`, with `mass_weights`. Entries of the mass matrix are whole multiples of the mass over
    `mass_unit`. Where there are several points, the last is the centroid: it stands for the whole volume, but only for
    the part of the resistance to a change of volume that would lock (`lame_at_points`).
    """

    name: str
    edges: tuple[tuple[int, int], ...]
    points: Float[np.ndarray, "p 4"]
    shares_of_volume: Float[np.ndarray, " p"]
    load_points: Float[np.ndarray, "l 4"]
    mass_points: Float[np.ndarray, "r 4"]
    mass_weights: Float[np.ndarray, " r"]
    mass_unit: float

    @property
    def num_nodes(self) -> int:
        return 4 + len(self.edges)

    @property
    def num_points(self) -> int:
        return len(self.points)

    def shapes(self, L: Float[np.ndarray, "p 4"]) -> Float[np.ndarray, "p k"]:
        """The shape function of each node at some places: one at its node, zero at all others."""
        if not self.edges:
            return L
        of_edges = np.stack([4.0 * L[:, i] * L[:, j] for i, j in self.edges], axis=1)
        return np.concatenate([L * (2.0 * L - 1.0), of_edges], axis=1)

    def slopes(self, L: Float[np.ndarray, "p 4"]) -> Float[np.ndarray, "p k 4"]:
        """Derivatives of the shape functions by L, at some places."""
        if not self.edges:
            return np.broadcast_to(np.eye(4), (len(L), 4, 4))
        found = np.zeros((len(L), self.num_nodes, 4))
        for i in range(4):
            found[:, i, i] = 4.0 * L[:, i] - 1.0
        for k, (i, j) in enumerate(self.edges):
            found[:, 4 + k, i], found[:, 4 + k, j] = 4.0 * L[:, j], 4.0 * L[:, i]
        return found

    @functools.cached_property
    def nodes(self) -> Float[np.ndarray, "k 4"]:
        """Where the nodes are."""
        middles = [0.5 * (np.eye(4)[i] + np.eye(4)[j]) for i, j in self.edges]
        return np.concatenate([np.eye(4), np.array(middles).reshape(-1, 4)])

    @functools.cached_property
    def output_points(self) -> Float[np.ndarray, "p 4"]:
        """Where strains are looked at: the nodes, or the centroid where they are the same all over an element."""
        return self.nodes if self.edges else CENTROID

    def rule(self, where: str) -> tuple[Float[np.ndarray, "p 4"], Float[np.ndarray, " p"]]:
        """Points by the name of the field or property, and their shares of the volume."""
        L = getattr(self, where)
        return L, self.shares_of_volume if where == "points" else np.full(len(L), 1.0 / len(L))

    @functools.cached_property
    def mass_numbers(self) -> Float[np.ndarray, "k k"]:
        """The mass matrix ∫ S_a S_b dm of an element of the mass `mass_unit`."""
        S = self.shapes(self.mass_points)
        return np.round(self.mass_unit * np.einsum("r,ra,rb->ab", self.mass_weights, S, S))

    @functools.cached_property
    def shares(self) -> Float[np.ndarray, " k"]:
        """The part of a load that is even over an element which acts on each node; it may be negative at corners."""
        return self.mass_numbers.sum(axis=1) / self.mass_unit

    @functools.cached_property
    def triangles(self) -> Int[np.ndarray, "4 t 3"]:
        """Flat triangles between the nodes of each face, counterclockwise from outside."""
        middle = {frozenset(edge): 4 + k for k, edge in enumerate(self.edges)}
        found = []
        for face in OUTWARD_FACES:
            a, b, c = (middle.get(frozenset(pair)) for pair in zip(face, (*face[1:], face[0]), strict=True))
            if a is None or b is None or c is None:
                found.append([face])
            else:
                found.append([(face[0], a, c), (a, face[1], b), (c, b, face[2]), (a, b, c)])
        return np.array(found)

    @functools.cached_property
    def tetrahedra(self) -> Int[np.ndarray, "t 4"]:
        """Tetrahedra between the nodes that fill the element, with the triangles of each face as faces."""
        if not self.edges:
            return np.arange(4)[None]
        middle = {frozenset(edge): 4 + k for k, edge in enumerate(self.edges)}
        found = [[i, *(middle[frozenset((i, j))] for j in range(4) if j != i)] for i in range(4)]
        ends = middle[frozenset((0, 1))], middle[frozenset((2, 3))]  # of the diagonal of the octahedron that is left
        ring = [middle[frozenset(pair)] for pair in ((1, 2), (0, 2), (0, 3), (1, 3))]
        found += [[*ends, a, b] for a, b in zip(ring, (*ring[1:], ring[0]), strict=True)]
        places = self.nodes[np.array(found)][:, :, 1:]
        for corners, (a, b, c, d) in zip(found, places, strict=True):
            if np.linalg.det([b - a, c - a, d - a]) < 0.0:
                corners[2:] = corners[3], corners[2]
        return np.array(found)


def _arranged(*numbers: float) -> list[tuple[float, ...]]:
    """All places whose coordinates are these numbers in some order."""
    return sorted(set(itertools.permutations(numbers)))


def _points_of_mass() -> dict[str, Any]:
    """A rule of positive weights that is exact to the fifth degree (Walkington 2000; Keast 1986 has its relatives)."""
    a, b, c = 0.31088591926330060980, 0.09273525031089122640, 0.04550370412564964949
    places = [_arranged(a, a, a, 1.0 - 3.0 * a), _arranged(b, b, b, 1.0 - 3.0 * b), _arranged(c, c, 0.5 - c, 0.5 - c)]
    weights = (0.11268792571801585080, 0.07349304311636194934, 0.04254602077708146686)
    each = [weight for weight, group in zip(weights, places, strict=True) for _ in group]
    return {"mass_points": np.array([place for group in places for place in group]), "mass_weights": np.array(each)}


_NEAR, _FAR = (5.0 + 3.0 * 5.0**0.5) / 20.0, (5.0 - 5.0**0.5) / 20.0
FOUR_POINTS = np.array(_arranged(_NEAR, _FAR, _FAR, _FAR))  # exact to the second degree
ELEMENT_KINDS = {
    # Drake's, with one point for all
    "linear": ElementKind("linear", (), CENTROID, np.ones(1), CENTROID, CENTROID, np.ones(1), 16.0),
    "quadratic": ElementKind(
        name="quadratic",
        edges=ENDS_OF_EDGES,
        points=np.concatenate([FOUR_POINTS, CENTROID]),
        shares_of_volume=np.array([0.25, 0.25, 0.25, 0.25, 1.0]),
        load_points=FOUR_POINTS,
        **_points_of_mass(),
        mass_unit=420.0,
    ),
}


def between_corners(
    kind: ElementKind, num_corners: int, tetrahedra: Int[np.ndarray, "m 4"]
) -> tuple[Int[np.ndarray, "n 2"], Int[np.ndarray, "m k"]]:
    """The corners between which each node of a mesh is, and the nodes of each element.

    A corner is between itself and itself. Corners come first, then one node in the middle of each edge.
    """
    corners = np.repeat(np.arange(num_corners)[:, None], 2, axis=1)
    if not kind.edges:
        return corners, tetrahedra
    edges = np.sort(tetrahedra[:, np.array(kind.edges)], axis=2).reshape(-1, 2)
    ends, place = np.unique(edges, axis=0, return_inverse=True)
    middles = num_corners + place.reshape(len(tetrahedra), len(kind.edges))
    return np.concatenate([corners, ends]), np.concatenate([tetrahedra, middles], axis=1)
