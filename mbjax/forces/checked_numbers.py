"""Checks the numbers of a force element when it is made; traced ones pass."""

from typing import Any

import jax.numpy as jnp
from jax import Array

from mbjax.number_rules import FINITE, NOT_NEGATIVE, checked_numbers


def checked_element_numbers(
    element: str, what: str, value: Any, *, size: int | None = None, signed: bool = False
) -> Array:
    """Converts to one number, or `size` of them; raises unless finite and (unless `signed`) at least 0."""
    shape = () if size is None else (size,)
    return jnp.asarray(checked_numbers(element, what, value, FINITE if signed else NOT_NEGATIVE, shape), float)
