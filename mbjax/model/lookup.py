"""Finds elements by name or index; errors list what exists where there is none, or more than one."""

import difflib
import operator
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from jax.core import Tracer

from mbjax.errors import ModelError


class Named(Protocol):
    """An element that can be found by its name and model instance."""

    @property
    def name(self) -> str: ...

    @property
    def model_instance(self) -> int: ...


def near_matches(name: str, known: Iterable[str]) -> str:
    """A sentence that lists the names closest to one that was not found."""
    known = list(dict.fromkeys(known))
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return "Did you mean " + " or ".join(f"'{x}'" for x in close) + "?"
    shown = ", ".join(f"'{x}'" for x in known[:8])
    return f"Known names: {shown}{', …' if len(known) > 8 else ''}." if known else "There are none."


def matching_indices(
    key: str, elements: Sequence[Named], instance_names: Sequence[str], model_instance: int | None = None
) -> list[int]:
    """Places of the elements called `key`, by name or `instance::name`, in one instance or in all."""
    return [
        i
        for i, element in enumerate(elements)
        if (key == element.name or key == scoped_name(element, instance_names))
        and (model_instance is None or element.model_instance == model_instance)
    ]


def find_index(
    what: str,
    key: Any,
    elements: Sequence[Named],
    instance_names: Sequence[str],
    model_instance: int | None = None,
    call: str = "",
) -> int:
    """Index of the only element of that name or index, in one model instance or in all; else raises `ModelError`."""
    call = f"{call}: " if call else ""
    place = "" if model_instance is None else f" in model instance '{instance_names[model_instance]}'"
    if not isinstance(key, str):
        index = checked_index(what, key, len(elements), call)
        if model_instance not in (None, elements[index].model_instance):
            owner = instance_names[elements[index].model_instance]
            raise ModelError(f"{call}{what} {index} ('{elements[index].name}') belongs to '{owner}', not{place[3:]}.")
        return index
    found = matching_indices(key, elements, instance_names, model_instance)
    if len(found) > 1:
        options = ", ".join(f"'{scoped_name(elements[i], instance_names)}'" for i in found)
        raise ModelError(f"{call}{len(found)} things of kind {what} are named '{key}'; say which: {options}.")
    if not found:
        elsewhere = [scoped_name(elements[i], instance_names) for i in matching_indices(key, elements, instance_names)]
        known = [e.name for e in elements if model_instance in (None, e.model_instance)]
        hint = f"There is '{elsewhere[0]}'." if elsewhere else near_matches(key, known)
        raise ModelError(f"{call}there is no {what} named '{key}'{place}. {hint}")
    return found[0]


def find_model_instance(key: Any, instance_names: Sequence[str], call: str = "") -> int:
    """Index of a model instance by name or index."""
    call = f"{call}: " if call else ""
    if not isinstance(key, str):
        return checked_index("model instance", key, len(instance_names), call)
    if key not in instance_names:
        raise ModelError(f"{call}there is no model instance named '{key}'. {near_matches(key, instance_names)}")
    return list(instance_names).index(key)


def checked_index(what: str, key: Any, size: int, call: str = "") -> int:
    """Returns `key` as an int within 0 … size - 1; else raises `ModelError`."""
    try:
        index = None if isinstance(key, bool) else operator.index(key)
    except TypeError:
        index = None
    if index is None:
        traced = isinstance(key, Tracer)
        hint = " It is traced, but decides the program: close over it, or name it in static_argnums." if traced else ""
        raise ModelError(
            f"{call}the {what} must be given by name or index, got {'an array' if traced else repr(key)}.{hint}"
        )
    if not 0 <= index < size:
        run = f"indices run from 0 to {size - 1}" if size else "there are none"
        raise ModelError(f"{call}there is no {what} {index}: {run}.")
    return index


def scoped_name(element: Named, instance_names: Sequence[str]) -> str:
    """Name `instance::name`, unique among elements of a kind."""
    return f"{instance_names[element.model_instance]}::{element.name}"
