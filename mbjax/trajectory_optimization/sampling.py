"""Samples: efforts drawn about a plan, and what the motions under them cost."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.simulation import State, rollout

from .expansion import total_cost
from .multipliers import Penalties
from .problem import Problem
from .rolled_out import rolled_out


class SampledPlan(eqx.Module):
    """Efforts of the steps to come, how far samples lie from them, and what the motion under them costs."""

    efforts: Float[Array, "steps nu"]
    deviation: Float[Array, "steps nu"]
    cost: Float[Array, ""]


class Samples(NamedTuple):
    """Efforts that were drawn, and what their motions cost: infinite where that is not finite."""

    efforts: Float[Array, "samples steps nu"]
    costs: Float[Array, " samples"]

    @property
    def best(self) -> Float[Array, "steps nu"]:
        """The cheapest efforts."""
        return self.efforts[jnp.argmin(jax.lax.stop_gradient(self.costs))]


def draw_samples(
    problem: Problem,
    plan: SampledPlan,
    key: Array,
    samples: int,
    knots: int | None,
    penalties: Penalties | None = None,
) -> Samples:
    """Efforts about those of a plan, with their costs."""
    efforts = draw(problem, plan, key, samples, knots)
    return Samples(efforts, costs_of(problem, efforts, penalties))


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


def within_limits(problem: Problem, efforts: Float[Array, "*n steps nu"]) -> Float[Array, "*n steps nu"]:
    """Efforts within the limits of the problem."""
    return efforts if problem.low is None else jnp.clip(efforts, problem.low, problem.high)


def interpolation(knots: int, steps: int) -> Float[np.ndarray, "steps knots"]:
    """Shares of knots in the values of steps, linear between them, scaled to keep the deviation of a knot."""
    places = np.linspace(0.0, knots - 1.0, steps)
    shares = np.stack([np.interp(places, np.arange(knots), row) for row in np.eye(knots)], axis=1)
    return shares / np.linalg.norm(shares, axis=1, keepdims=True)


def costs_of(
    problem: Problem, efforts: Float[Array, "samples steps nu"], penalties: Penalties | None = None
) -> Float[Array, " samples"]:
    """Cost of the motion under each sample; infinite where it is not finite."""
    costs = jax.vmap(lambda u: total_cost(problem, motion(problem, u), u, penalties))(efforts)
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
