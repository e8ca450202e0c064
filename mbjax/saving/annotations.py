"""Whether decoded values are what the annotations of the fields say that hold them."""

import collections.abc
import dataclasses
import functools
import types
import typing
from typing import Any

import jax

OF_ARRAYS = ("jaxtyping", "jax", "jaxlib")  # modules of annotations that mean an array, of any shape: a batch has more


@functools.cache
def hints_of(cls: type) -> dict[str, Any]:
    """Annotations of a class's fields."""
    hints = typing.get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def fits(value: Any, hint: Any) -> bool:
    """Whether a decoded value is what an annotation says; one that is not known here says nothing."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, argument) for argument in arguments)
    if origin is typing.Literal:
        return value in arguments
    if origin in (tuple, collections.abc.Sequence):
        return isinstance(value, tuple) and fit_in_order(value, arguments)
    if getattr(hint, "__module__", "").split(".")[0] in OF_ARRAYS:
        return isinstance(value, jax.Array)
    if hint is float:
        return type(value) in (int, float) or isinstance(value, jax.Array)  # a number of NumPy's is saved as an array
    if hint in (int, bool, str, type(None)):
        return type(value) is (type(None) if hint is None else hint)
    return not isinstance(hint, type) or not dataclasses.is_dataclass(hint) or isinstance(value, hint)


def fit_in_order(values: tuple, hints: tuple) -> bool:
    """Whether the items of a tuple are what its annotation says."""
    if len(hints) == 1 or (len(hints) == 2 and hints[1] is Ellipsis):
        return all(fits(value, hints[0]) for value in values)
    return not hints or (len(values) == len(hints) and all(map(fits, values, hints)))
