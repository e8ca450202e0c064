"""Text of `print(state)` and other records: their arrays in a few lines, batched and traced values included."""

from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from .html_text import html_table
from .whole_table import Column

MOST = 8  # numbers of an array that are shown one by one, at most
MOST_IN_LINE = 100  # the same for a record in one line


def summary_of(title: str, fields: Mapping[str, Any]) -> str:
    """The title, then a line for each field."""
    width = max(map(len, fields), default=0)
    return "\n".join([title, *(f"  {name:<{width}}  {array_text(value)}" for name, value in fields.items())])


def summary_html(title: str, fields: Mapping[str, Any]) -> str:
    """The same as HTML, for notebooks, with up to a hundred numbers of each field."""
    columns = [
        Column("", list(fields), is_text=True),
        Column("numbers", [*map(short_text, fields.values())], is_text=True),
    ]
    return html_table(title, columns)


def short_text(value: Any) -> str:
    """Text like `[0.1 -2 0]` for the numbers of one world; as `array_text` for others."""
    if is_at_hand(value) and np.ndim(value) == 1 and np.size(value) <= MOST_IN_LINE:
        return f"[{' '.join(map(number_text, np.asarray(value)))}]"
    return array_text(value)


def is_at_hand(value: Any) -> bool:
    """Whether the value is an array whose numbers are at hand: not traced, donated, or on another machine."""
    if isinstance(value, jax.Array) and not isinstance(value, Tracer):
        return not value.is_deleted() and value.is_fully_addressable
    return isinstance(value, np.ndarray | np.generic)


def array_text(value: Any) -> str:
    """Text like `(3,) [0.1 -2 0]`; a range for many numbers, the shape alone for numbers that are not known."""
    if value is None:
        return "none"
    if isinstance(value, Tracer):
        return f"{value.shape} {np.dtype(value.dtype).name}, traced"
    if not hasattr(value, "shape") or not hasattr(value, "__array__"):
        return repr(value)
    if not is_at_hand(value) and isinstance(value, jax.Array):
        return f"{value.shape} {np.dtype(value.dtype).name}, {'deleted' if value.is_deleted() else 'elsewhere'}"
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
