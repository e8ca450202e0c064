"""Costs whose residuals are numbers of the state or the effort, one by one: their Jacobians are diagonal and known.

Efforts, velocities, and positions where velocities are position rates. Differentiating them, and multiplying their
Jacobians out, took as long as everything else that costs an expansion of an arm's plan.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.simulation import State
from mbjax.spatial import safe_sqrt

from .problem import Problem
from .weights import Scheduled


class DiagonalCosts(NamedTuple):
    """Value, gradient and the diagonal of the Hessian of a sum of such costs, by the tangent z = (dx, du) or dx."""

    value: Float[Array, ""]
    gradient: Float[Array, " nz"]
    curvature: Float[Array, " nz"]


def has_diagonal(problem: Problem, term: Any, x: Any) -> bool:
    """Whether the closed form of a cost holds: for a `State`, and for steps whose length no effort changes."""
    goal = term.goal if isinstance(term, Scheduled) else term
    is_timed = problem.per == "second" and hasattr(problem.dynamics, "step_length")
    is_known = getattr(goal, "is_diagonal", None)
    return isinstance(x, State) and not is_timed and is_known is not None and is_known(problem.model)


def diagonal_costs(
    problem: Problem, terms: tuple, x: State, u: Any, stage: Any, k: Any, ndx: int
) -> DiagonalCosts | None:
    """The sum of costs that have a diagonal; None if there are none. At the end `u` is None."""
    if not terms:
        return None
    size = ndx if u is None else ndx + u.shape[0]
    starts = {"q": 0, "v": ndx // 2, "x": 0, "u": ndx}
    total = [jnp.zeros((), x.q.dtype), jnp.zeros(size, x.q.dtype), jnp.zeros(size, x.q.dtype)]
    for term in terms:
        goal = term.goal if isinstance(term, Scheduled) else term
        part, r, slope = goal.diagonal(problem.model, x, *(() if u is None else (u,)))
        scale = term.weights[k].astype(r.dtype) if isinstance(term, Scheduled) else jnp.ones((), r.dtype)
        if problem.per == "second" and u is not None:
            scale = scale * safe_sqrt(jnp.asarray(problem.step_length(u), r.dtype))
        r, slope = scale * r, jnp.broadcast_to(scale * slope, r.shape)
        padding = starts[part], size - starts[part] - r.shape[0]
        total[0] = total[0] + 0.5 * r @ r
        total[1] = total[1] + jnp.pad(slope * r, padding)
        total[2] = total[2] + jnp.pad(slope * slope, padding)
    return DiagonalCosts(*total)
