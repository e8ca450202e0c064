"""Methods of the plant for deformable bodies, and what `finalize` makes of them."""

import abc
import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float, Int

from mbjax.errors import ModelError
from mbjax.finite_elements import ELEMENT_KINDS, MeshOfBody, between_corners, find_massless_element, mesh_structure
from mbjax.geometry import ProximityProperties, as_proximity_properties, as_tetrahedral_mesh, is_inside
from mbjax.geometry.proximity_properties import DEFAULT_RELAXATION_TIME
from mbjax.model import (
    Body,
    BodyContactPair,
    DeformableBodies,
    DeformableBodyInfo,
    DeformableLayout,
    DeformableMaterial,
    FixedNodes,
    ForceDensity,
    NodeContactPair,
    PlainFunction,
)
from mbjax.model.deformable_bodies import MATERIAL_NUMBERS
from mbjax.model.lookup import find_index, find_model_instance, scoped_name
from mbjax.model.parameters import leaf_of
from mbjax.model.poses import as_rigid_transform
from mbjax.number_rules import DIRECTION, FINITE, known_numbers, shown
from mbjax.spatial import RigidTransform

from .queries import PlantQueries

Wall = tuple[tuple[float, float, float], tuple[float, float, float]]
VOLUMES = "reference_volume", "current_volume"


@dataclasses.dataclass(frozen=True, eq=False)
class DeclaredDeformable:
    """A deformable body on a plant; `points` of its mesh are in the world, at rest."""

    name: str
    index: int
    model_instance: int
    points: Float[np.ndarray, "n 3"]
    tetrahedra: Int[np.ndarray, "m 4"]
    material: DeformableMaterial
    pose: RigidTransform
    held: Bool[np.ndarray, " n"]
    properties: ProximityProperties
    source: str | None = None
    kind: str = "linear"
    walls: list[Wall] = dataclasses.field(default_factory=list)  # p_WQ and n_W of each

    @functools.cached_property
    def mesh(self) -> tuple[Int[np.ndarray, "n 2"], Int[np.ndarray, "m k"]]:
        """The points between which each node is, and the nodes of each element."""
        return between_corners(ELEMENT_KINDS[self.kind], len(self.points), self.tetrahedra)

    @functools.cached_property
    def nodes(self) -> Float[np.ndarray, "n 3"]:
        """All nodes: the points, then the middles of edges where the elements have nodes there."""
        return self.points[self.mesh[0]].mean(axis=1)


@dataclasses.dataclass(frozen=True, eq=False)
class DeclaredFixedNodes:
    """Nodes of a deformable body that keep their places p_BQ in a rigid body."""

    deformable: DeclaredDeformable
    body: Body
    nodes: tuple[int, ...]
    anchors: Float[np.ndarray, "k 3"]


