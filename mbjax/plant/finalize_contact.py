"""The part of finalize for contact: pairs of geometries that may touch, and their numbers."""

import warnings
from collections import Counter
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

import numpy as np

from mbjax.errors import ModelError, ModelWarning
from mbjax.geometry import Convex, Mesh, shape_lengths
from mbjax.geometry.hydroelastic import count_open_edges, surface_in_file
from mbjax.geometry.proximity_properties import DEFAULT_RELAXATION_TIME
from mbjax.geometry.signed_distance.pair_table import supported_pairs
from mbjax.model import (
    RECORDED,
    CollisionGeometryRecord,
    CollisionParameters,
    ContactLayout,
    GeometryParameters,
    HydroelasticRecord,
    ReportEntry,
)
from mbjax.model.elements import rotation_quaternion
from mbjax.model.parameters import leaf_of
from mbjax.topology import TreeTopology

from .collision_filters import candidate_pairs
from .contact_settings import (
    default_contact_surface_representation,
    require_that_settings_agree,
    require_that_surfaces_agree,
)
from .declarations import RegisteredCollision
from .deformable_contact import (
    SoftContacts,
    contacts_between_bodies,
    entries_of_deformables,
    node_contacts,
    pairs_with_deformables,
)
from .kept_contact import entries_of_kept, keep_named_pairs
from .queries import PlantQueries
from .surface_pairs import pairs_with_surfaces

MAX_NAMES_LISTED = 6
SUPPORTED = supported_pairs()
KINDS_WITH_NUMBERS = {kind for pair in SUPPORTED for kind in pair}
CALLER_OF_FINALIZE = 6  # stack frames: this, finalize_contact, build_model, finalize, plant.finalize, its caller
RegisteredPair = tuple[RegisteredCollision, RegisteredCollision]


def finalize_contact(
    plant: PlantQueries, topology: TreeTopology, dtype: Any
) -> tuple[ContactLayout, CollisionParameters, tuple[ReportEntry, ...], SoftContacts]:
    """Contact's layout and leaves, report entries on pairs that take no part, and what deformable bodies may touch."""
    settings = plant.contact_settings
    require_that_settings_agree(settings, plant.time_step > 0.0)
    candidates = candidate_pairs(
        plant.collisions,
        topology.body_mobods,
        [joint for joint in plant.joints if joint.model_instance not in plant.instances_that_list_contacts],
        plant.collision_exclusions,
        settings.adjacent_bodies_collision_filters,
    )
    kept, of_nodes = keep_named_pairs(plant, candidates, pairs_with_deformables(plant))
    with_surface = pairs_with_surfaces(settings.contact_model, plant.collisions, kept)
    require_that_surfaces_agree(settings, bool(with_surface))
    pairs, left_out = split_by_support(plant.collisions, kept, with_surface)
    has_contact = settings.contact_model != "none"
    if has_contact:
        refuse_pairs_made_in_code(left_out)
        warn_of_pairs_between_instances(left_out)
    used = {i for pair in pairs for i in pair} if has_contact else set()
    used |= {i for _, i in of_nodes.with_geometries}
    others = [i for i, c in enumerate(plant.collisions) if i not in used and kind(c) in KINDS_WITH_NUMBERS]
    order = [*sorted(used), *others]
    place = {i: k for k, i in enumerate(order)}
    placed = tuple((place[a], place[b]) for a, b in pairs)
    touching, apart = ([plant.collisions[i] for i in part] for part in (order[: len(used)], others))
    layout = ContactLayout(
        geometries=tuple(make_records(touching)),
        pairs=placed if has_contact else (),
        contact_model=settings.contact_model,
        approximation=settings.discrete_contact_approximation,
        max_contacts=settings.max_contacts,
        max_pairs=settings.max_pairs,
        prediction=settings.contact_prediction,
        others=tuple(make_records(apart, may_touch=False)),
        distance_pairs=tuple(p for p, pair in zip(placed, pairs, strict=True) if has_distance(plant.collisions, pair)),
        without_distance=tuple((*kinds, len(members)) for kinds, members in by_kinds(left_out).items()),
        surface_pairs=tuple(i for i, pair in enumerate(pairs) if pair in with_surface),
        surface_representation=settings.contact_surface_representation
        or default_contact_surface_representation(plant.time_step),
        max_faces=settings.max_faces,
    )
    parameters = gather_collision_parameters(plant, touching, apart, dtype)
    if not plant.time_step:
        layout.refuse_rigid_pairs(np.asarray(parameters.stiffness))
    entries = (
        *entries_of_left_out(left_out if has_contact else ()),
        *entries_of_kept(plant, candidates, kept),
        *entries_of_open_meshes(touching, layout.geometries),
        *entries_of_deformables(plant, of_nodes.passing),
    )
    soft = SoftContacts(
        node_contacts(plant, layout, of_nodes.with_geometries), contacts_between_bodies(layout, of_nodes.between_bodies)
    )
    return layout, parameters, entries, soft


