"""What numbers must satisfy, and the one check of those that people give; traced numbers pass."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from .errors import ModelError

INFINITY = float("inf")


@dataclasses.dataclass(frozen=True)
class NumberRule:
    """`holds` of an array, number by number or, for directions, row by row; it works on NumPy's and JAX's arrays.

    `words` say it after "must be". `is_positive`: no number below 0, so that it may be replaced by its logarithm.
    """

    words: str
    holds: Callable[[Any], Any]
    is_positive: bool = False
    by_row: bool = False


def is_finite(x: Any) -> Any:
    """Neither infinite nor NaN, which compares as false."""
    return (x > -INFINITY) & (x < INFINITY)


FINITE = NumberRule("a finite number", is_finite)
POSITIVE = NumberRule("a finite number > 0", lambda x: (x > 0.0) & (x < INFINITY), is_positive=True)
NOT_NEGATIVE = NumberRule("a finite number >= 0", lambda x: (x >= 0.0) & (x < INFINITY), is_positive=True)
POSITIVE_OR_INFINITE = NumberRule("a number > 0, or inf", lambda x: x > 0.0, is_positive=True)
LARGEST = NumberRule("a number >= 0, or inf for none", lambda x: x >= 0.0, is_positive=True)
LOWER_LIMIT = NumberRule("a number, or -inf for none", lambda x: x < INFINITY)
UPPER_LIMIT = NumberRule("a number, or inf for none", lambda x: x > -INFINITY)
DIRECTION = NumberRule(
    "finite and not all zero", lambda x: (is_finite(x)).all(-1) & (x != 0.0).any(-1), by_row=True
)  # of a quaternion or an axis


def is_known(*values: Any) -> bool:
    """Whether all numbers are there: none is traced, in lists neither."""
    return not any(isinstance(x, Tracer) for x in jax.tree.leaves(values))


def checked_numbers(
    label: str,
    what: str,
    value: Any,
    rule: NumberRule,
    shape: tuple[int, ...] = (),
    *,
    unit: str = "",
    is_repeated: bool = False,
    hint: str = "",
) -> Any:
    """The value as an array of `shape`, or one number if that is repeated; NumPy's in float64 unless it is traced.

    What came, what was expected and `hint` are in the message of the `ModelError`, which begins with `label`.
    """
    shapes = (shape, ()) if is_repeated else (shape,)
    known = is_known(value)
    numbers = as_numbers(value) if known else as_traced_numbers(value)
    if numbers is None or numbers.shape not in shapes:
        came = f"{shown(value)}" if numbers is None else f"shape {numbers.shape}: {shown(value)}"
        raise ModelError(f"{label}: {what} must be {counted(shape, is_repeated)}{of(unit)}, got {came}.{spaced(hint)}")
    if known and not np.all(rule.holds(numbers)):
        raise ModelError(f"{label}: {what} must be {rule.words}{of(unit)}, got {shown(value)}.{spaced(hint)}")
    return numbers


def known_numbers(label: str, what: str, value: Any, rule: NumberRule, shape: tuple[int, ...] = (), **how: Any) -> Any:
    """`checked_numbers` for a builder, whose elements are made before anything is traced."""
    if not is_known(value):
        raise ModelError(
            f"{label}: {what} is traced, and a plant is built of known numbers. Build it with one, and set the traced "
            "one on the model, by a setter like mbjax.set_mass or by equinox.tree_at."
        )
    return checked_numbers(label, what, value, rule, shape, **how)


def as_numbers(value: Any) -> np.ndarray | None:
    """The array of floats; None where it is none: text, None, rows of unlike length."""
    try:
        numbers = np.asarray(value)
    except (TypeError, ValueError):
        return None
    if numbers.dtype.kind in "biuf":
        return numbers.astype(float)
    return numbers.astype(float) if numbers.dtype.kind == "V" and numbers.dtype.name == "bfloat16" else None


def as_traced_numbers(value: Any) -> Any:
    """The traced array, of numbers in a list too; None where it is none."""
    try:
        numbers = jnp.asarray(value)
    except (TypeError, ValueError):
        return None
    return None if jnp.issubdtype(numbers.dtype, jnp.complexfloating) else numbers


def counted(shape: tuple[int, ...], is_repeated: bool = False) -> str:
    """How many numbers, in words."""
    if shape == () or (is_repeated and shape == (1,)):
        return "one number"
    many = f"{shape[0]} number(s)" if len(shape) == 1 else f"numbers of shape {shape}"
    return f"one number or {many}" if is_repeated else many


def shown(value: Any) -> str:
    """What came, on one line and not too long."""
    text = " ".join(
        (str(value.tolist()) if isinstance(value, np.ndarray | jax.Array) and is_known(value) else repr(value)).split()
    )
    return text if len(text) <= 120 else f"{text[:117]}..."


def of(unit: str) -> str:
    """` in kg`, where there is a unit."""
    return f" in {unit}" if unit else ""


def spaced(hint: str) -> str:
    """The hint as one more sentence."""
    return f" {hint}" if hint else ""