class PlantDeformables(PlantQueries):
    """Methods that add deformable bodies and hold them."""

    deformables: list[DeclaredDeformable]
    fixed_nodes: list[DeclaredFixedNodes]
    force_densities: list[ForceDensity]

    def add_deformable_body(
        self,
        name: str,
        mesh: Any,
        material: DeformableMaterial | None = None,
        *,
        pose: Any = None,
        properties: Any = None,
        resolution_hint: float | None = None,
        model_instance: int | str = 1,
        source: str | None = None,
        elements: str = "linear",
    ) -> DeclaredDeformable:
        """Adds a deformable body, whose mesh is at `pose` X_WD in the world when it is at rest.

        `mesh` is a pair (points (n, 3) in m, tetrahedra (m, 4) of nodes), a `TetrahedralMesh`, the path of a file, or a
        shape that is filled with tetrahedra whose edges are about `resolution_hint` in m. The corners of a tetrahedron
        are ordered such that its volume is positive. `properties` are friction and dissipation of its contact with
        collision geometries that have a pressure field, which are those with compliant hydroelastic properties;
        `ProximityProperties`, or a coefficient of friction. The plant must be discrete.

        `elements="quadratic"` puts a node in the middle of each edge too, which takes the stiffness out of bending that
        linear elements have where a body is few of them thick. Linear ones have mass at their centroids alone:
        `finalize` refuses meshes with motions that nothing resists, as of a tetrahedron by itself that no wall holds.
        """
        call = f"add_deformable_body({name!r})"
        self._require_building("add_deformable_body")
        if not isinstance(name, str) or not name:
            raise ModelError(f"add_deformable_body: the name must be a non-empty string, got {name!r}.")
        if not self.time_step > 0.0:
            raise ModelError(
                f"{call}: deformable bodies need a discrete plant. Make it with MultibodyPlant(time_step=0.005), in s."
            )
        instance = find_model_instance(model_instance, self.instance_names, call)
        if any(x.name == name and x.model_instance == instance for x in self.deformables):
            raise ModelError(
                f"{call}: model instance '{self.instance_names[instance]}' has a deformable body of that name already; "
                "choose another."
            )
        material = DeformableMaterial() if material is None else material
        if not isinstance(material, DeformableMaterial):
            raise ModelError(f"{call}: the material must be a mbjax.DeformableMaterial, got {shown(material)}.")
        if not isinstance(elements, str) or elements not in ELEMENT_KINDS:
            raise ModelError(
                f"{call}: elements must be one of {', '.join(map(repr, ELEMENT_KINDS))}, got {shown(elements)}."
            )
        checked = as_tetrahedral_mesh(mesh, resolution_hint, call=call)
        points, tetrahedra = checked.points, checked.tetrahedra
        material.require_elements(call, len(tetrahedra))
        try:
            touching = as_proximity_properties(ProximityProperties() if properties is None else properties)
        except ValueError as error:
            raise ModelError(f"{call}: {error}") from None
        X_WD = as_rigid_transform(f"{call}: pose", RigidTransform.identity() if pose is None else pose)
        placed = points @ np.asarray(X_WD.rotation, float).T + np.asarray(X_WD.translation, float)
        num_nodes = len(between_corners(ELEMENT_KINDS[elements], len(points), tetrahedra)[0])
        declared = DeclaredDeformable(
            name,
            len(self.deformables),
            instance,
            placed,
            tetrahedra,
            material,
            X_WD,
            np.zeros(num_nodes, bool),
            touching,
            source,
            elements,
        )
        self.deformables.append(declared)
        return declared

    def deformable_body(self, body: Any, call: str = "") -> DeclaredDeformable:
        """A declared deformable body, by name or index."""
        if isinstance(body, DeclaredDeformable):
            if any(body is x for x in self.deformables):
                return body
            raise ModelError(f"{call}: the deformable body '{body.name}' belongs to another plant.")
        return self.deformables[find_index("deformable body", body, self.deformables, self.instance_names, call=call)]

    def set_wall_boundary_condition(self, body: Any, p_WQ: Any, n_W: Any) -> None:
        """Holds the nodes of a deformable body that, at rest, are within a wall: behind the plane at p_WQ, normal n_W.

        A node on the plane itself is not held. Walls add up.
        """
        call = f"set_wall_boundary_condition({describe(body)})"
        self._require_building("set_wall_boundary_condition")
        declared = self.deformable_body(body, call)
        point = known_numbers(call, "p_WQ", p_WQ, FINITE, (3,))
        normal = known_numbers(call, "n_W", n_W, DIRECTION, (3,))
        along = normal / np.abs(normal).max()  # whose squares neither underflow nor overflow
        within = (declared.nodes - point) @ (along / np.linalg.norm(along)) < 0.0
        if not within.any():
            raise ModelError(
                f"{call}: no node of '{declared.name}' is behind the wall, and so the wall would hold nothing. The "
                f"nodes are between {low_and_high(declared.nodes)}."
            )
        if (within | declared.held).all():
            raise ModelError(f"{call}: all nodes of '{declared.name}' are behind the wall, and so nothing could move.")
        fixed = [x for x in self.fixed_nodes if x.deformable is declared and within[list(x.nodes)].any()]
        if fixed:
            raise ModelError(
                f"{call}: a node behind the wall is fixed to body '{fixed[0].body.name}' already, and would be held "
                "twice."
            )
        declared.held[within] = True
        declared.walls.append((tuple(point.tolist()), tuple(normal.tolist())))

    def add_fixed_constraint(
        self, deformable: Any, body: Body | str, *, shape: Any, X_BA: Any = None, X_BG: Any = None
    ) -> DeclaredFixedNodes:
        """Fixes to a rigid body B the nodes of a deformable body A that are within a shape.

        The mesh of A is at X_BA in B, and the shape at X_BG: the nodes within it keep their places in B. A node is held
        once. As in Drake, the constraint is near-rigid; B may also be the world, or welded to it.
        """
        call = f"add_fixed_constraint({describe(deformable)}, {describe(body)})"
        self._require_building("add_fixed_constraint")
        A, B = self.deformable_body(deformable, call), self.body(body, call)
        identity = RigidTransform.identity()
        X_BA = as_rigid_transform(f"{call}: X_BA", identity if X_BA is None else X_BA)
        X_BG = as_rigid_transform(f"{call}: X_BG", identity if X_BG is None else X_BG)
        p_AP = (A.nodes - np.asarray(A.pose.translation, float)) @ np.asarray(A.pose.rotation, float)
        p_BP = p_AP @ np.asarray(X_BA.rotation, float).T + np.asarray(X_BA.translation, float)
        p_GP = (p_BP - np.asarray(X_BG.translation, float)) @ np.asarray(X_BG.rotation, float)
        nodes = np.flatnonzero(is_inside(call, shape, p_GP))
        if not len(nodes):
            raise ModelError(
                f"{call}: no node of '{A.name}' is within the shape. In its frame the nodes are between "
                f"{low_and_high(p_GP)}. Change X_BA, X_BG or the shape."
            )
        taken = {n for x in self.fixed_nodes if x.deformable is A for n in x.nodes} | set(np.flatnonzero(A.held))
        twice = [int(n) for n in nodes if n in taken]
        if twice:
            raise ModelError(
                f"{call}: {len(twice)} nodes of '{A.name}' within the shape, node {twice[0]} among them, are held "
                "already by a wall or another constraint. Make the shape smaller."
            )
        declared = DeclaredFixedNodes(A, B, tuple(int(n) for n in nodes), p_BP[nodes])
        self.fixed_nodes.append(declared)
        return declared

    def add_force_density(self, function: Callable, *, per: str = "reference_volume") -> None:
        """Adds a force per volume, in N/m³, at points p_WQ (3,) of the world; it acts on all deformable bodies.

        It is per volume of the mesh at rest or, with `per="current_volume"`, of the mesh as it is. Gravity acts anyway.
        Numbers of an `equinox.Module` are differentiated, those that a plain function closes over are not. Raises
        `ModelError` unless the function returns one array (3,).
        """
        self._require_building("add_force_density")
        if not callable(function):
            raise ModelError(f"add_force_density: expected a function of p_WQ, got {shown(function)}.")
        if not isinstance(per, str) or per not in VOLUMES:
            raise ModelError(
                f"add_force_density: per must be one of {', '.join(map(repr, VOLUMES))}, got {shown(per)}."
            )
        require_force_of_point(function)
        is_module = isinstance(function, eqx.Module)
        self.force_densities.append(ForceDensity(function if is_module else PlainFunction(function), per))

    @abc.abstractmethod
    def _require_building(self, call: str) -> None: ...


