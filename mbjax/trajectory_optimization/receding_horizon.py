"""Model predictive control: a few iterations from the last plan, moved on by one step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError

from .abstract_solver import AbstractSolver
from .augmented_lagrangian import AugmentedLagrangian
from .feasibility_ddp import FeasibilityDDP
from .problem import Problem, prepared, require_like_start, with_start
from .solution import Solution
from .solve import improved, starting_trajectory


def mpc_step(
    problem: Problem,
    plan: Solution,
    state: Any,
    solver: AbstractSolver | None = None,
    *,
    iterations: int | None = None,
) -> tuple[Float[Array, " nu"], Solution]:
    """The effort to apply at `state`, and the plan that it comes from: `plan` moved on by a step and improved.

    Without a `solver` it takes at most `iterations` iterations, 1 by default, and twice as many with constraints, so
    that no call takes longer, whether they converge or not. A solver of your own brings its own limits; constraints put
    `AugmentedLagrangian` around it, as in `solve`. The last step of the old plan is repeated. With `stages`, give the
    problem those of the new horizon. It runs the program that `solve` has compiled, and the plan that it returns has
    the shapes of the one given, as `jax.lax.scan` needs; a solver of your own must be the one of `solve`, apart from
    its numbers. Raises `ModelError` for `iterations` beside a solver, or below 1, for a plan that is none, and for a
    state that is not like the problem's start.
    """
    if not isinstance(plan, Solution):
        raise ModelError(f"mpc_step: plan must be what solve or mpc_step returned, got {type(plan).__name__}.")
    require_like_start("mpc_step", problem, state)
    if solver is not None and iterations is not None:
        raise ModelError(
            f"mpc_step: iterations={iterations!r} is for the default solver; give your solver max_iterations instead."
        )
    iterations = 1 if iterations is None else iterations
    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or iterations < 1:
        raise ModelError(f"mpc_step: iterations must be a whole number of at least 1, got {iterations!r}.")
    problem = prepared(with_start(problem, state))
    if solver is None:
        iterations = int(iterations)
        solver = FeasibilityDDP(max_iterations=iterations + 1)  # the first only evaluates the guess
        if problem.constraints:
            solver = AugmentedLagrangian(inner=solver, max_iterations=2 * iterations + 2, max_rounds=2)
    elif problem.constraints and not solver.takes_constraints:
        solver = AugmentedLagrangian(inner=solver)
    states, efforts, warm = starting_trajectory(problem, moved_on(plan))
    length = max(plan.report.history.cost.shape[-1], solver.max_iterations)
    found = improved(problem, states, efforts, warm, solver, length, None)
    return found.efforts[0], found


@eqx.filter_jit
def moved_on(plan: Solution) -> Solution:
    """The plan one step later, with its last step repeated."""

    def later(x: Array) -> Array:
        return jnp.concatenate([x[1:], x[-1:]])

    return Solution(
        jax.tree.map(later, plan.states),
        later(plan.efforts),
        later(plan.gains),
        later(plan.costates),
        jax.tree.map(later, plan.multipliers),
        plan.cost,
        plan.report,
        plan.weight,
    )
