"""What a deformable body may touch: collision geometries, and other deformable bodies."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool

from mbjax.geometry import Mesh
from mbjax.geometry.hydroelastic import most_elements_at_planes, usual_number_of_faces
from mbjax.model import IGNORED, BodyContactPair, ContactLayout, NodeContactPair, ReportEntry
from mbjax.model.deformable_bodies import boundary_triangles, depth_mesh_of, usual_number_of_nodes
from mbjax.model.hydroelastic_meshes import topology_of_record

from .declarations import RegisteredCollision
from .deformables import DeclaredDeformable, PlantDeformables
from .queries import PlantQueries

NodePair = tuple[DeclaredDeformable, int]  # the place of a collision geometry on the plant
BodyPair = tuple[DeclaredDeformable, DeclaredDeformable]
NODES_OF_CUT = 1.25  # nodes that may touch, for each of the elements that are reached
FACES_OF_CUT = 2.0  # polygons for each element that is reached; flush blocks of the same mesh have up to 1.6


class DeformablePairs(NamedTuple):
    """What deformable bodies may touch: collision geometries, and each other; and geometries that have no field."""

    with_geometries: list[NodePair]
    between_bodies: list[BodyPair]
    passing: list[NodePair]  # through geometries that they would touch, had these a pressure field


class SoftContacts(NamedTuple):
    """What the model knows of the pairs of deformable bodies with collision geometries, and with each other."""

    with_geometries: list[NodeContactPair]
    between_bodies: list[BodyContactPair]


def pairs_with_deformables(plant: PlantQueries) -> DeformablePairs:
    """The deformable bodies that may touch each other, and those that may touch collision geometries, by their places.

    These are all geometries with a pressure field, but for those of a body to which the deformable one is fixed.
    """
    found = DeformablePairs([], [], [])
    if not isinstance(plant, PlantDeformables) or plant.contact_settings.contact_model == "none":
        return found
    for i, A in enumerate(plant.deformables):
        fixed_to = {id(x.body) for x in plant.fixed_nodes if x.deformable is A}
        for place, B in enumerate(plant.collisions):
            if id(B.body) not in fixed_to and not are_excluded(plant, A, (B.body, B.geometry)):
                (found.with_geometries if why_no_field(B) is None else found.passing).append((A, place))
        found.between_bodies.extend((A, B) for B in plant.deformables[i + 1 :] if not are_excluded(plant, A, (B,)))
    return found


def why_no_field(B: RegisteredCollision) -> str | None:
    """Why a collision geometry has no pressure field that deformable bodies touch; None where it has one."""
    properties = B.properties.hydroelastic
    if properties is None:
        return "has no hydroelastic properties"
    if properties.compliance == "rigid":
        return "is rigid in hydroelastic contact"
    return "is a compliant Mesh" if isinstance(B.geometry.shape, Mesh) else None


def are_excluded(plant: PlantQueries, A: DeclaredDeformable, others: Iterable[Any]) -> bool:
    """Whether `exclude_collisions_between` was told of a deformable body and one of the others."""
    of_B = {id(other) for other in others}
    for exclusion in plant.collision_exclusions:
        sides = [{id(x) for x in group} for group in (exclusion.group_A, exclusion.group_B)]
        if any(id(A) in one and of_B & other for one, other in (sides, sides[::-1])):
            return True
    return False


def node_contacts(plant: PlantQueries, layout: ContactLayout, pairs: Iterable[NodePair]) -> list[NodeContactPair]:
    """The pairs as the model knows them, with a bound on the polygons of each."""
    places = {(record.body, record.name): place for place, record in enumerate(layout.geometries)}
    found = []
    for A, i in pairs:
        B = plant.collisions[i]
        place = places[B.body.index, B.geometry.name]
        topology = topology_of_record(layout.geometries[place], B.geometry.shape)
        triangles = boundary_triangles(A.mesh[1], A.kind)[0]
        max_faces = usual_number_of_faces(topology, len(triangles))
        max_nodes = usual_number_of_nodes(A.nodes, triangles)
        if layout.max_faces is not None:
            max_faces, max_nodes = layout.max_faces, max(max_nodes, layout.max_faces)
        found.append(NodeContactPair(A.index, place, max_faces, max_nodes))
    return found


def contacts_between_bodies(layout: ContactLayout, pairs: Sequence[BodyPair]) -> list[BodyContactPair]:
    """The pairs of deformable bodies as the model knows them, with a bound on the polygons of each."""
    reached = {body.index: reached_by_planes(body) for body in {id(x): x for pair in pairs for x in pair}.values()}
    found = []
    for A, B in pairs:
        of_A, of_B = reached[A.index], reached[B.index]
        max_faces, nodes = math.ceil(FACES_OF_CUT * (of_A.elements + of_B.elements)), [of_A.nodes, of_B.nodes]
        if layout.max_faces is not None:
            max_faces, nodes = layout.max_faces, [max(number, layout.max_faces) for number in nodes]
        found.append(BodyContactPair(A.index, B.index, max_faces, *nodes))
    return found


class Reached(NamedTuple):
    """How many elements and nodes of a body usual contact with another one reaches."""

    elements: int
    nodes: int


def reached_by_planes(body: DeclaredDeformable) -> Reached:
    """The most elements that a plane cuts, down to a usual depth, and the nodes of those, and a quarter more."""
    mesh = depth_mesh_of(body.mesh[1], body.kind)
    vertices = np.concatenate([body.nodes, np.einsum("kc,kci->ki", mesh.weights, body.nodes[mesh.parents])])

    def number_of_nodes(is_reached: Bool[np.ndarray, " m"]) -> int:
        return len(np.unique(mesh.elements[mesh.owners[is_reached]]))

    elements, nodes = (
        most_elements_at_planes(vertices, mesh.tetrahedra, False, count)
        for count in (np.count_nonzero, number_of_nodes)
    )
    return Reached(elements, min(math.ceil(NODES_OF_CUT * nodes), len(body.nodes)))


def entries_of_deformables(plant: PlantQueries, passing: Sequence[NodePair]) -> list[ReportEntry]:
    """Report entries on shapes that deformable bodies pass through, and on contact properties without effect."""
    entries = []
    if not isinstance(plant, PlantDeformables):
        return entries
    for A in plant.deformables:
        lacking = [plant.collisions[place] for other, place in passing if other is A]
        if lacking:
            names = ", ".join(f"'{B.name}' ({why_no_field(B)})" for B in lacking)
            message = (
                f"passes through shapes without a pressure field: {names}. Give them compliant hydroelastic properties"
            )
            entries.append(ReportEntry(IGNORED, f"contact of deformable body '{A.name}'", message))
        entries += [
            ReportEntry(IGNORED, f"contact properties of deformable body '{A.name}'", message)
            for message in properties_without_effect(A)
        ]
    return entries


def properties_without_effect(body: DeclaredDeformable) -> list[str]:
    """What a deformable body's contact properties say beyond dynamic friction and dissipation, which alone are used."""
    given, found = body.properties, []
    names = ["point_stiffness"] * (given.point_stiffness is not None) + ["hydroelastic properties"] * (
        given.hydroelastic is not None
    )
    if names:
        found.append(
            f"{' and '.join(names)} have no effect: how stiff contact is follows from the pressure field of what the "
            "body touches, and from its material"
        )
    static, dynamic = given.friction
    if static != dynamic:
        found.append(f"a static friction of {static:g} has no effect: steps take the dynamic one, {dynamic:g}")
    return found
