"""Constraints on a trajectory: functions with bounds, at the running steps, at the end, at all, or at chosen steps."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.number_rules import as_traced_numbers, is_known, shown


class Constraint(eqx.Module):
    """lower <= function(model, state, effort) <= upper, entry by entry; equal bounds make an equality.

    `at` is "running" (the steps, with an effort), "end" (the last state; called without an effort), or "all" states
    (called without an effort). `when`, (num_steps + 1,), chooses among them. `name` is what reports call it.
    """

    function: Callable[..., Array]
    lower: Float[Array, "..."]
    upper: Float[Array, "..."]
    when: Bool[Array, " steps_and_end"] | None
    name: str = eqx.field(static=True)
    at: Literal["running", "end", "all"] = eqx.field(static=True)

    def __init__(
        self,
        function: Callable[..., Any],
        lower: ArrayLike = -np.inf,
        upper: ArrayLike = np.inf,
        *,
        name: str | None = None,
        at: Literal["running", "end", "all"] = "all",
        when: Any = None,
    ):
        if not callable(function):
            raise ModelError(f"Constraint: the first argument must be a function, got {type(function).__name__}.")
        if at not in ("running", "end", "all"):
            raise ModelError(f"Constraint: at must be 'running', 'end' or 'all', got {at!r}.")
        self.function, self.at = function, at
        self.lower, self.upper = jnp.asarray(lower, float), jnp.asarray(upper, float)
        self.name = (
            getattr(function, "name", None) or getattr(function, "__name__", "constraint") if name is None else name
        )
        self.when = None if when is None else checked_choice(f"Constraint '{self.name}'", when)
        require_bounds(f"Constraint '{self.name}'", lower, upper)


def checked_choice(call: str, when: Any) -> Bool[Array, " steps_and_end"]:
    """Truth values, one for each state; raises `ModelError` for other numbers, such as indices of steps."""
    numbers = as_traced_numbers(when)
    if numbers is None or (is_known(numbers) and not np.all(np.isin(np.asarray(numbers), (0, 1)))):
        raise ModelError(f"{call}: when must be a truth value for each of the num_steps + 1 states, got {shown(when)}.")
    return numbers.astype(bool)


def require_bounds(call: str, lower: ArrayLike, upper: ArrayLike) -> None:
    """Raises `ModelError` for bounds that no value is within, or that are NaN, and for shapes that do not fit."""
    try:
        jnp.broadcast_shapes(jnp.shape(lower), jnp.shape(upper))
    except ValueError:
        raise ModelError(
            f"{call}: the lower bound has shape {jnp.shape(lower)}, the upper {jnp.shape(upper)}; give each as a "
            "number or as many as the function has values."
        ) from None
    if not is_known(lower, upper):
        return
    low, high = np.broadcast_arrays(np.asarray(lower), np.asarray(upper))
    wrong = np.argwhere(~((low <= high) & (low < np.inf) & (high > -np.inf)))
    if len(wrong):
        where = tuple(int(i) for i in wrong[0])
        raise ModelError(
            f"{call}: entry {list(where)} must be at least {low[where]} and at most {high[where]}: no value is both."
        )


def equality(function: Callable[..., Any], value: ArrayLike = 0.0, **options: Any) -> Constraint:
    """The constraint function(model, state, …) = value."""
    return Constraint(function, value, value, **options)


def at_least(function: Callable[..., Any], lower: ArrayLike = 0.0, **options: Any) -> Constraint:
    """The constraint function(model, state, …) >= lower."""
    return Constraint(function, lower, np.inf, **options)


def at_most(function: Callable[..., Any], upper: ArrayLike = 0.0, **options: Any) -> Constraint:
    """The constraint function(model, state, …) <= upper."""
    return Constraint(function, -np.inf, upper, **options)
