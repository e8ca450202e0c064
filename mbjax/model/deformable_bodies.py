"""The deformable bodies of a model: meshes and names, which are static, and their numbers, which are leaves."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.execution import HashedOnce
from mbjax.finite_elements import (
    ELEMENT_KINDS,
    OUTWARD_FACES,
    DepthMesh,
    LameConstants,
    MeshStructure,
    calc_reference_elements,
    calc_rest_positions,
    depth_mesh,
    lame_constants,
)

from .lookup import find_index

FACES_ONE_WAY = 0.8  # cosine of the angle between normals of one side
DEPTH_MESHES_KEPT = 16  # of different bodies
MATERIAL_NUMBERS = ("youngs_modulus", "poissons_ratio", "mass_density", "mass_damping", "stiffness_damping")


@dataclasses.dataclass(frozen=True)
class DeformableBodyInfo:
    """A deformable body's name, model instance and index; `has_gravity` as its instance had at finalize."""

    name: str
    model_instance: int
    scoped_name: str
    index: int
    law: str
    has_gravity: bool = True
    source: str | None = None
    walls: tuple[tuple[tuple[float, float, float], tuple[float, float, float]], ...] = ()  # p_WQ and n_W of each
    dissipation_index: int = -1  # place of its Hunt–Crossley dissipation; -1: the default of the plant


@dataclasses.dataclass(frozen=True)
class FixedNodes:
    """Nodes of a deformable body that keep their places in a rigid body; `nodes` are numbered through all bodies."""

    deformable: int
    body: int
    nodes: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class NodeContactPair:
    """A deformable body and a collision geometry, by its place in the layout of contact, that may touch."""

    deformable: int
    geometry: int
    max_faces: int  # slots for the polygons in which the two may touch
    max_nodes: int  # slots for the nodes of these polygons in a step's problem


@dataclasses.dataclass(frozen=True)
class BodyContactPair:
    """Two deformable bodies that may touch."""

    deformable_A: int
    deformable_B: int
    max_faces: int  # slots for the polygons in which the two may touch
    max_nodes_A: int  # slots for the nodes of A of these polygons in a step's problem, and for those of B
    max_nodes_B: int


@dataclasses.dataclass(frozen=True)
class DeformableLayout(HashedOnce):
    """What is static of all deformable bodies; `material_counts` has how many numbers a body has, of each kind."""

    bodies: tuple[DeformableBodyInfo, ...]
    mesh: MeshStructure
    material_counts: tuple[tuple[int, ...], ...]  # by `MATERIAL_NUMBERS`, then body
    fixed: tuple[FixedNodes, ...] = ()
    contacts: tuple[NodeContactPair, ...] = ()
    body_contacts: tuple[BodyContactPair, ...] = ()

    __hash__ = HashedOnce.__hash__

    def numbers_of(self, what: str, body: int) -> slice:
        """The places of a body's material numbers of one kind."""
        counts = self.material_counts[MATERIAL_NUMBERS.index(what)]
        return slice(sum(counts[:body]), sum(counts[: body + 1]))

    def numbers_of_elements(self, what: str) -> Int[np.ndarray, " m"]:
        """The place of each element's material number of one kind."""
        parts = []
        for body, count in enumerate(self.mesh.elements_of_bodies):
            at = np.arange(self.numbers_of(what, body).start, self.numbers_of(what, body).stop, dtype=np.int32)
            parts.append(np.broadcast_to(at, (count,)))
        return np.concatenate(parts)

    @property
    def fixed_nodes(self) -> tuple[int, ...]:
        """The nodes that are fixed to bodies, of one constraint after another."""
        return tuple(node for fixed in self.fixed for node in fixed.nodes)

    @functools.cached_property
    def num_slots(self) -> int:
        """How many nodes a step's convex problem has: those fixed to bodies, and as many as may touch.

        A body touches two others at a time with as many nodes as either pair may have.
        """
        total = len(self.fixed_nodes)
        for body in range(len(self.bodies)):
            of_pairs = [pair.max_nodes for pair in self.contacts if pair.deformable == body]
            of_pairs += [pair.max_nodes_A for pair in self.body_contacts if pair.deformable_A == body]
            of_pairs += [pair.max_nodes_B for pair in self.body_contacts if pair.deformable_B == body]
            total += min(sum(sorted(of_pairs)[-2:]), self.most_nodes_that_touch(body))
        return total

    def most_nodes_that_touch(self, body: int) -> int:
        """How many nodes of a body may touch anything at all: those of its surface, or all for another such body."""
        if any(body in (pair.deformable_A, pair.deformable_B) for pair in self.body_contacts):
            return self.mesh.nodes_of_bodies[body]
        return len(np.unique(self.triangles[body]))

    @property
    def all_pairs(self) -> tuple[NodeContactPair | BodyContactPair, ...]:
        """All pairs that may touch, in the order of their slots."""
        return (*self.contacts, *self.body_contacts)

    @functools.cached_property
    def depth_meshes(self) -> dict[int, DepthMesh]:
        """Meshes of the bodies that may touch other deformable bodies, in numbers of their own nodes and elements."""
        bodies = {i for pair in self.body_contacts for i in (pair.deformable_A, pair.deformable_B)}
        return {i: depth_mesh_of(self.mesh.of_body(i)[1], self.mesh.kinds_of_bodies[i]) for i in sorted(bodies)}

    @property
    def triangles(self) -> tuple[Int[np.ndarray, "f 3"], ...]:
        """Triangles of each body's surface, counterclockwise from outside; nodes are numbered through all bodies."""
        return tuple(triangles for triangles, _ in self._boundaries)

    @property
    def elements_of_triangles(self) -> tuple[Int[np.ndarray, " f"], ...]:
        """The element that each triangle of a body's surface is a face of, among those of all bodies."""
        return tuple(elements for _, elements in self._boundaries)

    @functools.cached_property
    def _boundaries(self) -> tuple[tuple[Int[np.ndarray, "f 3"], Int[np.ndarray, " f"]], ...]:
        found = []
        for body, kind in enumerate(self.mesh.kinds_of_bodies):
            triangles, owners = boundary_triangles(self.mesh.of_body(body)[1], kind)
            found.append((triangles + self.mesh.nodes(body).start, owners + self.mesh.elements_of(body).start))
        return tuple(found)


