"""What is static of the meshes of all deformable bodies: nodes of elements, laws of elements, layers of nodes."""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from mbjax.execution import HashedOnce

from .element_kinds import ELEMENT_KINDS, ElementKind, between_corners
from .layers import find_layers, side_by_side
from .material_laws import AT_REST


@dataclasses.dataclass(frozen=True, eq=False)
class ElementGroup:
    """All elements of one kind: their nodes, their places among all elements, and runs of elements with one law."""

    kind: ElementKind
    nodes: Int[np.ndarray, "m k"]
    places: Int[np.ndarray, " m"]
    law_runs: tuple[tuple[str, int], ...]
    has_all: bool  # elements of the mesh

    def of(self, values: Any) -> Any:
        """The part of arrays with all elements first."""
        return values if self.has_all else jax.tree.map(lambda x: x[self.places], values)


@dataclasses.dataclass(frozen=True)
class MeshStructure(HashedOnce):
    """Tetrahedra of all bodies, one body after another; nodes are numbered through, a body's corners before the others.

    Each node has a layer and a slot there, in which the matrices of a step are ordered. A node that is `held` does not
    move.
    """

    tetrahedra: tuple[tuple[int, int, int, int], ...]  # corners
    nodes_of_bodies: tuple[int, ...]  # how many
    elements_of_bodies: tuple[int, ...]
    laws_of_bodies: tuple[str, ...]
    layer: tuple[int, ...]
    slot: tuple[int, ...]
    num_layers: int
    layer_size: int
    held: tuple[bool, ...]
    kinds_of_bodies: tuple[str, ...]
    corners_of_bodies: tuple[int, ...]  # how many

    __hash__ = HashedOnce.__hash__

    @property
    def num_nodes(self) -> int:
        return len(self.layer)

    @property
    def num_elements(self) -> int:
        return len(self.tetrahedra)

    @property
    def num_bodies(self) -> int:
        return len(self.nodes_of_bodies)

    @functools.cached_property
    def elements(self) -> Int[np.ndarray, "m 4"]:
        """The corners of each element, among the nodes."""
        return np.array(self.tetrahedra, np.int32).reshape(-1, 4)

    @functools.cached_property
    def body_of_node(self) -> Int[np.ndarray, " n"]:
        return np.repeat(np.arange(self.num_bodies, dtype=np.int32), self.nodes_of_bodies)

    @functools.cached_property
    def body_of_element(self) -> Int[np.ndarray, " m"]:
        return np.repeat(np.arange(self.num_bodies, dtype=np.int32), self.elements_of_bodies)

    @functools.cached_property
    def is_held(self) -> Bool[np.ndarray, " n"]:
        return np.array(self.held, bool)

    @property
    def has_corners_alone(self) -> bool:
        return self.nodes_of_bodies == self.corners_of_bodies

    @functools.cached_property
    def reference_corners(self) -> Int[np.ndarray, "m 4"]:
        """The corners of each element, among those of all bodies without other nodes."""
        if self.has_corners_alone:
            return self.elements
        less = [self.nodes(i).start - self.corners(i).start for i in range(self.num_bodies)]
        return self.elements - np.repeat(np.array(less, np.int32), self.elements_of_bodies)[:, None]

    @functools.cached_property
    def ends(self) -> Int[np.ndarray, "n 2"]:
        """The corners, among those of all bodies, between which each node is at rest."""
        found = [self.of_body(i)[0] + self.corners(i).start for i in range(self.num_bodies)]
        return np.concatenate(found).astype(np.int32)

    def of_body(self, body: int) -> tuple[Int[np.ndarray, "n 2"], Int[np.ndarray, "m k"]]:
        """The corners between which each node of a body is, and the nodes of each element, in the body's numbers."""
        kind = ELEMENT_KINDS[self.kinds_of_bodies[body]]
        tetrahedra = self.elements[self.elements_of(body)] - self.nodes(body).start
        return between_corners(kind, self.corners_of_bodies[body], tetrahedra)

    @functools.cached_property
    def groups(self) -> tuple[ElementGroup, ...]:
        """The elements by kind; of a kind, one body follows another."""
        found = []
        for name, kind in ELEMENT_KINDS.items():
            bodies = [i for i, of_body in enumerate(self.kinds_of_bodies) if of_body == name]
            if not bodies:
                continue
            nodes = np.concatenate([self.of_body(i)[1] + self.nodes(i).start for i in bodies]).astype(np.int32)
            slices = [self.elements_of(i) for i in bodies]
            places = np.concatenate([np.arange(x.start, x.stop, dtype=np.int32) for x in slices])
            laws = [(self.laws_of_bodies[i], self.elements_of_bodies[i]) for i in bodies]
            nodes = self.elements if self.has_corners_alone else nodes  # one constant of a program instead of two
            found.append(ElementGroup(kind, nodes, places, joined_runs(laws), len(bodies) == self.num_bodies))
        return tuple(found)

    def in_order(self, parts: Any) -> Array:
        """Numbers of the elements of each group, in the order of all elements."""
        if len(self.groups) == 1:
            return parts[0]
        order = np.argsort(np.concatenate([group.places for group in self.groups]))
        return jnp.concatenate(parts)[order]

    def at_rest(self, held: Bool[np.ndarray, " n"]) -> "MeshStructure":
        """The structure with the laws that bodies have at rest, and with these nodes held."""
        laws = tuple(AT_REST.get(law, law) for law in self.laws_of_bodies)
        return dataclasses.replace(self, laws_of_bodies=laws, held=tuple(bool(x) for x in held))

    def nodes(self, body: int) -> slice:
        """The nodes of a body."""
        return part_of(self.nodes_of_bodies, body)

    def corners(self, body: int) -> slice:
        """The corners of a body, among those of all bodies without other nodes."""
        return part_of(self.corners_of_bodies, body)

    def elements_of(self, body: int) -> slice:
        """The elements of a body."""
        return part_of(self.elements_of_bodies, body)


