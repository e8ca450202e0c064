"""Which collision geometries a deformable body may touch, and what the model knows of such pairs."""

from collections.abc import Iterable

from mbjax.geometry import Mesh
from mbjax.geometry.hydroelastic import usual_number_of_faces
from mbjax.model import IGNORED, ContactLayout, NodeContactPair, ReportEntry
from mbjax.model.deformable_bodies import boundary_triangles, usual_number_of_nodes
from mbjax.model.hydroelastic_meshes import topology_of_record

from .declarations import RegisteredCollision
from .deformables import DeclaredDeformable, PlantDeformables
from .queries import PlantQueries

NodePair = tuple[DeclaredDeformable, int]  # the place of a collision geometry on the plant


def pairs_with_deformables(plant: PlantQueries) -> list[NodePair]:
    """The deformable bodies and collision geometries, by their places, that may touch.

    These are all with a pressure field, but for geometries of a body to which the deformable one is fixed.
    """
    if not isinstance(plant, PlantDeformables) or plant.contact_settings.contact_model == "none":
        return []
    found = []
    for A in plant.deformables:
        fixed_to = {id(x.body) for x in plant.fixed_nodes if x.deformable is A}
        for place, B in enumerate(plant.collisions):
            if why_no_field(B) is None and id(B.body) not in fixed_to and not are_excluded(plant, A, B):
                found.append((A, place))
    return found


def why_no_field(B: RegisteredCollision) -> str | None:
    """Why a collision geometry has no pressure field that deformable bodies touch; None where it has one."""
    properties = B.properties.hydroelastic
    if properties is None:
        return "has no hydroelastic properties"
    if properties.compliance == "rigid":
        return "is rigid in hydroelastic contact"
    return "is a compliant Mesh" if isinstance(B.geometry.shape, Mesh) else None


def are_excluded(plant: PlantQueries, A: DeclaredDeformable, B: RegisteredCollision) -> bool:
    """Whether `exclude_collisions_between` was told of a deformable body and a geometry or its body."""
    of_B = {id(B.body), id(B.geometry)}
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


def entries_of_deformables(plant: PlantQueries) -> list[ReportEntry]:
    """Report entries on shapes that deformable bodies pass through."""
    entries = []
    if not isinstance(plant, PlantDeformables):
        return entries
    for A in plant.deformables:
        fixed_to = {id(x.body) for x in plant.fixed_nodes if x.deformable is A}
        lacking = [B for B in plant.collisions if why_no_field(B) is not None and id(B.body) not in fixed_to]
        if lacking:
            names = ", ".join(f"'{B.name}' ({why_no_field(B)})" for B in lacking)
            message = (
                f"passes through shapes without a pressure field: {names}. Give them compliant hydroelastic properties"
            )
            entries.append(ReportEntry(IGNORED, f"contact of deformable body '{A.name}'", message))
    return entries
