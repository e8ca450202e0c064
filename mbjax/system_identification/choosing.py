"""Chooses numbers of a model by patterns of their names."""

import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from mbjax.errors import ModelError, ModelWarning
from mbjax.model import MultibodyModel
from mbjax.parameters import NamedNumber, matching_numbers
from mbjax.parameters.kind_table import GROUPS
from mbjax.parameters.name_patterns import numbers_of_kinds
from mbjax.parameters.named_numbers import body_labels
from mbjax.parameters.number_kinds import with_unit_inertia
from mbjax.spatial import central_second_moment, unit_inertia_of_second_moment

from .kind_table import identifiable_kinds
from .kinds import SMALLEST_MOMENT, Kind
from .spaces import FIXED, Space

NEAREST_MOMENT = 1e-6  # m², of bodies that start at the nearest inertia


class Chosen(NamedTuple):
    """A number that is unknown: its kind, name, element's name, place in the kind's leaf, and space."""

    kind: Kind
    name: str
    element: str
    place: int
    space: Space


def choose(model: MultibodyModel, patterns: Mapping[str, Space]) -> tuple[MultibodyModel, list[Chosen]]:
    """Numbers that the patterns choose, kind by kind, and the model with inertias that they can start from."""
    if not patterns:
        raise ModelError(
            "Parameters: no patterns were given, so nothing is unknown. For example {'mass:*': positive()}."
        )
    kinds = {kind.of: kind for kind in identifiable_kinds(model)}
    known = numbers_of_kinds(model, kinds)
    spaces: dict[str, Space] = {}
    repaired: set[str] = set()
    for pattern, space in patterns.items():
        if not isinstance(space, Space):
            raise ModelError(
                f"Parameters: '{pattern}' must have a space such as scaled(0.5, 2.0), between(low, high), positive(), "
                f"free(), physical() or fixed(); got {space!r}."
            )
        found = matching_numbers("Parameters", pattern, known)
        unfit = [] if space.kind == FIXED else unfit_bodies(model, found)
        if space.nearest:
            massive = {name for name in unfit if has_mass(model, name)}
            repaired |= massive
            unfit = [name for name in unfit if name not in massive]
        if unfit and not any(x in pattern for x in "*?["):
            raise ModelError(f"Parameters: '{pattern}' has no physical start: {unfit_words(unfit)}")
        if unfit:
            warnings.warn(
                f"Parameters: '{pattern}' leaves bodies out: {unfit_words(unfit)}", ModelWarning, stacklevel=3
            )
        left_out = {f"{kind}:{body}" for kind in GROUPS["body"] for body in unfit}
        spaces |= {number.name: space for number in found if number.element not in left_out}
    chosen = [
        Chosen(kinds[number.kind], name, number.element, number.place, spaces[name])
        for name, number in known.items()
        if name in spaces and spaces[name].kind != FIXED
    ]
    inertias = [entry for entry in chosen if entry.kind.only_physical]
    require_whole_inertias(inertias)
    unknown_bodies = {entry.element.partition(":")[2] for entry in inertias}
    return with_nearest_inertias(model, sorted(repaired & unknown_bodies)), chosen


def require_whole_inertias(chosen: Sequence[Chosen]) -> None:
    """Raises `ModelError` where numbers that belong together are not all unknown, or not `physical()`."""
    counts = Counter(entry.element for entry in chosen)
    for entry in chosen:
        if entry.space.kind != "physical" or counts[entry.element] != 6:
            raise ModelError(
                f"Parameters: the six numbers of '{entry.element}' belong together and must be physical(): write "
                f"{{'{entry.element}': physical()}}. '{entry.name}' is {entry.space.kind}, and "
                f"{counts[entry.element]} of the six are unknown."
            )


def unfit_bodies(model: MultibodyModel, found: Sequence[NamedNumber]) -> list[str]:
    """Bodies among the found numbers without a mass or, where an inertia is wanted, without a regular one."""
    wanted = {number.kind.name for number in found} & set(GROUPS["body"])
    if not wanted:
        return []
    elements = {number.element.partition(":")[2] for number in found if number.kind.name in wanted}
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
        "impossible one. Start at the nearest possible one by physical(nearest=True), or give an inertia by "
        "mbjax.set_spatial_inertia_in_body_frame, to identify them."
    )


def has_mass(model: MultibodyModel, body: str) -> bool:
    """Whether a body, by its label, has a mass above zero."""
    return float(model.parameters.body_mass[body_labels(model)[1:].index(body)]) > 0.0


def with_nearest_inertias(model: MultibodyModel, bodies: Sequence[str]) -> MultibodyModel:
    """The model with second moments of these bodies replaced by the nearest that are positive by a margin.

    Nearest in Frobenius's norm: eigenvalues are raised to a hundredth of the largest, at least `NEAREST_MOMENT`.
    """
    if not bodies:
        return model
    rows = np.array([body_labels(model)[1:].index(name) for name in bodies])
    com = model.parameters.body_com[rows]
    w, V = np.linalg.eigh(np.asarray(central_second_moment(com, model.parameters.body_unit_inertia[rows]), float))
    w = np.maximum(w, np.maximum(0.01 * w[:, -1:], NEAREST_MOMENT))
    S = jnp.asarray(np.einsum("nij,nj,nkj->nik", V, w, V), com.dtype)
    return with_unit_inertia(model, jnp.asarray(rows), unit_inertia_of_second_moment(com, S))
