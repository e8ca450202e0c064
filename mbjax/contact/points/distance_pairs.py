"""Finds the pairs of collision geometries of a finalized model that pairs of names refer to."""

from collections.abc import Iterable, Sequence

from mbjax.errors import ModelError
from mbjax.geometry.signed_distance.pair_table import supported_pairs
from mbjax.model import GeometryNames, MultibodyModel, checked_pairs, select_pairs
from mbjax.model.geometry_selection import Pair


def find_distance_pairs(model: MultibodyModel, call: str, pairs: Sequence[tuple[str, str]] | None) -> tuple[Pair, ...]:
    """Index pairs of the geometries that pairs of names refer to, each pair once; None gives those contact considers.

    An empty list, as a program may make it, has no pairs. Error messages begin with `call`.
    """
    layout = model.layout
    if pairs is None:
        return layout.contact.distance_pairs
    if isinstance(pairs, list | tuple) and not pairs:
        return ()
    shapes = [(body, shape) for body, of_it in zip(layout.bodies, layout.collision, strict=True) for shape in of_it]
    names = [GeometryNames(body.name, body.scoped_name, shape.name) for body, shape in shapes]
    kinds = [type(shape.shape).__name__ for _, shape in shapes]
    places = {(record.body, record.name): g for g, record in enumerate(layout.contact.all_geometries)}
    supported, found = supported_pairs(), {}
    for members in select_pairs(call, checked_pairs(call, pairs), names, layout.body_names):
        for a, b in members:
            if (kinds[a], kinds[b]) not in supported:
                raise ModelError(
                    f"{call}: there is no signed distance of '{names[a].scoped}' ({kinds[a]}) and "
                    f"'{names[b].scoped}' ({kinds[b]}). Name others, as mbjax.supported_pairs() lists"
                    + (
                        "; with meshes='hull' the meshes of a file are hulls."
                        if "Mesh" in (kinds[a], kinds[b])
                        else "."
                    )
                )
            pair = tuple(places[shapes[i][0].index, shapes[i][1].name] for i in (a, b))
            found.setdefault(frozenset(pair), pair)
    return tuple(found.values())


def names_of_pairs(model: MultibodyModel, pairs: Iterable[Pair]) -> tuple[tuple[str, str], ...]:
    """Scoped names `body::geometry` of the two geometries of each index pair."""
    return tuple((model.collision_geometry_name(a), model.collision_geometry_name(b)) for a, b in pairs)
