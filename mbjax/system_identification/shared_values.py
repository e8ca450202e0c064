"""Numbers that share a value: they become one unknown."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mbjax.errors import ModelError

from .choosing import Chosen
from .spaces import Space

ALIKE = 1e-9  # part of the largest value by which values of a model that are shared may differ


class OneValue(NamedTuple):
    """A value to be found: its name and its element's, the places that have it, its space, and the model's value."""

    name: str
    element: str
    places: tuple[int, ...]
    space: Space
    value: float


def with_shared_values(chosen: Sequence[Chosen], values: Float[np.ndarray, " numbers"]) -> list[OneValue]:
    """Values of the chosen numbers of one kind, where those that share one become one."""
    groups: dict[tuple[str, bool], list[int]] = {}
    for i, entry in enumerate(chosen):
        is_shared = entry.space.shared is not None
        name = f"{entry.kind.name}:{entry.space.shared}" if is_shared else entry.name
        groups.setdefault((name, is_shared), []).append(i)
    return [one_value(name, [chosen[i] for i in rows], values[rows]) for (name, _), rows in groups.items()]


def one_value(name: str, members: Sequence[Chosen], values: Float[np.ndarray, " members"]) -> OneValue:
    """The value that the members of one group have; raises `ModelError` where they do not agree."""
    first = members[0]
    for member in members[1:]:
        if member.space != first.space:
            raise ModelError(
                f"Parameters: '{first.name}' and '{member.name}' share '{name}', but one is {first.space.kind} and the "
                f"other {member.space.kind}, or their bounds, priors or starts differ. Numbers that share a value have "
                "one space; give one of them another name."
            )
    low, high = float(values.min()), float(values.max())
    needs_one = first.space.start is None or first.space.is_relative  # to start from, or for bounds
    if needs_one and high - low > ALIKE * max(abs(low), abs(high)):
        raise ModelError(
            f"Parameters: the {len(members)} numbers that share '{name}' are from {low:g} to {high:g} in the model. "
            "Say where the common value starts: shared(name, positive(start=…)), or set them alike first."
        )
    places = tuple(member.place for member in members)
    return OneValue(name, first.element if len(members) == 1 else name, places, first.space, float(values[0]))


def require_unique_names(names: Sequence[str]) -> None:
    """Raises `ModelError` where a shared value has the name of another unknown."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise ModelError(f"Parameters: two unknowns are named '{twice[0]}'; share the value under another name.")