def split_by_support(
    collisions: Sequence[RegisteredCollision],
    pairs: Iterable[tuple[int, int]],
    with_surface: Container[tuple[int, int]],
) -> tuple[list[tuple[int, int]], list[RegisteredPair]]:
    """Splits pairs into those that have a contact surface or a signed distance and those that have neither."""
    having: list[tuple[int, int]] = []
    lacking: list[RegisteredPair] = []
    for pair in pairs:
        if pair in with_surface or has_distance(collisions, pair):
            having.append(pair)
        else:
            lacking.append((collisions[pair[0]], collisions[pair[1]]))
    return having, lacking


def has_distance(collisions: Sequence[RegisteredCollision], pair: tuple[int, int]) -> bool:
    """Whether there is a signed distance of two geometries."""
    return tuple(kind(collisions[i]) for i in pair) in SUPPORTED


def kind(collision: RegisteredCollision) -> str:
    """Class name of a collision geometry's shape."""
    return type(collision.geometry.shape).__name__


def refuse_pairs_made_in_code(pairs: Iterable[RegisteredPair]) -> None:
    """Raises `ModelError` for the first unsupported pair of geometries that both come from code, not from a file."""
    for A, B in pairs:
        if A.source is None and B.source is None:
            raise ModelError(
                f"collision geometries '{A.name}' ({kind(A)}) and '{B.name}' ({kind(B)}) may touch, but there is no "
                f"signed distance of these shapes. Use other shapes, or "
                f"exclude_collisions_between('{A.body.name}', '{B.body.name}')."
            )


def warn_of_pairs_between_instances(pairs: Iterable[RegisteredPair]) -> None:
    """Warns once of shapes from files that pass through other instances, for want of a signed distance."""
    found = [(A, B) for A, B in pairs if A.body.model_instance != B.body.model_instance]
    if found:
        names = [f"'{A.name}' ({kind(A)}) and '{B.name}' ({kind(B)})" for A, B in found]
        warnings.warn(
            f"no signed distance of some shapes: they pass through each other: {shortened_names(names)}. "
            "model.report() lists all.",
            ModelWarning,
            stacklevel=CALLER_OF_FINALIZE,
        )


def entries_of_left_out(pairs: Sequence[RegisteredPair]) -> Iterable[ReportEntry]:
    """One report entry for each two kinds of shapes without a signed distance."""
    for (kind_A, kind_B), members in by_kinds(pairs).items():
        names = dict.fromkeys(f"'{c.name}'" for pair in members for c in pair)
        number = "1 pair passes" if len(members) == 1 else f"{len(members)} pairs pass"
        yield ReportEntry(
            RECORDED,
            f"collision of {kind_A} and {kind_B}",
            f"no signed distance of these shapes yet: {number} through each other, of {', '.join(names)}"
            + ("; load with meshes='hull' to let meshes touch with their hulls" if "Mesh" in (kind_A, kind_B) else ""),
            next((str(c.source) for pair in members for c in pair if c.source is not None), ""),
        )


def by_kinds(pairs: Iterable[RegisteredPair]) -> dict[tuple[str, str], list[RegisteredPair]]:
    """Groups pairs by the kinds of their two shapes, whichever comes first."""
    groups: dict[tuple[str, str], list[RegisteredPair]] = {}
    for A, B in pairs:
        first, second = sorted((kind(A), kind(B)))
        groups.setdefault((first, second), []).append((A, B))
    return groups