def part_of(counts: tuple[int, ...], index: int) -> slice:
    """The places of one of several parts, of which there are so many each."""
    first = sum(counts[:index])
    return slice(first, first + counts[index])


def joined_runs(runs: list[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Runs of elements, with neighbours of the same law joined."""
    found: list[tuple[str, int]] = []
    for law, count in runs:
        if found and found[-1][0] == law:
            found[-1] = law, found[-1][1] + count
        else:
            found.append((law, count))
    return tuple(found)


class MeshOfBody(NamedTuple):
    """Corners and tetrahedra of one body, its law, which of its nodes are held, and the kind of its elements."""

    points: Float[np.ndarray, "c 3"]
    tetrahedra: Int[np.ndarray, "m 4"]
    law: str
    held: Bool[np.ndarray, " n"]
    kind: str = "linear"


def mesh_structure(bodies: list[MeshOfBody]) -> MeshStructure:
    """The structure of the meshes of all bodies."""
    of_bodies = [between_corners(ELEMENT_KINDS[x.kind], len(x.points), x.tetrahedra) for x in bodies]
    places = [x.points[ends].mean(axis=1) for x, (ends, _) in zip(bodies, of_bodies, strict=True)]
    layers = side_by_side([find_layers(p, nodes) for p, (_, nodes) in zip(places, of_bodies, strict=True)])
    firsts = np.cumsum([0, *map(len, places)])
    tetrahedra = np.concatenate([x.tetrahedra + first for x, first in zip(bodies, firsts[:-1], strict=True)])
    return MeshStructure(
        tetrahedra=tuple(tuple(int(x) for x in row) for row in tetrahedra),  # pyright: ignore[reportArgumentType]
        nodes_of_bodies=tuple(map(len, places)),
        elements_of_bodies=tuple(len(x.tetrahedra) for x in bodies),
        laws_of_bodies=tuple(x.law for x in bodies),
        layer=tuple(int(x) for x in layers.layer),
        slot=tuple(int(x) for x in layers.slot),
        num_layers=layers.num_layers,
        layer_size=layers.size,
        held=tuple(bool(held) for x in bodies for held in x.held),
        kinds_of_bodies=tuple(x.kind for x in bodies),
        corners_of_bodies=tuple(len(x.points) for x in bodies),
    )
