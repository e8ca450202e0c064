"""Applies `keep_contact_only` at finalize: keeps the pairs that are named and reports the others."""

from collections.abc import Collection, Sequence

from mbjax.errors import ModelError
from mbjax.geometry.signed_distance.pair_table import supported_pairs
from mbjax.model import IGNORED, GeometryNames, ReportEntry, select_pairs
from mbjax.model.geometry_selection import Pair
from mbjax.model.lookup import scoped_name

from .deformable_contact import DeformablePairs
from .deformables import PlantDeformables
from .queries import PlantQueries
from .surface_pairs import why_no_surface

CALL = "keep_contact_only"


def keep_named_pairs(
    plant: PlantQueries, candidates: Sequence[Pair], of_nodes: DeformablePairs
) -> tuple[Sequence[Pair], DeformablePairs]:
    """The candidate pairs that some pair of names means; all candidates where no names were given.

    Names mean deformable bodies, too, whose candidates are `of_nodes`. Raises `ModelError` for a name without match,
    and where no candidate that names mean has a surface or a distance.
    """
    if not plant.contact_kept:
        return candidates, of_nodes
    deformables = list(plant.deformables) if isinstance(plant, PlantDeformables) else []
    names = [
        GeometryNames(c.body.name, scoped_name(c.body, plant.instance_names), c.geometry.name) for c in plant.collisions
    ]
    first = len(names)
    names += [GeometryNames(A.name, scoped_name(A, plant.instance_names), A.name) for A in deformables]
    possible, kept = set(candidates), set()
    numbered = {(place, first + A.index): (A, place) for A, place in of_nodes.with_geometries}
    between = {(first + A.index, first + B.index): (A, B) for A, B in of_nodes.between_bodies}
    passing = {(place, first + A.index): (A, place) for A, place in of_nodes.passing}
    possible_of_nodes, kept_of_nodes = numbered.keys() | between.keys(), set()
    bodies = [*(body.name for body in plant.bodies), *(A.name for A in deformables)]
    meant = select_pairs(CALL, plant.contact_kept, names, bodies)
    for (A, B), members in zip(plant.contact_kept, meant, strict=True):
        ordered = {(min(pair), max(pair)) for pair in members}
        touching, with_nodes = ordered & possible, ordered & possible_of_nodes
        if not with_nodes:
            require_contact(f"{CALL}: '{A}' and '{B}'", plant, touching)
        kept |= touching
        kept_of_nodes |= with_nodes | (ordered & passing.keys())
    of_kept = DeformablePairs(
        [pair for key, pair in numbered.items() if key in kept_of_nodes],
        [pair for key, pair in between.items() if key in kept_of_nodes],
        [pair for key, pair in passing.items() if key in kept_of_nodes],
    )
    return [pair for pair in candidates if pair in kept], of_kept


def require_contact(what: str, plant: PlantQueries, touching: Collection[Pair]) -> None:
    """Raises `ModelError` where no pair that names mean may touch, or none has a surface or a signed distance."""
    collisions, model = plant.collisions, plant.contact_settings.contact_model
    kinds = {tuple(type(collisions[i].geometry.shape).__name__ for i in pair) for pair in touching}
    if not kinds:
        raise ModelError(
            f"{what} may not touch: their shapes are on one body, on bodies welded together or joined by a joint, or "
            "excluded. set_adjacent_bodies_collision_filters(False) lets bodies touch that a joint connects."
        )
    has_surface = model.startswith("hydroelastic") and any(
        why_no_surface(*(collisions[i] for i in pair)) is None for pair in touching
    )
    if not kinds & supported_pairs() and not has_surface:
        listed = ", ".join(" with ".join(pair) for pair in sorted(kinds))
        raise ModelError(
            f"{what}: there is no signed distance of their shapes, {listed}. Give simpler shapes, or load meshes with "
            "meshes='hull'."
        )


def entries_of_kept(plant: PlantQueries, candidates: Sequence[Pair], kept: Sequence[Pair]) -> list[ReportEntry]:
    """One report entry on the pairs left out because they were not named; none where all were kept."""
    if len(kept) == len(candidates):
        return []
    touching = {i for pair in kept for i in pair}
    might = sorted({i for pair in candidates for i in pair} - touching)
    shapes = ", ".join(f"'{plant.collisions[i].name}'" for i in might)
    message = f"of {len(candidates)} pairs of shapes that might touch {len(kept)} are kept, as {CALL} asks"
    return [ReportEntry(IGNORED, "contact", message + (f"; these shapes touch nothing: {shapes}" if might else ""))]