def shortened_names(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = len(names) - MAX_NAMES_LISTED
    return "; ".join(names[:MAX_NAMES_LISTED]) + (f"; and {more} more" if more > 0 else "")


def make_records(
    collisions: Iterable[RegisteredCollision], may_touch: bool = True
) -> Iterable[CollisionGeometryRecord]:
    """Records of geometries' places in the arrays; those that can touch nothing have no stiffness or dissipation."""
    count: Counter[str] = Counter()

    def take(what: str, number: int) -> int:
        count[what] += number
        return count[what] - number

    for collision in collisions:
        shape, properties = collision.geometry.shape, collision.properties
        num_sizes = len(shape_lengths(shape))
        num_vertices = len(shape.vertices) if isinstance(shape, Convex) else 0
        yield CollisionGeometryRecord(
            name=collision.geometry.name,
            body=collision.body.index,
            kind=kind(collision),
            size_start=take("sizes", num_sizes),
            num_sizes=num_sizes,
            vertex_start=take("vertices", num_vertices),
            num_vertices=num_vertices,
            stiffness_index=-1 if properties.point_stiffness is None or not may_touch else take("stiffness", 1),
            dissipation_index=-1
            if properties.hunt_crossley_dissipation is None or not may_touch
            else take("dissipation", 1),
            hydroelastic=make_hydroelastic_record(collision, take) if may_touch else None,
        )


def make_hydroelastic_record(
    collision: RegisteredCollision, take: Callable[[str, int], int]
) -> HydroelasticRecord | None:
    """What is static of hydroelastic properties; `take` gives the place of a number."""
    properties, shape = collision.properties.hydroelastic, collision.geometry.shape
    if properties is None:
        return None
    place = -1 if properties.modulus is None else take("modulus", 1)
    surface = None
    if isinstance(shape, Mesh):  # rigid, or it would touch nothing
        try:
            surface = surface_in_file(shape, f"collision geometry '{collision.name}': the rigid Mesh")
        except ValueError as error:
            raise ModelError(str(error)) from None
    return HydroelasticRecord(
        properties.compliance, properties.resolution_hint, properties.margin, properties.slab_thickness, place, surface
    )


def entries_of_open_meshes(
    collisions: Sequence[RegisteredCollision], records: Sequence[CollisionGeometryRecord]
) -> Iterable[ReportEntry]:
    """Report entries on surfaces with holes, through which other shapes pass."""
    for collision, record in zip(collisions, records, strict=True):
        surface = None if record.hydroelastic is None else record.hydroelastic.surface
        if surface is not None and (number := count_open_edges(surface)):
            yield ReportEntry(
                RECORDED,
                f"surface of '{collision.name}'",
                f"the mesh has holes, with {number} edges around them: what passes through one feels nothing",
                "" if collision.source is None else str(collision.source),
            )


def gather_collision_parameters(
    plant: PlantQueries,
    collisions: Sequence[RegisteredCollision],
    others: Sequence[RegisteredCollision],
    dtype: Any,
) -> CollisionParameters:
    """Gathers the leaves of contact, in the order of the geometries; `others` can touch nothing."""

    def array(values: Iterable[Any], *shape: int) -> Any:
        return leaf_of(np.asarray(list(values), dtype=float).reshape(shape), dtype)

    n, settings = len(collisions), plant.contact_settings
    geometry = gather_geometry_parameters(collisions, dtype)
    properties = [c.properties for c in collisions]
    taus = [DEFAULT_RELAXATION_TIME if p.relaxation_time is None else p.relaxation_time for p in properties]
    smoothing = settings.contact_smoothing_length
    moduli = [p.hydroelastic.modulus for p in properties if p.hydroelastic is not None]
    moduli = [modulus for modulus in moduli if modulus is not None]
    dissipations = (p.hunt_crossley_dissipation for p in properties)
    return CollisionParameters(
        quaternion=geometry.quaternion,
        translation=geometry.translation,
        size=geometry.size,
        vertices=geometry.vertices,
        static_friction=array((p.friction[0] for p in properties), n),
        dynamic_friction=array((p.friction[1] for p in properties), n),
        relaxation_time=array(taus, n),
        stiffness=array((p.point_stiffness for p in properties if p.point_stiffness is not None), -1),
        hunt_crossley_dissipation=array((d for d in dissipations if d is not None), -1),
        penetration_allowance=array([settings.penetration_allowance]),
        stiction_tolerance=array([settings.stiction_tolerance]),
        sap_near_rigid_threshold=array([settings.sap_near_rigid_threshold]),
        smoothing_length=array([smoothing]) if smoothing > 0.0 else None,
        hydroelastic_modulus=array(moduli, -1) if moduli else None,
        others=gather_geometry_parameters(others, dtype) if others else None,
    )


def gather_geometry_parameters(collisions: Sequence[RegisteredCollision], dtype: Any) -> GeometryParameters:
    """Gathers poses, lengths and vertices, in the order of the geometries."""
    n, geometries = len(collisions), [c.geometry for c in collisions]
    vertices = (v for g in geometries if isinstance(g.shape, Convex) for v in g.shape.vertices)
    return GeometryParameters(
        quaternion=as_leaf((rotation_quaternion(np.array(g.rotation)) for g in geometries), dtype, n, 4),
        translation=as_leaf((g.translation for g in geometries), dtype, n, 3),
        size=as_leaf((length for g in geometries for length in shape_lengths(g.shape)), dtype, -1),
        vertices=as_leaf(vertices, dtype, -1, 3),
    )


def as_leaf(values: Iterable[Any], dtype: Any, *shape: int) -> Any:
    """A leaf of numbers: gathered in double precision, then cast to the model's type."""
    return leaf_of(np.asarray(list(values), dtype=float).reshape(shape), dtype)
