"""Weights of residuals, given as they are or as factors of the cost, and costs whose weight differs between steps."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.number_rules import NOT_NEGATIVE, as_numbers, is_known, shown
from mbjax.spatial import safe_sqrt


def weight_of(call: str, weight: ArrayLike, factor: ArrayLike | None) -> Float[Array, "..."]:
    """The weight of a residual r in its cost weight² r·r / 2, or the root of the `factor` of r·r / 2."""
    if factor is None:
        numbers = as_numbers(weight) if is_known(weight) else None
        if is_known(weight) and (numbers is None or not np.all(np.isfinite(numbers))):
            raise ModelError(f"{call}: weight must be finite, a number or one for each residual, got {shown(weight)}.")
        return jnp.asarray(weight, float)
    if not is_known(weight) or np.any(np.asarray(weight) != 1.0):
        raise ModelError(
            f"{call}: give weight={weight!r}, which multiplies the residual, or factor={factor!r}, which multiplies "
            "half its squares, not both: factor is the square of weight."
        )
    if is_known(factor) and not np.all(NOT_NEGATIVE.holds(np.asarray(factor))):
        raise ModelError(
            f"{call}: factor must be {NOT_NEGATIVE.words}, as it multiplies a sum of squares; got {shown(factor)}."
        )
    return safe_sqrt(jnp.asarray(factor, float))


class Scheduled(eqx.Module):
    """A cost whose weight differs from step to step: costs of phases, or of one moment.

    `weights` has a row for each of the num_steps + 1 states, a number or as many as `goal` has residuals; those of the
    last row count at the end alone. Residuals are multiplied by weights, costs that are numbers by their squares. Give
    `factors=` in place of weights for the squares themselves. Phases of 20, 30 and 10 steps:
    `Scheduled(goal, jnp.repeat(jnp.array([1.0, 0.0, 5.0]), jnp.array([20, 30, 11]), total_repeat_length=61))`.
    """

    goal: Callable
    weights: Float[Array, "steps_and_end *size"]

    def __init__(self, goal: Callable, weights: ArrayLike = 1.0, *, factors: ArrayLike | None = None):
        if not callable(goal):
            raise ModelError(f"Scheduled: the first argument must be a cost, got {type(goal).__name__}.")
        self.goal, self.weights = goal, weight_of("Scheduled", weights, factors)
        if self.weights.ndim not in (1, 2):
            raise ModelError(
                f"Scheduled: weights has shape {self.weights.shape}; give (num_steps + 1,), a number for each state, "
                "or (num_steps + 1, size of the residual)."
            )

    def weight_at(self, k: Any, shape: tuple[int, ...], dtype: Any) -> Float[Array, "*size"]:
        """The weight of step k for what `goal` returns: raises unless it is a number or has that shape."""
        weight = self.weights[k].astype(dtype)
        if weight.shape not in ((), shape):
            returned = f"residuals of shape {shape}" if shape else "a number"
            hint = f"(num_steps + 1,) or (num_steps + 1, {shape[0]})" if len(shape) == 1 else "(num_steps + 1,)"
            raise ModelError(
                f"Scheduled: {name_of(self.goal)} returns {returned}, and weights has shape {self.weights.shape}; give "
                f"{hint}."
            )
        return weight

    def __call__(self, *given: Any) -> Any:
        """Raises: only a problem knows the step."""
        raise ModelError(
            "Scheduled is a running or terminal cost of a Problem, which knows the step; it cannot be called, nor "
            "stand within another cost or a constraint. Constraints have when=."
        )


def name_of(term: Any) -> str:
    """What messages call a cost: the name of its function or class."""
    return getattr(term, "__name__", type(term).__name__)


def require_schedules(terms: tuple[Callable, ...], num_steps: int) -> None:
    """Raises unless every scheduled cost has a weight for each state."""
    for term in terms:
        if isinstance(term, Scheduled) and term.weights.shape[0] != num_steps + 1:
            raise ModelError(
                f"Problem: Scheduled({type(term.goal).__name__}, …) has {term.weights.shape[0]} rows of weights; it "
                f"needs num_steps + 1 = {num_steps + 1}, one for each state."
            )


def weighted(value: Array, weight: Array) -> Array:
    """Residuals times a weight, or a cost that is a number times its square."""
    return weight * weight * value if jnp.ndim(value) == 0 else weight * value
