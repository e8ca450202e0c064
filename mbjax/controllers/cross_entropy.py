"""Cross-entropy method (CEM): a plan moves to the mean of the cheapest samples, and samples draw closer to it."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.spatial import safe_sqrt
from mbjax.trajectory_optimization import Problem

from .sampled_plans import SampledPlan, costs_of, draw, improved_plan, require_samples


def cem_step(
    problem: Problem,
    plan: SampledPlan,
    state: Any,
    key: Array,
    *,
    samples: int = 128,
    elites: int = 16,
    least_deviation: Any = 0.0,
    knots: int | None = None,
    iterations: int = 4,
) -> tuple[Float[Array, " nu"], SampledPlan]:
    """The effort to apply at `state`, and the plan that it comes from: `plan` moved on by a step and improved.

    Each turn draws samples about the plan, and takes the mean and the standard deviation of the `elites` cheapest as
    the next plan's, the latter not below `least_deviation`, so that later steps still search (Kobilarov 2012,
    "Cross-entropy motion planning", algorithm 1; Pinneri et al. 2020). Costs, limits, stages and dynamics are those of
    a `trajectory_optimization.Problem`; make the first plan by `sampled_plan`. With `knots` the noise is linear between
    so many times. The same key gives the same plan. In derivatives the elites are held as chosen.
    """
    require_samples("cem_step", samples, knots)
    if isinstance(elites, bool) or not isinstance(elites, int | np.integer) or not 2 <= elites <= samples:
        raise ModelError(f"cem_step: elites must be a whole number from 2 to samples = {samples}, got {elites!r}.")
    improve = CrossEntropy(jnp.asarray(least_deviation, plan.efforts.dtype), samples, elites, knots)
    return improved_plan("cem_step", improve, problem, plan, state, key, iterations)


class CrossEntropy(eqx.Module):
    """One turn of the cross-entropy method."""

    least_deviation: Float[Array, "..."]
    samples: int = eqx.field(static=True)
    elites: int = eqx.field(static=True)
    knots: int | None = eqx.field(static=True)

    def __call__(self, problem: Problem, plan: SampledPlan, key: Array) -> SampledPlan:
        efforts = draw(problem, plan, key, self.samples, self.knots)
        costs = costs_of(problem, efforts)
        _, best = jax.lax.top_k(-jax.lax.stop_gradient(costs), self.elites)
        chosen = efforts[best]
        mean = jnp.mean(chosen, axis=0)
        deviation = jnp.maximum(safe_sqrt(jnp.mean((chosen - mean) ** 2, axis=0)), self.least_deviation)
        return SampledPlan(mean, deviation, jnp.min(costs))
