"""Multipliers of constraints along a trajectory, and the penalties that they turn constraints into."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.simulation import State
from mbjax.spatial import safe_sqrt

from .constraints import Constraint
from .problem import Problem, call_term
from .slopes import Slopes, slopes_of_goal


class Penalties(eqx.Module):
    """An augmented Lagrangian's multipliers, (num_steps + 1, size) for each constraint, and its weight."""

    multipliers: tuple[Float[Array, "steps_and_end size"], ...]
    weight: Float[Array, ""]

    def at(self, k: Any) -> "Penalties":
        """Those of one step."""
        return Penalties(tuple(multiplier[k] for multiplier in self.multipliers), self.weight)


def no_penalties(problem: Problem, states: Any, efforts: Array, weight: Any) -> Penalties | None:
    """Zero multipliers of all constraints; None if there are none."""
    if not problem.constraints:
        return None
    last, first = jax.tree.map(lambda x: x[-1], states), jax.tree.map(lambda x: x[0], states)
    multipliers = []
    for constraint in problem.constraints:
        given = (last, None) if constraint.at == "end" else (first, efforts[0] if constraint.at == "running" else None)
        value = jax.eval_shape(lambda x, u, c=constraint: evaluate(c, problem, x, u, problem.stage(0)), *given)
        multipliers.append(jnp.zeros((problem.num_steps + 1, *value.shape), efforts.dtype))
    return Penalties(tuple(multipliers), jnp.asarray(weight, efforts.dtype))


def evaluate(
    constraint: Constraint, problem: Problem, state: Any, effort: Any, stage: Any, motion: Any = None
) -> Float[Array, " size"]:
    """Values of a constraint at one step, whose motion may be known, as a vector."""
    effort = effort if constraint.at == "running" else None
    value = jnp.asarray(call_term(constraint.function, problem.model, state, effort, stage, motion))
    for bound in (constraint.lower, constraint.upper):
        if bound.size != 1 and bound.shape not in (value.shape, (value.size,)):
            raise ModelError(
                f"Constraint '{constraint.name}': its function returns shape {value.shape} and a bound has shape "
                f"{bound.shape}; give a number, or bounds of the shape of the value."
            )
    return jnp.ravel(value)


def is_evaluated(constraint: Constraint, at_end: bool) -> bool:
    """Whether the constraint is evaluated at the end, or at steps before it."""
    return constraint.at == "all" or (constraint.at == "end") == at_end


def bounds_of(constraint: Constraint, like: Float[Array, " size"]) -> tuple[Array, Array]:
    """Lower and upper bounds of each entry, of values that `evaluate` has checked."""
    bounds = (jnp.ravel(bound).astype(like.dtype) for bound in (constraint.lower, constraint.upper))
    lower, upper = (jnp.broadcast_to(bound, like.shape) for bound in bounds)
    return lower, upper


def violation(constraint: Constraint, value: Float[Array, "*steps size"], multiplier: Array, weight: Array) -> Array:
    """Distance of value + multiplier / weight from the bounds, with its sign: zero inside of them."""
    lower, upper = bounds_of(constraint, value.reshape(-1, value.shape[-1])[0])
    shifted = value + multiplier / weight
    return shifted - jnp.clip(shifted, lower, upper)


def penalty_residuals(
    problem: Problem,
    penalties: Penalties,
    state: Any,
    effort: Any,
    stage: Any,
    k: Any,
    at_end: bool,
    motion: Any = None,
) -> list[Float[Array, " size"]]:
    """Residuals whose half squares are the augmented Lagrangian's terms of step k."""
    residuals = []
    for constraint, multiplier in zip(problem.constraints, penalties.multipliers, strict=True):
        if not is_evaluated(constraint, at_end):
            continue
        value = evaluate(constraint, problem, state, effort, stage, motion)
        distance = violation(constraint, value, multiplier, penalties.weight)
        if constraint.when is not None:
            distance = jnp.where(constraint.when[k], distance, 0.0)
        residuals.append(safe_sqrt(penalties.weight) * distance)
    return residuals


