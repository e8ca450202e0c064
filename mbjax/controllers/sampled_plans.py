"""What samplers share: a plan to start from, moved on by a step and improved in turns."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.number_rules import FINITE, NOT_NEGATIVE, is_known, shown
from mbjax.randomization.keys import require_one_key
from mbjax.trajectory_optimization import Problem
from mbjax.trajectory_optimization.problem import dtype_of, num_efforts, prepared, with_start
from mbjax.trajectory_optimization.sampling import SampledPlan, within_limits

Improve = Callable[[Problem, "SampledPlan", Array], "SampledPlan"]


def sampled_plan(problem: Problem, deviation: Any, efforts: Any = 0.0) -> SampledPlan:
    """A plan to start from: `efforts`, zero by default, and the standard `deviation` of samples, in N m or N.

    Both are numbers, (nu,) or (steps, nu). The cost is infinite until the plan is improved.
    """
    shape, dtype = (problem.num_steps, num_efforts(problem)), dtype_of(problem)
    filled = []
    for name, value, rule in (("deviation", deviation, NOT_NEGATIVE), ("efforts", efforts, FINITE)):
        if is_known(value) and not np.all(rule.holds(np.asarray(value))):
            raise ModelError(f"sampled_plan: {name} must be {rule.words}, got {shown(value)}.")
        value = jnp.asarray(value, dtype)
        if value.shape not in ((), shape[1:], shape):
            raise ModelError(f"sampled_plan: {name} has shape {value.shape}; give a number, {shape[1:]} or {shape}.")
        filled.append(jnp.broadcast_to(value, shape))
    return SampledPlan(within_limits(problem, filled[1]), filled[0], jnp.asarray(jnp.inf, dtype))


def improved_plan(
    call: str, improve: Improve, problem: Problem, plan: SampledPlan, state: Any, key: Array, iterations: int
) -> tuple[Float[Array, " nu"], SampledPlan]:
    """The first effort of the plan moved on by a step and improved at `state`, and that plan."""
    if problem.constraints:
        names = ", ".join(f"'{constraint.name}'" for constraint in problem.constraints)
        raise ModelError(
            f"{call}: samples know no constraints, and the problem has {names}. Make costs of them by "
            "trajectory_optimization.Barrier, or take trajectory_optimization.mpc_step."
        )
    shape = (problem.num_steps, num_efforts(problem))
    if plan.efforts.shape != shape:
        raise ModelError(f"{call}: the plan has efforts {plan.efforts.shape}, the problem needs {shape}.")
    require_one_key(call, key)
    if isinstance(iterations, bool) or not isinstance(iterations, int | np.integer) or iterations < 1:
        raise ModelError(f"{call}: iterations must be a whole number of at least 1, got {iterations!r}.")
    return improve_in_turns(improve, prepared(with_start(problem, state)), plan, key, int(iterations))


@eqx.filter_jit
def improve_in_turns(
    improve: Improve, problem: Problem, plan: SampledPlan, key: Array, iterations: int
) -> tuple[Float[Array, " nu"], SampledPlan]:
    """All turns as one program."""
    plan = SampledPlan(within_limits(problem, later(plan.efforts)), later(plan.deviation), plan.cost)

    def turn(plan: SampledPlan, key: Array) -> tuple[SampledPlan, None]:
        return improve(problem, plan, key), None

    plan, _ = jax.lax.scan(turn, plan, jax.random.split(key, iterations))
    return plan.efforts[0], plan


def later(x: Float[Array, "steps nu"]) -> Float[Array, "steps nu"]:
    """The same one step later, with its last step repeated."""
    return jnp.concatenate([x[1:], x[-1:]])
