"""Rules that numbers of a model must satisfy, and the one check of numbers that users give; traced ones pass it."""

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
    """A rule for numbers: `holds(array)` tests each number, or each row if `by_row`, of NumPy's or JAX's arrays.

    `words` follow "must be" in messages. `is_positive`: no number is below 0, so that its logarithm may stand for it.
    """

    words: str
    holds: Callable[[Any], Any]
    is_positive: bool = False
    by_row: bool = False


def is_finite(x: Any) -> Any:
    """Whether each number is neither infinite nor NaN; NaN compares as false."""
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
)  # a quaternion or an axis


def is_known(*values: Any) -> bool:
    """Whether no number is traced, those in lists included."""
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
    """Checks a value against a rule; returns an array of `shape`, or one number where `is_repeated` allows that.

    The array is NumPy's in float64, unless the value is traced. True and False are no numbers. Raises `ModelError`; its
    message begins with `label` and says what was expected, what was given, and `hint`.
    """
    shapes = (shape, ()) if is_repeated else (shape,)
    known = is_known(value)
    numbers = as_numbers(value) if known else as_traced_numbers(value)
    if numbers is None or numbers.shape not in shapes or are_truth_values(value):
        shape_given = "" if numbers is None or numbers.shape in shapes else f"shape {numbers.shape}: "
        came = f"{shape_given}{shown(value)}"
        raise ModelError(f"{label}: {what} must be {counted(shape, is_repeated)}{of(unit)}, got {came}.{spaced(hint)}")
    if known and not np.all(rule.holds(numbers)):
        raise ModelError(f"{label}: {what} must be {rule.words}{of(unit)}, got {shown(value)}.{spaced(hint)}")
    return numbers


def known_numbers(label: str, what: str, value: Any, rule: NumberRule, shape: tuple[int, ...] = (), **how: Any) -> Any:
    """Checks numbers as `checked_numbers` does, and refuses traced ones: builders run before anything is traced."""
    if not is_known(value):
        raise ModelError(
            f"{label}: {what} is traced, and a plant is built of known numbers. Build it with one, and set the traced "
            "one on the model, by a setter like mbjax.set_mass or by equinox.tree_at."
        )
    return checked_numbers(label, what, value, rule, shape, **how)


def is_whole(number: Any) -> bool:
    """Whether a known value is one integer."""
    return np.ndim(number) == 0 and np.asarray(number).dtype.kind in "iu"


def as_numbers(value: Any) -> np.ndarray | None:
    """The value as an array of floats; None for anything else: text, None, rows of unequal length."""
    try:
        numbers = np.asarray(value)
    except (TypeError, ValueError):
        return None
    if numbers.dtype.kind in "biuf":
        return numbers.astype(float)
    return numbers.astype(float) if numbers.dtype.kind == "V" and numbers.dtype.name == "bfloat16" else None


def are_truth_values(value: Any) -> bool:
    """Whether it is True or False, or an array or a list of nothing else."""
    each = [x.dtype == bool if hasattr(x, "dtype") else isinstance(x, bool) for x in jax.tree.leaves(value)]
    return bool(each) and all(each)


def as_traced_numbers(value: Any) -> Any:
    """A traced value, or a list with traced numbers, as an array of reals; None for anything else."""
    try:
        numbers = jnp.asarray(value)
    except (TypeError, ValueError):
        return None
    return None if jnp.issubdtype(numbers.dtype, jnp.complexfloating) else numbers


def counted(shape: tuple[int, ...], is_repeated: bool = False) -> str:
    """The number of numbers of a shape, in words."""
    if shape == () or (is_repeated and shape == (1,)):
        return "one number"
    many = f"{shape[0]} number(s)" if len(shape) == 1 else f"numbers of shape {shape}"
    return f"one number or {many}" if is_repeated else many


def shown(value: Any) -> str:
    """A value as text on one line, at most 120 characters."""
    text = " ".join(
        (str(value.tolist()) if isinstance(value, np.ndarray | jax.Array) and is_known(value) else repr(value)).split()
    )
    return text if len(text) <= 120 else f"{text[:117]}..."


def of(unit: str) -> str:
    """The unit after " in ", such as " in kg"; empty without a unit."""
    return f" in {unit}" if unit else ""


def spaced(hint: str) -> str:
    """The hint as a further sentence; empty without a hint."""
    return f" {hint}" if hint else ""
