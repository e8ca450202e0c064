"""What samplers share: a plan, efforts drawn about it, and what the motions under them cost."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.simulation import State, rollout
from mbjax.trajectory_optimization import Problem
from mbjax.trajectory_optimization.expansion import total_cost
from mbjax.trajectory_optimization.problem import dtype_of, num_efforts, prepared, with_start
from mbjax.trajectory_optimization.rolled_out import rolled_out

Improve = Callable[[Problem, "SampledPlan", Array], "SampledPlan"]


class SampledPlan(eqx.Module):
    """Efforts of the steps to come, how far samples lie from them, and what the motion under them costs."""

    efforts: Float[Array, "steps nu"]
    deviation: Float[Array, "steps nu"]
    cost: Float[Array, ""]


def sampled_plan(problem: Problem, deviation: Any, efforts: Any = 0.0) -> SampledPlan:
    """A plan to start from: `efforts`, zero by default, and the standard `deviation` of samples, in N m or N.

    Both are numbers, (nu,) or (steps, nu). The cost is infinite until the plan is improved.
    """
    shape, dtype = (problem.num_steps, num_efforts(problem)), dtype_of(problem)
    filled = []
    for name, value in (("deviation", deviation), ("efforts", efforts)):
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


def within_limits(problem: Problem, efforts: Float[Array, "*n steps nu"]) -> Float[Array, "*n steps nu"]:
    """Efforts within the limits of the problem."""
    return efforts if problem.low is None else jnp.clip(efforts, problem.low, problem.high)


def draw(
    problem: Problem, plan: SampledPlan, key: Array, samples: int, knots: int | None
) -> Float[Array, "samples steps nu"]:
    """Efforts about those of the plan, which are the first sample; beyond limits they are cut off.

    With `knots` the noise is drawn at so many times and is linear between them, with the deviation of each step.
    """
    steps, nu = plan.efforts.shape
    drawn = jax.random.normal(key, (samples - 1, knots or steps, nu), plan.efforts.dtype)
    if knots is not None:
        drawn = jnp.tensordot(drawn, jnp.asarray(interpolation(knots, steps), drawn.dtype), ((1,), (1,)))
        drawn = jnp.swapaxes(drawn, 1, 2)
    moved = plan.efforts + plan.deviation * drawn
    return within_limits(problem, jnp.concatenate([plan.efforts[None], moved]))


def interpolation(knots: int, steps: int) -> Float[np.ndarray, "steps knots"]:
    """Shares of knots in the values of steps, linear between them, scaled to keep the deviation of a knot."""
    places = np.linspace(0.0, knots - 1.0, steps)
    shares = np.stack([np.interp(places, np.arange(knots), row) for row in np.eye(knots)], axis=1)
    return shares / np.linalg.norm(shares, axis=1, keepdims=True)


def costs_of(problem: Problem, efforts: Float[Array, "samples steps nu"]) -> Float[Array, " samples"]:
    """Cost of the motion under each sample; infinite where it is not finite."""
    costs = jax.vmap(lambda u: total_cost(problem, motion(problem, u), u))(efforts)
    return jnp.where(jnp.isfinite(costs), costs, jnp.inf)


def motion(problem: Problem, efforts: Float[Array, "steps nu"]) -> Any:
    """States (steps + 1) under efforts: of the model's `rollout`, or of the problem's own dynamics."""
    if problem.dynamics is not None:
        return rolled_out(problem, efforts)
    assert problem.model is not None
    trajectory = rollout(problem.model, problem.start, efforts)
    return State(trajectory.q, trajectory.v, trajectory.time)


def require_samples(call: str, samples: Any, knots: Any, least: int = 2) -> None:
    """Raises `ModelError` for numbers of samples and knots that are none."""
    if isinstance(samples, bool) or not isinstance(samples, int | np.integer) or samples < least:
        raise ModelError(f"{call}: samples must be a whole number of at least {least}, got {samples!r}.")
    if knots is not None and (isinstance(knots, bool) or not isinstance(knots, int | np.integer) or knots < 2):
        raise ModelError(f"{call}: knots must be None or a whole number of at least 2, got {knots!r}.")
