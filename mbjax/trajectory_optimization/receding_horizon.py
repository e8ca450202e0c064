"""Model predictive control: a few iterations from the last plan, moved on by one step."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from .abstract_solver import AbstractSolver
from .augmented_lagrangian import AugmentedLagrangian
from .feasibility_ddp import FeasibilityDDP
from .problem import Problem, prepared, with_start
from .solution import Solution
from .solve import improved, starting_trajectory


def mpc_step(
    problem: Problem, plan: Solution, state: Any, solver: AbstractSolver | None = None, *, iterations: int = 1
) -> tuple[Float[Array, " nu"], Solution]:
    """The effort to apply at `state`, and the plan that it comes from: `plan` moved on by a step and improved.

    It takes at most `iterations` iterations, so that no call takes longer, whether they converge or not. The last step
    of the old plan is repeated. With `stages`, give the problem those of the new horizon. It runs the program that
    `solve` has compiled, and the plan that it returns has the shapes of the one given, as `jax.lax.scan` needs; a
    solver of your own must be the one of `solve`, apart from its numbers.
    """
    problem = prepared(with_start(problem, state))
    if solver is None:
        solver = FeasibilityDDP(max_iterations=iterations + 1)  # the first only evaluates the guess
        if problem.constraints:
            solver = AugmentedLagrangian(inner=solver, max_iterations=2 * iterations + 2, max_rounds=2)
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