def require_force_of_point(function: Callable) -> None:
    """Raises `ModelError` unless a function of a point p_WQ (3,) returns one array (3,)."""
    found = jax.eval_shape(function, jax.ShapeDtypeStruct((3,), jnp.zeros(()).dtype))
    shape = getattr(found, "shape", None)
    if shape == (3,):
        return
    came = f"a {type(found).__name__}" if shape is None else f"an array of shape {shape}"
    name = getattr(function, "__qualname__", type(function).__name__)
    raise ModelError(
        f"add_force_density: the function {name} of p_WQ (3,) returns {came}, where one array of shape (3,) is needed: "
        "the force per volume along x, y and z, in N/m³, such as jnp.array([0.0, 0.0, -1000.0])."
    )


def describe(element: Any) -> str:
    """An element in the text of a call."""
    return repr(getattr(element, "name", element))


def low_and_high(points: Float[np.ndarray, "n 3"]) -> str:
    """The corners of the box around points, as text."""
    low, high = points.min(axis=0), points.max(axis=0)
    return " and ".join("(" + ", ".join(f"{x:.4g}" for x in corner) + ")" for corner in (low, high))


def finalize_deformables(
    plant: PlantDeformables,
    dtype: Any,
    contacts: Sequence[NodeContactPair],
    body_contacts: Sequence[BodyContactPair],
) -> DeformableBodies | None:
    """The deformable bodies of the model, and what they may touch; None without any."""
    declared = plant.deformables
    if not declared:
        if plant.force_densities:
            raise ModelError("add_force_density: the plant has no deformable body that the force could act on.")
        return None
    for body in declared:
        refuse_massless_motions(body)
    given = [x for x in declared if x.properties.hunt_crossley_dissipation is not None]
    meshes = [MeshOfBody(x.points, x.tetrahedra, x.material.model, x.held, x.kind) for x in declared]
    mesh = mesh_structure(meshes)
    infos = tuple(
        DeformableBodyInfo(
            x.name,
            x.model_instance,
            scoped_name(x, plant.instance_names),
            x.index,
            x.material.model,
            plant.gravity_enabled[x.model_instance],
            x.source,
            tuple(x.walls),
            given.index(x) if x in given else -1,
        )
        for x in declared
    )
    fixed = tuple(
        FixedNodes(x.deformable.index, x.body.index, tuple(n + mesh.nodes(x.deformable.index).start for n in x.nodes))
        for x in plant.fixed_nodes
    )
    parts = {what: [np.atleast_1d(getattr(x.material, what)) for x in declared] for what in MATERIAL_NUMBERS}
    counts = tuple(tuple(len(part) for part in of_kind) for of_kind in parts.values())
    numbers = {what: leaf_of(np.concatenate(of_kind), dtype) for what, of_kind in parts.items()}
    return DeformableBodies(
        layout=DeformableLayout(infos, mesh, counts, fixed, tuple(contacts), tuple(body_contacts)),
        reference_positions=leaf_of(np.concatenate([x.points for x in declared]), dtype),
        anchors=tuple(leaf_of(x.anchors, dtype) for x in plant.fixed_nodes),
        enabled=jnp.ones(len(declared), dtype),
        dynamic_friction=leaf_of(np.array([x.properties.friction[1] for x in declared]), dtype),
        relaxation_time=leaf_of(
            np.array(
                [
                    DEFAULT_RELAXATION_TIME if x.properties.relaxation_time is None else x.properties.relaxation_time
                    for x in declared
                ]
            ),
            dtype,
        ),
        hunt_crossley_dissipation=leaf_of(
            np.array([x.properties.hunt_crossley_dissipation for x in given], float), dtype
        ),
        force_densities=tuple(plant.force_densities),
        **numbers,
    )


def refuse_massless_motions(body: DeclaredDeformable) -> None:
    """Raises `ModelError` where elements can move although neither mass nor stiffness takes part in the motion."""
    if len(ELEMENT_KINDS[body.kind].mass_points) > 1:
        return
    element = find_massless_element(body.points, body.tetrahedra, body.held)
    if element is None:
        return
    nodes = ", ".join(map(str, body.tetrahedra[element].tolist()))
    place = "finalize" if body.source is None else body.source
    raise ModelError(
        f"{place}: element {element} (nodes {nodes}) of deformable body '{body.name}', which has "
        f"{len(body.tetrahedra)}, can move without inertia and without strain, so that steps have no solution. A "
        "linear element has its mass at its centroid alone: one by itself, or two with a common face, may turn about "
        "their centroids, and one that hangs on others by a vertex about the line from there to its centroid. Take "
        "elements='quadratic', a finer mesh, or hold nodes by set_wall_boundary_condition. Nodes that are fixed to a "
        "body do not help, for a step first moves a deformable body as if it were free."
    )
