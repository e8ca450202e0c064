"""Finds numbers of a model by patterns of their names: `mass:*`, `friction:*foot*`, `gravity`."""

import fnmatch
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, matching_places, near_matches

from .kind_table import GROUPS, KINDS, OF_CONTACT, kinds_of
from .number_kinds import NumberKind


class NamedNumber(NamedTuple):
    """A number of a model: its full name `kind:element.component`, that of its element, and where it stands."""

    name: str
    element: str  # kind:element
    kind: NumberKind
    place: int


def named_numbers(model: MultibodyModel) -> dict[str, NamedNumber]:
    """Every number of the model that has a name, by that name."""
    return numbers_of_kinds(model, kinds_of(model))


def numbers_of_kinds(model: MultibodyModel, kinds: Iterable[NumberKind]) -> dict[str, NamedNumber]:
    """Every number of these kinds, by its name."""
    known = {}
    for kind in kinds:
        for element, (places, components) in kind.places(model).items():
            for place, component in zip(places, components, strict=True):
                whole = f"{kind.name}:{element}"
                name = f"{whole}.{component}" if component else whole
                known[name] = NamedNumber(name, whole, kind, place)
    return known


def matching_numbers(call: str, pattern: str, known: Mapping[str, NamedNumber]) -> list[NamedNumber]:
    """Numbers that a pattern matches, by their element's name or with the component.

    A kind alone means all its elements, and `body:NAME` mass, centre of mass and inertia. A name itself means just what
    is called so, whatever brackets it holds. Raises `ModelError` with near matches if nothing matches; `call` begins
    the message.
    """
    if not isinstance(pattern, str):
        raise ModelError(f"{call}: a name must be text like 'mass:*', got {pattern!r}.")
    first, _, rest = pattern.partition(":")
    patterns = [f"{kind}:{rest or '*'}" for kind in GROUPS.get(first, (first,))]
    numbers = list(known.values())
    found = matching_places(patterns, [(number.name, number.element) for number in numbers])
    if found:
        return [numbers[place] for place in found]
    kinds = sorted({number.kind.name for number in known.values()} | set(GROUPS))
    if first in {kind.name for kind in KINDS} - set(kinds):
        contact = "; for those of contact load the model with ground= or contact_pairs=" if is_of_contact(first) else ""
        raise ModelError(f"{call}: '{pattern}' matches nothing: no element of this model has a {first}{contact}.")
    if first not in kinds and not any(x in first for x in "*?["):
        raise ModelError(
            f"{call}: '{pattern}' matches nothing: a name is kind:element, and the kinds of this model are "
            f"{', '.join(kinds)}. {near_matches(first, kinds)}"
        )
    wanted = GROUPS.get(first, (first,))
    elements = [n.element for n in known.values() if any(fnmatch.fnmatchcase(n.kind.name, kind) for kind in wanted)]
    near = near_matches(f"{wanted[0]}:{rest.strip('*?')}", elements)
    raise ModelError(f"{call}: '{pattern}' matches nothing in this model. {near}")


def is_of_contact(kind: str) -> bool:
    """Whether numbers of this kind belong to collision geometries that may touch."""
    return any(k.name == kind and k.path[: len(OF_CONTACT)] == OF_CONTACT for k in KINDS)
