"""Costs of a problem at one step: what its functions return, with weights of the step and lengths in time."""

from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from mbjax.errors import ModelError
from mbjax.number_rules import shown
from mbjax.spatial import safe_sqrt

from .problem import Problem, call_term
from .weights import Scheduled, name_of, weighted


def running_costs(problem: Problem, x: Any, u: Any, stage: Any, k: Any, motion: Any = None) -> list[Array]:
    """Numbers and vectors of residuals of step k, whose motion may be known."""
    costs = [term_at_step(problem, term, x, u, stage, k, motion) for term in problem.running]
    if problem.per == "step":
        return costs
    root = safe_sqrt(jnp.asarray(problem.step_length(u), u.dtype))
    return [weighted(cost, root) for cost in costs]


def terminal_costs(problem: Problem, x: Any) -> list[Array]:
    """Numbers and vectors of residuals of the last state."""
    return [term_at_step(problem, term, x, None, problem.stage(-1), -1) for term in problem.terminal]


def term_at_step(problem: Problem, term: Any, x: Any, u: Any, stage: Any, k: Any, motion: Any = None) -> Array:
    """One cost's number or residuals, with the weights of a schedule."""
    if not isinstance(term, Scheduled):
        return checked_cost(term, call_term(term, problem.model, x, u, stage, motion))
    value = checked_cost(term.goal, call_term(term.goal, problem.model, x, u, stage, motion))
    return weighted(value, term.weight_at(k, value.shape, value.dtype))


def checked_cost(term: Any, value: Any) -> Array:
    """What a cost returned, as an array; raises `ModelError` unless it is a number or an array of them, of floats."""
    is_float = isinstance(value, float) or jnp.issubdtype(getattr(value, "dtype", int), jnp.floating)
    if not is_float:
        raise ModelError(
            f"Problem: the cost {name_of(term)} must return a floating-point number or an array of residuals, got "
            f"{shown(value)}; join several by jnp.concatenate."
        )
    return jnp.asarray(value)
