"""Checks the numbers of a force element when it is made."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from mbjax.errors import ModelError


def checked_numbers(element: str, what: str, value: Any, *, size: int | None = None, signed: bool = False) -> Array:
    """Converts to one number, or `size` of them; raises unless finite and (unless `signed`) at least 0."""
    try:
        numbers = np.asarray(value, float)
    except (TypeError, ValueError):
        numbers = np.full((), np.nan)
    shape = () if size is None else (size,)
    if numbers.shape != shape or not np.all(np.isfinite(numbers)):
        wanted = "a finite number" if size is None else f"{size} finite numbers"
        raise ModelError(f"{element}: {what} must be {wanted}, got {value!r}.")
    if not signed and np.any(numbers < 0.0):
        raise ModelError(f"{element}: {what} must be at least 0, got {value!r}.")
    return jnp.asarray(numbers, float)