class PlainFunction(eqx.Module):
    """A function without leaves, as a module."""

    function: Callable = eqx.field(static=True)

    def __call__(self, *args: Any) -> Any:
        return self.function(*args)


class ForceDensity(eqx.Module):
    """A force per volume at points of the world, in N/m³; `function` of p_WQ is differentiated if it is a module."""

    function: Any
    per: str = eqx.field(static=True)  # "reference_volume" or "current_volume"


class DeformableBodies(eqx.Module):
    """Deformable bodies of a model: `layout` is static, everything else differentiable numbers.

    Reference positions are those in the world at rest, of the corners of elements: of the points of each body's mesh.
    Other nodes are in the middles of edges there, and so move with them. Of each kind of material number, a body has
    one, or one for each of its elements; one body follows another, in the order of `names`.
    """

    layout: DeformableLayout = eqx.field(static=True)
    reference_positions: Float[Array, "c 3"]  # in the world, m
    youngs_modulus: Float[Array, " k_E"]  # Pa
    poissons_ratio: Float[Array, " k_nu"]
    mass_density: Float[Array, " k_rho"]  # kg/m³
    mass_damping: Float[Array, " k_alpha"]  # 1/s
    stiffness_damping: Float[Array, " k_beta"]  # s
    anchors: tuple[Float[Array, "k 3"], ...]  # of fixed nodes in their rigid body, p_BQ, m
    enabled: Float[Array, " bodies"]  # 0 where a body stays as it is, else 1
    dynamic_friction: Float[Array, " bodies"]
    relaxation_time: Float[Array, " bodies"]  # s, of contact in the SAP approximation
    hunt_crossley_dissipation: Float[Array, " k_d"]  # s/m, of contact, where it was given
    force_densities: tuple[ForceDensity, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(body.name for body in self.layout.bodies)

    @property
    def num_bodies(self) -> int:
        return len(self.layout.bodies)

    @property
    def mesh(self) -> MeshStructure:
        return self.layout.mesh

    def index(self, body: str | int, call: str = "") -> int:
        """Index of a deformable body, by name or index."""
        instances = [x.scoped_name.removesuffix(f"::{x.name}") for x in self.layout.bodies]
        names = {x.model_instance: name for x, name in zip(self.layout.bodies, instances, strict=True)}
        known = [names.get(k, "") for k in range(max(names, default=-1) + 1)]
        return find_index("deformable body", body, self.layout.bodies, known, call=call)

    def nodes(self, body: str | int) -> slice:
        """The body's nodes among those of all bodies; the points of its mesh come first, then middles of edges."""
        return self.mesh.nodes(self.index(body))

    def corners(self, body: str | int) -> slice:
        """The body's corners among the reference positions of all bodies."""
        return self.mesh.corners(self.index(body))

    def rest_positions(self) -> Float[Array, "n 3"]:
        """Positions of all nodes at rest, in the world, in m."""
        return calc_rest_positions(self.mesh, self.reference_positions)

    def positions(self, state: Any, body: str | int) -> Float[Array, "*batch k 3"]:
        """Positions of the body's nodes in the world, in m."""
        return state.nodes.position[..., self.nodes(body), :]

    def velocities(self, state: Any, body: str | int) -> Float[Array, "*batch k 3"]:
        """Velocities of the body's nodes in the world, in m/s."""
        return state.nodes.velocity[..., self.nodes(body), :]

    def configuration(self, state: Any) -> dict[str, Float[Array, "*batch k 3"]]:
        """Positions of the nodes of every body, by name: Drake's deformable body configuration port."""
        return {body.scoped_name: self.positions(state, body.index) for body in self.layout.bodies}

    def tetrahedra(self, body: str | int) -> Int[np.ndarray, "m 4"]:
        """Corners of the body's elements, in numbers of its own nodes."""
        index = self.index(body)
        return self.mesh.elements[self.mesh.elements_of(index)] - self.mesh.nodes(index).start

    def triangles(self, body: str | int) -> Int[np.ndarray, "f 3"]:
        """Triangles of the body's surface, counterclockwise from outside, in numbers of its own nodes."""
        index = self.index(body)
        return self.layout.triangles[index] - self.mesh.nodes(index).start

    def by_element(self, what: str) -> Float[Array, " m"]:
        """A material number of each element of all bodies."""
        return getattr(self, what)[self.layout.numbers_of_elements(what)]

    def material(self, body: str | int) -> dict[str, Float[Array, " k"]]:
        """The body's material numbers, by kind: one, or one for each element."""
        index = self.index(body)
        return {what: getattr(self, what)[self.layout.numbers_of(what, index)] for what in MATERIAL_NUMBERS}

    def lame_constants(self) -> LameConstants:
        """Lamé's constants of each element."""
        return lame_constants(self.by_element("youngs_modulus"), self.by_element("poissons_ratio"))

    def element_masses(self) -> Float[Array, " m"]:
        """Mass of each element, in kg."""
        return self.by_element("mass_density") * calc_reference_elements(self.mesh, self.reference_positions).volume

    def mass(self, body: str | int) -> Float[Array, ""]:
        """The body's mass, in kg."""
        return jnp.sum(self.element_masses()[self.mesh.elements_of(self.index(body))])


def usual_number_of_nodes(points: Float[np.ndarray, "n 3"], triangles: Int[np.ndarray, "f 3"]) -> int:
    """A bound on the nodes of a surface that contact of usual depth does not reach.

    These are the nodes of the largest side that faces one way, of the triangles around it, and a quarter more; at least
    a third of all.
    """
    a, b, c = (points[triangles[:, i]] for i in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
    largest, on_surface = 0, len(np.unique(triangles))
    for direction in np.unique(np.round(normals, 1), axis=0):
        side = np.unique(triangles[normals @ direction > FACES_ONE_WAY * np.linalg.norm(direction)])
        around = triangles[np.isin(triangles, side).any(axis=1)]
        largest = max(largest, len(np.unique(around)))
    return min(on_surface, max(-(-5 * largest // 4), -(-on_surface // 3)))


def depth_mesh_of(elements: Int[np.ndarray, "m k"], kind: str = "linear") -> DepthMesh:
    """The mesh on which a body of these elements has a depth; those with more nodes than corners are split for it."""
    numbers = np.ascontiguousarray(elements, np.int64)
    return _depth_mesh_of(numbers.tobytes(), numbers.shape, kind)


@functools.lru_cache(maxsize=DEPTH_MESHES_KEPT)
def _depth_mesh_of(numbers: bytes, shape: tuple[int, int], kind: str) -> DepthMesh:
    """The mesh of elements by the bytes of their nodes: finalize needs it, and then the model, which has no plant."""
    elements = np.frombuffer(numbers, np.int64).reshape(shape)
    parts = elements[:, ELEMENT_KINDS[kind].tetrahedra].reshape(-1, 4)
    return depth_mesh(parts, boundary_triangles(elements, kind)[0], int(elements.max()) + 1)


def boundary_triangles(
    elements: Int[np.ndarray, "m k"], kind: str = "linear"
) -> tuple[Int[np.ndarray, "f 3"], Int[np.ndarray, " f"]]:
    """Triangles of faces that belong to one element alone, counterclockwise from outside, and these elements."""
    of_faces = ELEMENT_KINDS[kind].triangles
    _, per_face, _ = of_faces.shape
    corners = np.concatenate([elements[:, list(face)] for face in OUTWARD_FACES])
    triangles = np.concatenate([elements[:, face] for face in of_faces])
    if not len(corners):
        return corners, np.zeros(0, int)
    _, inverse, counts = np.unique(np.sort(corners, axis=1), axis=0, return_inverse=True, return_counts=True)
    is_outside = counts[inverse.reshape(-1)] == 1
    owners = np.flatnonzero(is_outside) % len(elements)
    return triangles[is_outside].reshape(-1, 3), np.repeat(owners, per_face)
