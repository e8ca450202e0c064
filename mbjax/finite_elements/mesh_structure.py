"""What is static of the meshes of all deformable bodies: nodes of elements, laws of elements, layers of nodes."""

import dataclasses
import functools

import numpy as np
from jaxtyping import Bool, Float, Int

from mbjax.execution import HashedOnce

from .layers import find_layers, side_by_side
from .material_laws import AT_REST


@dataclasses.dataclass(frozen=True)
class MeshStructure(HashedOnce):
    """Tetrahedra of all bodies, one body after another; nodes are numbered through.

    Each node has a layer and a slot there, in which the matrices of a step are ordered. A node that is `held` does not
    move.
    """

    tetrahedra: tuple[tuple[int, int, int, int], ...]
    nodes_of_bodies: tuple[int, ...]  # how many
    elements_of_bodies: tuple[int, ...]
    laws_of_bodies: tuple[str, ...]
    layer: tuple[int, ...]
    slot: tuple[int, ...]
    num_layers: int
    layer_size: int
    held: tuple[bool, ...]

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
        """The nodes of each element."""
        return np.array(self.tetrahedra, np.int32).reshape(-1, 4)

    @functools.cached_property
    def body_of_node(self) -> Int[np.ndarray, " n"]:
        return np.repeat(np.arange(self.num_bodies, dtype=np.int32), self.nodes_of_bodies)

    @functools.cached_property
    def body_of_element(self) -> Int[np.ndarray, " m"]:
        return np.repeat(np.arange(self.num_bodies, dtype=np.int32), self.elements_of_bodies)

    @functools.cached_property
    def law_runs(self) -> tuple[tuple[str, int], ...]:
        """Laws and numbers of elements, of runs of bodies with the same law."""
        runs: list[tuple[str, int]] = []
        for law, count in zip(self.laws_of_bodies, self.elements_of_bodies, strict=True):
            if runs and runs[-1][0] == law:
                runs[-1] = law, runs[-1][1] + count
            else:
                runs.append((law, count))
        return tuple(runs)

    @functools.cached_property
    def is_held(self) -> Bool[np.ndarray, " n"]:
        return np.array(self.held, bool)

    def at_rest(self, held: Bool[np.ndarray, " n"]) -> "MeshStructure":
        """The structure with the laws that bodies have at rest, and with these nodes held."""
        laws = tuple(AT_REST.get(law, law) for law in self.laws_of_bodies)
        return dataclasses.replace(self, laws_of_bodies=laws, held=tuple(bool(x) for x in held))

    def nodes(self, body: int) -> slice:
        """The nodes of a body."""
        first = sum(self.nodes_of_bodies[:body])
        return slice(first, first + self.nodes_of_bodies[body])

    def elements_of(self, body: int) -> slice:
        """The elements of a body."""
        first = sum(self.elements_of_bodies[:body])
        return slice(first, first + self.elements_of_bodies[body])


def mesh_structure(
    bodies: list[tuple[Float[np.ndarray, "n 3"], Int[np.ndarray, "m 4"], str, Bool[np.ndarray, " n"]]],
) -> MeshStructure:
    """The structure of bodies given by points, tetrahedra, the name of the law, and which nodes are held."""
    layers = side_by_side([find_layers(points, tetrahedra) for points, tetrahedra, _, _ in bodies])
    firsts = np.cumsum([0, *(len(points) for points, *_ in bodies)])
    tetrahedra = np.concatenate([tets + first for (_, tets, *_), first in zip(bodies, firsts[:-1], strict=True)])
    return MeshStructure(
        tetrahedra=tuple(tuple(int(x) for x in row) for row in tetrahedra),  # pyright: ignore[reportArgumentType]
        nodes_of_bodies=tuple(len(points) for points, *_ in bodies),
        elements_of_bodies=tuple(len(tets) for _, tets, *_ in bodies),
        laws_of_bodies=tuple(law for *_, law, _ in bodies),
        layer=tuple(int(x) for x in layers.layer),
        slot=tuple(int(x) for x in layers.slot),
        num_layers=layers.num_layers,
        layer_size=layers.size,
        held=tuple(bool(x) for *_, held in bodies for x in held),
    )
