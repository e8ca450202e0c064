"""What the constructors of all constraint records share."""

from typing import Any

from mbjax.errors import ModelError

from ..constraint_numbers import finite_numbers, stabilization, switch

STABILIZATION_TIME = 0.1  # s, RBDL's


def set_common(
    constraint: Any, label: str, v_plus: Any, shape: tuple[int, ...], stabilization_time: Any, active: Any
) -> None:
    """Sets the fields that every constraint has, in its constructor."""
    constraint.v_plus = finite_numbers(label, "v_plus", v_plus, *shape)
    constraint.stabilization_time = stabilization(label, stabilization_time)
    constraint.active = switch(label, active)


def label_of(kind: str, name: Any) -> str:
    """A constraint's name in messages; `name` must be a non-empty string, or None to be given one."""
    if name is not None and (not isinstance(name, str) or not name):
        raise ModelError(f"{kind}: the name must be a non-empty string, got {name!r}.")
    return kind if name is None else f"{kind} '{name}'"
