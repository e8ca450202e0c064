"""Weights as factors, by step and by second: costs that equal sums written here."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.expansion import total_cost
from mbjax.trajectory_optimization.rolled_out import rolled_out

from .problems import DT, STEPS, EffortCost, Goal, Linear, Pendulum, linear_quadratic, pendulum

LIMITS = jnp.full(1, -jnp.inf), jnp.full(1, jnp.inf)


def test_a_factor_is_the_square_of_a_weight():
    u = jnp.arange(3.0)
    np.testing.assert_allclose(to.Effort(factor=0.09)(None, None, u), to.Effort(0.3)(None, None, u), rtol=1e-15)
    np.testing.assert_allclose(to.Effort(factor=[4.0, 0.0, 1.0]).weight, [2.0, 0.0, 1.0])
    with pytest.raises(mbjax.ModelError, match="not both"):
        to.Effort(0.5, factor=2.0)
    with pytest.raises(mbjax.ModelError, match="CenterOfMass: factor must be a finite number >= 0"):
        to.CenterOfMass(jnp.zeros(3), factor=-1.0)
    for wrong in (jnp.nan, [1.0, jnp.inf, 0.0], "heavy"):
        with pytest.raises(mbjax.ModelError, match="CenterOfMass: weight must be finite, a number or one for each"):
            to.CenterOfMass(jnp.zeros(3), wrong)


class At(eqx.Module):
    """The angle's distance from a number, also as a number of its own."""

    squared: bool = eqx.field(static=True)

    def __call__(self, model, x, *effort):
        return 0.5 * (x[0] - 0.3) ** 2 if self.squared else x[:1] - 0.3


@pytest.mark.parametrize("squared", [False, True])
def test_a_schedule_weighs_each_step(squared):
    weights = jnp.linspace(0.0, 2.0, STEPS + 1)
    dynamics = Pendulum(jnp.array(1.0))
    term = to.Scheduled(At(squared), weights)
    problem = to.Problem(None, jnp.zeros(2), STEPS, [to.Effort(0.3), term], term, LIMITS, dynamics=dynamics)
    efforts = jnp.sin(jnp.arange(STEPS))[:, None]
    states = rolled_out(problem, efforts)
    expected = 0.5 * 0.09 * jnp.sum(efforts**2) + 0.5 * jnp.sum((weights * (states[:, 0] - 0.3)) ** 2)
    np.testing.assert_allclose(total_cost(problem, states, efforts), expected, rtol=1e-12)


def test_a_plan_with_phases_is_stationary_and_new_weights_take_the_same_program():
    weights = jnp.where(jnp.arange(STEPS + 1) == 20, 300.0, 0.0)
    running = [EffortCost(jnp.array(0.05)), to.Scheduled(At(False), weights)]
    goal, dynamics = Goal(jnp.array(1.2)), Pendulum(jnp.array(1.0))
    problem = to.Problem(None, jnp.zeros(2), STEPS, running, goal, LIMITS, dynamics=dynamics)
    plan = to.solve(problem, solver=to.FeasibilityDDP(tolerance=1e-15))
    np.testing.assert_allclose(plan.states[20, 0], 0.3, atol=1e-3)

    def cost(efforts):
        return total_cost(problem, rolled_out(problem, efforts), efforts)

    np.testing.assert_allclose(jax.grad(cost)(plan.efforts), 0.0, atol=1e-6)
    later = eqx.tree_at(lambda p: p.running[1].weights, problem, jnp.roll(weights, 10))
    np.testing.assert_allclose(to.solve(later, plan).states[30, 0], 0.3, atol=1e-3)


def test_what_schedules_cannot_be():
    with pytest.raises(mbjax.ModelError, match="has 3 rows of weights; it needs num_steps"):
        to.Problem(None, jnp.zeros(2), STEPS, to.Scheduled(At(False), jnp.ones(3)), (), LIMITS, dynamics=lambda *x: x)
    with pytest.raises(mbjax.ModelError, match="cannot be called"):
        to.Scheduled(At(False), jnp.ones(3))(None, jnp.zeros(2), jnp.zeros(1))
    for squared, returned in ((True, "a number"), (False, r"residuals of shape \(1,\)")):
        term = to.Scheduled(At(squared), jnp.ones((STEPS + 1, 3)))
        with pytest.raises(mbjax.ModelError, match=rf"At returns {returned}, and weights has shape \(41, 3\)"):
            to.solve(to.Problem(None, jnp.zeros(2), STEPS, term, (), LIMITS, dynamics=Pendulum(jnp.array(1.0))))
    with pytest.raises(mbjax.ModelError, match="a number for each state"):
        to.Scheduled(At(False), 1.0)


class PendulumInTime(Pendulum):
    """A pendulum that knows the length of its steps."""

    def step_length(self, model, effort):
        return DT


def test_costs_of_seconds_are_those_of_steps_times_their_length():
    base = pendulum()
    efforts = jnp.cos(jnp.arange(STEPS))[:, None]

    def cost(per, running):
        problem = to.Problem(
            None, jnp.zeros(2), STEPS, running, base.terminal, LIMITS, dynamics=PendulumInTime(jnp.array(1.0)), per=per
        )
        return total_cost(problem, rolled_out(problem, efforts), efforts)

    def number(model, x, u):
        return jnp.sum(u**2)

    per_second = cost("second", [base.running[0], number])
    of_steps = cost("step", [base.running[0], number])
    of_end = cost("step", [])
    np.testing.assert_allclose(per_second - of_end, DT * (of_steps - of_end), rtol=1e-12)
    with pytest.raises(mbjax.ModelError, match="needs the length of a step"):
        to.Problem(None, jnp.zeros(2), STEPS, number, (), LIMITS, dynamics=Pendulum(jnp.array(1.0)), per="second")
    with pytest.raises(mbjax.ModelError, match="per must be"):
        to.Problem(None, jnp.zeros(2), STEPS, number, (), LIMITS, dynamics=Pendulum(jnp.array(1.0)), per="minute")


@pytest.mark.whole_run("the associative scan gives the recursion's feedback, in test_riccati.py")
def test_infinite_limits_take_the_program_without_limits():
    """The parallel recursion refuses limits: infinite ones are none, and finite ones put in later are seen."""
    solver = to.FeasibilityDDP(parallel=True)
    problem = linear_quadratic()
    plan = to.solve(problem, solver=solver)
    np.testing.assert_allclose(plan.efforts, to.solve(problem).efforts, atol=1e-8)
    limited = eqx.tree_at(lambda p: (p.low, p.high), problem, (jnp.full(2, -0.1), jnp.full(2, 0.1)))
    assert isinstance(problem.dynamics, Linear)
    with pytest.raises(mbjax.ModelError, match="efforts without limits"):
        to.solve(limited, solver=solver)
    assert jnp.max(jnp.abs(to.solve(limited).efforts)) <= 0.1


def test_times_of_phases_are_told_by_name():
    problem = pendulum(limited=True)
    times = to.phase_times(problem, to.solve(problem), repeats=1)
    assert list(times.seconds) == ["steps", "derivatives of steps", "derivatives of costs", "Riccati recursion"]
    assert all(seconds > 0.0 for seconds in times.seconds.values())
    assert "Riccati recursion" in str(times)
    with pytest.raises(mbjax.ModelError, match="cannot stand within jit"):
        jax.jit(lambda start: to.phase_times(eqx.tree_at(lambda p: p.start, problem, start), to.solve(problem)))(
            problem.start
        )
