"""Cross-entropy method (CEM): a plan moves to the mean of the cheapest samples, and samples draw closer to it."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.trajectory_optimization import Problem
from mbjax.trajectory_optimization.cross_entropy import mean_of_elites, require_elites, require_least_deviation
from mbjax.trajectory_optimization.problem import num_efforts
from mbjax.trajectory_optimization.sampling import SampledPlan, draw_samples, require_samples

from .sampled_plans import improved_plan


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
    so many times. Samples whose cost is not finite do not count; where none is, the plan and its deviation stay. The
    same key gives the same plan. In derivatives the elites are held as chosen.
    """
    require_samples("cem_step", samples, knots)
    require_elites("cem_step", elites, samples)
    require_least_deviation("cem_step", least_deviation, (problem.num_steps, num_efforts(problem)))
    improve = CrossEntropyTurn(jnp.asarray(least_deviation, plan.efforts.dtype), samples, elites, knots)
    return improved_plan("cem_step", improve, problem, plan, state, key, iterations)


class CrossEntropyTurn(eqx.Module):
    """One turn of the cross-entropy method."""

    least_deviation: Float[Array, "..."]
    samples: int = eqx.field(static=True)
    elites: int = eqx.field(static=True)
    knots: int | None = eqx.field(static=True)

    def __call__(self, problem: Problem, plan: SampledPlan, key: Array) -> SampledPlan:
        drawn = draw_samples(problem, plan, key, self.samples, self.knots)
        return mean_of_elites(plan, drawn, self.elites, self.least_deviation)
