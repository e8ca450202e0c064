"""Chooses numbers of a model by patterns of their names."""

import fnmatch
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

from mbjax.errors import ModelError, ModelWarning
from mbjax.model import MultibodyModel, near_matches
from mbjax.spatial import central_second_moment

from .kind_table import GROUPS, kinds_of
from .kinds import Kind
from .spaces import FIXED, Space
from .special_kinds import SMALLEST_MOMENT
from .system import body_labels

Chosen = tuple[Kind, str, int, Space]  # kind, name, place in the kind's leaf, space


def choose(model: MultibodyModel, patterns: Mapping[str, Space]) -> tuple[list[Chosen], tuple[Kind, ...]]:
    """Numbers that the patterns choose: kind, name, place and space; and the kinds they are of."""
    known = known_numbers(model)
    if not patterns:
        raise ModelError(
            "Parameters: no patterns were given, so nothing is unknown. For example {'mass:*': positive()}."
        )
    spaces: dict[str, Space] = {}
    for pattern, space in patterns.items():
        if not isinstance(space, Space):
            raise ModelError(
                f"Parameters: '{pattern}' must have a space such as scaled(0.5, 2.0), between(low, high), positive(), "
                f"free(), physical() or fixed(); got {space!r}."
            )
        found = matches(pattern, known)
        unfit = [] if space.kind == FIXED else unfit_bodies(model, [known[name] for name in found])
        if unfit and not any(x in pattern for x in "*?["):
            raise ModelError(f"Parameters: '{pattern}' has no physical start: {unfit_words(unfit)}")
        if unfit:
            warnings.warn(
                f"Parameters: '{pattern}' leaves bodies out: {unfit_words(unfit)}", ModelWarning, stacklevel=3
            )
        left_out = {f"{kind}:{body}" for kind in GROUPS["body"] for body in unfit}
        spaces |= {name: space for name in found if known[name][3] not in left_out}
    chosen = [(*known[name][:3], spaces[name]) for name in known if name in spaces and spaces[name].kind != FIXED]
    for kind, name, _, space in chosen:
        if kind.only_physical and space.kind != "physical":
            raise ModelError(
                f"Parameters: '{name}' must be physical(), for its numbers belong together; got {space.kind}."
            )
    return chosen, tuple(dict.fromkeys(kind for kind, *_ in chosen))


def known_numbers(model: MultibodyModel) -> dict[str, tuple[Kind, str, int, str]]:
    """Every number that may be unknown, by its full name `kind:element.component`."""
    known = {}
    for kind in kinds_of(model):
        for element, (places, components) in kind.places(model).items():
            for place, component in zip(places, components, strict=True):
                whole = f"{kind.name}:{element}"
                name = f"{whole}.{component}" if component else whole
                known[name] = kind, name, place, whole
    return known


def matches(pattern: str, known: Mapping[str, tuple[Kind, str, int, str]]) -> list[str]:
    """Names that a pattern matches, by element or with the component; raises `ModelError` if there are none."""
    first, _, rest = pattern.partition(":")
    patterns = [f"{kind}:{rest}" for kind in GROUPS[first]] if first in GROUPS else [pattern]
    found = []
    for name, (kind, _, _, element) in known.items():
        if any(
            (fnmatch.fnmatchcase(name, p) and not kind.only_physical) or fnmatch.fnmatchcase(element, p)
            for p in patterns
        ):
            found.append(name)
    if found:
        return found
    kinds = {kind.name for kind, *_ in known.values()} | set(GROUPS)
    if not rest or (first not in kinds and not any(x in first for x in "*?[")):
        raise ModelError(
            f"Parameters: '{pattern}' matches nothing: a name is kind:element, and the kinds of this model are "
            f"{', '.join(sorted(kinds))}. {near_matches(first, sorted(kinds))}"
        )
    of_kind = [name for name in known if fnmatch.fnmatchcase(name.split(":")[0], GROUPS.get(first, (first,))[0])]
    raise ModelError(f"Parameters: '{pattern}' matches nothing. {near_matches(pattern, of_kind)}")


def unfit_bodies(model: MultibodyModel, found: Sequence[tuple[Kind, str, int, str]]) -> list[str]:
    """Bodies among the found numbers without a mass or, where an inertia is wanted, without a regular one."""
    wanted = {kind.name for kind, *_ in found} & set(GROUPS["body"])
    if not wanted:
        return []
    elements = {whole.partition(":")[2] for kind, _, _, whole in found if kind.name in wanted}
    p = model.parameters
    S = np.asarray(central_second_moment(p.body_com, p.body_unit_inertia))
    smallest = np.linalg.eigvalsh(S)[:, 0]
    unfit = np.asarray(p.body_mass) <= 0.0
    if "inertia" in wanted:
        unfit = unfit | (smallest <= SMALLEST_MOMENT)
    return [name for name, is_unfit in zip(body_labels(model)[1:], unfit, strict=True) if is_unfit and name in elements]


def unfit_words(bodies: Sequence[str]) -> str:
    """What is wrong with the bodies, and the way out."""
    names = ", ".join(f"'{name}'" for name in bodies)
    return (
        f"{names} {'has' if len(bodies) == 1 else 'have'} no mass, or the inertia of a point, a rod or a sheet, or an "
        "impossible one. Give an inertia by mbjax.set_spatial_inertia_in_body_frame to identify them."
    )
