"""Model predictive path integral control (MPPI): a plan moves to the mean of samples, the cheap ones counting most."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.trajectory_optimization import Problem
from mbjax.trajectory_optimization.path_integral import require_temperature, weighted_mean
from mbjax.trajectory_optimization.sampling import SampledPlan, draw_samples, require_samples

from .sampled_plans import improved_plan


def mppi_step(
    problem: Problem,
    plan: SampledPlan,
    state: Any,
    key: Array,
    *,
    samples: int = 128,
    temperature: Any = 1.0,
    knots: int | None = None,
    iterations: int = 1,
) -> tuple[Float[Array, " nu"], SampledPlan]:
    """The effort to apply at `state`, and the plan that it comes from: `plan` moved on by a step and improved.

    u' = Σ w_i u_i,    w_i = exp(-(S_i - min S) / λ) / Σ_j exp(-(S_j - min S) / λ)

    of samples u_i about the plan and the costs S_i of their motions (Williams et al. 2018, "Information-theoretic model
    predictive control", algorithm 2, with the efforts' cost left to the problem). The `temperature` λ is in units of
    the cost: below the differences of costs the best sample decides, above all count alike. Costs, limits, stages and
    dynamics are those of a `trajectory_optimization.Problem`; make the first plan by `sampled_plan`. With `knots` the
    noise is linear between so many times. The same key gives the same plan. Its derivatives are those of the mean, with
    the noise as drawn.
    """
    require_samples("mppi_step", samples, knots)
    require_temperature("mppi_step", temperature)
    improve = PathIntegralTurn(jnp.asarray(temperature, plan.efforts.dtype), samples, knots)
    return improved_plan("mppi_step", improve, problem, plan, state, key, iterations)


class PathIntegralTurn(eqx.Module):
    """One turn of MPPI."""

    temperature: Float[Array, ""]
    samples: int = eqx.field(static=True)
    knots: int | None = eqx.field(static=True)

    def __call__(self, problem: Problem, plan: SampledPlan, key: Array) -> SampledPlan:
        drawn = draw_samples(problem, plan, key, self.samples, self.knots)
        return weighted_mean(plan, drawn, self.temperature)
