"""Whole numbers that users give: steps, worlds, delays."""

from typing import Any

import numpy as np

from mbjax.errors import ModelError


def require_count(label: str, what: str, value: Any, least: int = 1) -> None:
    """Raises `ModelError` unless a value is a whole number, Python's or NumPy's, of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ModelError(f"{label}: {what} must be a whole number of at least {least}, got {value!r}.")


def as_plain(value: Any) -> Any:
    """NumPy's whole numbers as Python's, for static fields; anything else as it is."""
    return int(value) if isinstance(value, np.integer) else value
