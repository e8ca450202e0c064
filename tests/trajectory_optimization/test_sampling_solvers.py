"""MPPI and CEM as solvers of a problem: near the optimum within limits, and a start for searches by derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to

from .problems import pendulum

SOLVERS = [
    to.PathIntegral(3.0, samples=128, temperature=2.0, knots=8, max_iterations=150),
    to.CrossEntropy(3.0, samples=128, elites=16, least_deviation=0.02, knots=8, max_iterations=150),
]


@pytest.mark.parametrize("solver", SOLVERS, ids=["MPPI", "CEM"])
def test_samples_end_near_the_optimum_within_limits_and_start_a_search_by_derivatives(solver):
    problem = pendulum(limited=True)
    best = to.solve(problem)
    plan = to.solve(problem, solver=solver)
    assert plan.report.converged, str(plan.report)
    assert best.cost - 1e-9 <= plan.cost < 1.2 * best.cost
    assert jnp.all((plan.efforts >= problem.low) & (plan.efforts <= problem.high))
    costs = plan.report.history.cost[: plan.report.iterations]
    assert jnp.all(jnp.diff(costs) <= 0.0)
    np.testing.assert_allclose(costs[-1], plan.cost, rtol=1e-12)
    polished = to.solve(problem, plan)
    np.testing.assert_allclose(polished.cost, best.cost, rtol=1e-8)


def test_seeds_decide_what_is_drawn_also_in_a_batch():
    problem = pendulum(limited=True)

    def cost(seed):
        return to.solve(problem, solver=to.PathIntegral(3.0, samples=16, knots=8, max_iterations=5, seed=seed)).cost

    together = jax.jit(jax.vmap(cost))(jnp.arange(3))
    assert len(set(np.asarray(together).tolist())) == 3


def test_what_samplers_cannot_be():
    with pytest.raises(mbjax.ModelError, match="CrossEntropy: elites must be"):
        to.CrossEntropy(samples=8, elites=9)
    with pytest.raises(mbjax.ModelError, match="PathIntegral: samples must be"):
        to.PathIntegral(samples=1)
    with pytest.raises(mbjax.ModelError, match="PathIntegral: temperature must be a number above 0, got 0"):
        to.PathIntegral(temperature=0.0)
    for deviation in (np.nan, -1.0):
        with pytest.raises(mbjax.ModelError, match="PathIntegral: deviation must be a finite number >= 0"):
            to.PathIntegral(deviation)
    with pytest.raises(mbjax.ModelError, match="patience must be a whole number of at least 1, got 0"):
        to.CrossEntropy(patience=0)
    with pytest.raises(mbjax.ModelError, match="PathIntegral: deviation has shape"):
        to.solve(pendulum(), solver=to.PathIntegral(jnp.ones(3)))
