"""Text of `print(state)` and other records: their arrays in a few lines, batched and traced values included."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from jax.core import Tracer

MOST = 8  # numbers of an array that are shown one by one, at most


def summary_of(title: str, fields: Mapping[str, Any]) -> str:
    """The title, then a line for each field."""
    width = max(map(len, fields), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {array_text(value)}" for name, value in fields.items())])


def array_text(value: Any) -> str:
    """Text like `(3,) [0.1 -2 0]`; a range for many numbers, the shape alone for numbers that are not known."""
    if value is None:
        return "none"
    if isinstance(value, Tracer):
        return f"{value.shape} {np.dtype(value.dtype).name}, traced"
    if not hasattr(value, "shape") or not hasattr(value, "__array__"):
        return repr(value)
    numbers = np.asarray(value)
    if numbers.ndim == 0:
        return number_text(numbers)
    if numbers.ndim == 1 and numbers.size <= MOST:
        return f"{numbers.shape} [{' '.join(map(number_text, numbers))}]"
    return f"{numbers.shape} {range_text(numbers)}".rstrip()


def range_text(numbers: np.ndarray) -> str:
    """Range like `0.1 … 2`, or one number if all are equal, and the count of NaNs; for booleans the count of True."""
    if numbers.dtype == bool:
        return f"{int(numbers.sum())} of {numbers.size}"
    known = numbers[~np.isnan(numbers)] if np.issubdtype(numbers.dtype, np.inexact) else numbers
    text = ""
    if known.size:
        least, most = number_text(known.min()), number_text(known.max())
        text = least if least == most else f"{least} … {most}"
    missing = numbers.size - known.size
    return f"{text}, {missing} nan".removeprefix(", ") if missing else text


def number_text(x: Any) -> str:
    """A number with four significant digits; integers and booleans in full."""
    return str(x) if np.asarray(x).dtype == bool else f"{x:.4g}" if np.asarray(x).dtype.kind == "f" else str(x)
