"""Constraints on a trajectory: functions with bounds, at the running steps, at the end, at all, or at chosen steps."""

from collections.abc import Callable
from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float

from mbjax.errors import ModelError
from mbjax.number_rules import is_known


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
        self.when = None if when is None else jnp.asarray(when, bool)
        if is_known(self.lower) and is_known(self.upper):
            low, high = np.broadcast_arrays(np.asarray(self.lower), np.asarray(self.upper))
            wrong = np.argwhere(~(low <= high))
            if len(wrong):
                where = tuple(int(i) for i in wrong[0])
                raise ModelError(
                    f"Constraint '{self.name}': entry {list(where)} must be at least {low[where]} and at most "
                    f"{high[where]}: no value is both."
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