def penalty_slopes(
    problem: Problem, penalties: Penalties, state: State, effort: Any, stage: Any, k: Any, at_end: bool, motion: Any
) -> tuple[list[Slopes], tuple[Constraint, ...], Penalties]:
    """Closed forms of the augmented Lagrangian's terms of step k, and the constraints that have none."""
    closed, others, multipliers = [], [], []
    for constraint, multiplier in zip(problem.constraints, penalties.multipliers, strict=True):
        given = (effort if constraint.at == "running" else None, stage)
        given = (problem.model, state, *(x for x in given if x is not None))
        is_there = is_evaluated(constraint, at_end)
        found = slopes_of_goal(constraint.function, given, motion) if is_there else None
        if found is None:
            others, multipliers = [*others, constraint], [*multipliers, multiplier]
            continue
        value = jnp.concatenate([part.residual for part in found])
        distance = violation(constraint, value, multiplier, penalties.weight)
        acts = distance != 0.0 if constraint.when is None else (distance != 0.0) & constraint.when[k]
        root, ends = safe_sqrt(penalties.weight), np.cumsum([len(part.residual) for part in found])[:-1]
        for part, own, is_acting in zip(found, jnp.split(distance, ends), jnp.split(acts, ends), strict=True):
            closed.append(part._replace(residual=own).scaled(jnp.where(is_acting, root, 0.0)))
    return closed, tuple(others), Penalties(tuple(multipliers), penalties.weight)


def values_along(problem: Problem, states: Any, efforts: Float[Array, "steps nu"]) -> tuple[Array, ...]:
    """Values of every constraint at every step, (num_steps + 1, size) each; NaN where it is not evaluated."""
    last = jax.tree.map(lambda x: x[-1], states)
    before = jax.tree.map(lambda x: x[:-1], states)
    stages, stage_at_end = jax.tree.map(lambda x: x[:-1], problem.stages), problem.stage(-1)
    found = []
    for constraint in problem.constraints:

        def value(state: Any, effort: Any, stage: Any, c: Constraint = constraint) -> Array:
            return evaluate(c, problem, state, effort, stage)

        at_end = value(last, None, stage_at_end) if is_evaluated(constraint, True) else None
        running = jax.vmap(value)(before, efforts, stages) if is_evaluated(constraint, False) else None
        if running is None:
            assert at_end is not None
            running = jnp.full((problem.num_steps, *at_end.shape), jnp.nan, at_end.dtype)
        if at_end is None:
            at_end = jnp.full(running.shape[1:], jnp.nan, running.dtype)
        values = jnp.concatenate([running, at_end[None]])
        if constraint.when is not None:
            values = jnp.where(constraint.when[:, None], values, jnp.nan)
        found.append(values)
    return tuple(found)


def violations_along(problem: Problem, values: tuple[Array, ...]) -> tuple[Float[Array, "steps_and_end size"], ...]:
    """Distances from the bounds, zero inside and where a constraint is not evaluated; NaN values stay infinite."""
    distances = []
    for constraint, value in zip(problem.constraints, values, strict=True):
        lower, upper = bounds_of(constraint, value[0])
        distance = jnp.maximum(jnp.maximum(lower - value, value - upper), 0.0)
        distances.append(jnp.where(mask_of(problem, constraint)[:, None], bad_as_inf(distance), 0.0))
    return tuple(distances)


def bad_as_inf(x: Array) -> Array:
    """x with NaN replaced by infinity, so that no comparison overlooks it."""
    return jnp.where(jnp.isnan(x), jnp.inf, x)


def mask_of(problem: Problem, constraint: Constraint) -> Array:
    """Whether the constraint is evaluated, at each of the num_steps + 1 states."""
    at_end = jnp.arange(problem.num_steps + 1) == problem.num_steps
    mask = jnp.where(at_end, is_evaluated(constraint, True), is_evaluated(constraint, False))
    return mask if constraint.when is None else mask & constraint.when


def updated(problem: Problem, penalties: Penalties, values: tuple[Array, ...], weight: Array) -> Penalties:
    """Multipliers after a step of the method of multipliers: weight times the shifted distances from the bounds."""
    multipliers = []
    for constraint, multiplier, value in zip(problem.constraints, penalties.multipliers, values, strict=True):
        known = jnp.where(mask_of(problem, constraint)[:, None], value, 0.0)
        moved = penalties.weight * violation(constraint, known, multiplier, penalties.weight)
        multipliers.append(jnp.where(mask_of(problem, constraint)[:, None], moved, 0.0))
    return Penalties(tuple(multipliers), weight)
