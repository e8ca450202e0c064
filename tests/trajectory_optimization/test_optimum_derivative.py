"""Derivatives of an optimum: forward = reverse = differences of problems that are solved again."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from tests.gradients.checks import OFFSETS, WEIGHTS, WHOLE_RUN

from .problems import STEPS, pendulum

EXACT = to.FeasibilityDDP(tolerance=1e-18)


def differentiate_again(J, make, h: float) -> float:
    """Fourth-order difference of J over problems that are solved again."""
    return float(sum(w * J(make(o * h)) for o, w in zip(OFFSETS, WEIGHTS, strict=True)) / h)


LEAVES = {
    "start": lambda p: p.start,
    "weight": lambda p: p.running[0].weight,
    "goal": lambda p: p.terminal[0].angle,
    "length": lambda p: p.dynamics.length,
    "low": lambda p: p.low,
    "speed's bound": lambda p: p.constraints[0].upper,
}


@pytest.mark.parametrize(
    ("limited", "constrained"),
    [
        (True, True),
        *(
            pytest.param(*x, marks=pytest.mark.whole_run("both at once"))
            for x in ((False, False), (True, False), (False, True))
        ),
    ],
)
def test_by_numbers_of_cost_dynamics_limits_and_constraints(limited, constrained):
    """Whole run: in forward mode too."""
    problem = pendulum(limited=limited, constrained=constrained)
    solver = to.AugmentedLagrangian(EXACT, tolerance=1e-11) if constrained else EXACT
    plan = to.solve(problem, solver=solver)
    assert plan.report.converged
    if constrained:
        assert jnp.sum(plan.multipliers["speed"] > 0.0) > 2

    @eqx.filter_jit
    def quantities(problem: to.Problem) -> jax.Array:
        found = to.solve(problem, plan, solver)
        return jnp.stack([found.efforts[12, 0], found.states[20, 1], found.cost])

    reverse = eqx.filter_jit(eqx.filter_grad(lambda problem, which: quantities(problem) @ which))
    by = [reverse(problem, which) for which in jnp.eye(3)]
    for name, leaf in LEAVES.items():
        if (name == "low" and not limited) or (name == "speed's bound" and not constrained):
            continue
        nothing = jax.tree.map(jnp.zeros_like, eqx.filter(problem, eqx.is_inexact_array))
        direction = eqx.tree_at(leaf, nothing, jnp.ones_like(leaf(problem)))
        found = jnp.stack([jnp.sum(leaf(tree)) for tree in by])
        if WHOLE_RUN:
            _, forward = eqx.filter_jvp(quantities, (problem,), (direction,))
            np.testing.assert_allclose(forward, found, rtol=1e-8, atol=1e-8, err_msg=name)
        h = 1e-2 * max(1.0, float(jnp.max(jnp.abs(leaf(problem)))))
        if limited or constrained:
            h *= 0.3  # the limits and constraints that act stay the same ones
        moved = [eqx.tree_at(leaf, problem, leaf(problem) + o * h) for o in OFFSETS]
        expected = sum(w * quantities(p) for w, p in zip(WEIGHTS, moved, strict=True)) / h
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=name)


@pytest.mark.whole_run("numbers of cost, dynamics, limits and constraints, above")
def test_numbers_that_a_plain_function_closes_over_are_differentiated():
    base = pendulum()

    def J(goal: jax.Array) -> jax.Array:
        def final(model, x):
            return jnp.stack([10.0 * (x[0] - goal), 3.0 * x[1]])

        limits = base.low, base.high
        problem = to.Problem(None, base.start, base.num_steps, base.running, final, limits, dynamics=base.dynamics)
        return to.solve(problem, solver=EXACT).states[-1, 0]

    by_leaf = eqx.filter_grad(lambda p: to.solve(p, solver=EXACT).states[-1, 0])(base).terminal[0].angle
    np.testing.assert_allclose(jax.grad(J)(jnp.array(1.2)), by_leaf, rtol=1e-9)


class Distance:
    """A cost that is an object of a plain class."""

    def __init__(self, goal):
        self.goal = goal

    def __call__(self, model, x):
        return 3.0 * (x - self.goal)


def test_numbers_within_functions_in_other_terms_are_differentiated():
    """All reach the same cost: a function in a schedule, partial, a default, an object, and dynamics of a function."""

    def costs(goal: jax.Array) -> list:
        def distance(model, x, *, goal=goal):
            return 3.0 * (x - goal)

        plain = to.Scheduled(lambda model, x: 3.0 * (x - goal), jnp.ones(3))
        beyond = to.Barrier(functools.partial(lambda goal, model, x: 3.0 * (x - goal), goal), 0.0, 0.0)
        return [plain, beyond, distance, Distance(goal)]

    def end(goal: jax.Array) -> jax.Array:
        rule = to.HermiteSimpson(lambda model, x, u: u + 0.0 * goal, 0.1)
        limits = jnp.full(1, -np.inf), jnp.full(1, np.inf)
        problem = to.Problem(None, jnp.zeros(1), 2, lambda model, x, u: u, costs(goal), limits, dynamics=rule)
        return to.solve(problem).states[-1, 0]

    # x = h (u + u), and u minimizes u² + 4 · 9 (x - goal)² / 2
    np.testing.assert_allclose(jax.grad(end)(jnp.array(0.7)), 36.0 * 0.02 / (1.0 + 36.0 * 0.02), rtol=1e-6)


def test_efforts_between_equal_limits_are_held():
    """Also where the cost does not ask for more, so that no slope tells a side."""
    base, given = pendulum(), jnp.zeros((STEPS, 1))
    limits = given, given.at[20:].set(1.0)
    problem = to.Problem(None, base.start, STEPS, base.running, (), limits, dynamics=base.dynamics)

    def fourth(given: jax.Array) -> jax.Array:
        limited = eqx.tree_at(lambda p: (p.low, p.high), problem, (given, limits[1] + given))
        return to.solve(limited).efforts[3, 0]

    np.testing.assert_allclose(jax.grad(fourth)(given)[3, 0], 1.0)


@pytest.mark.whole_run("numbers of cost, dynamics, limits and constraints")
def test_numbers_that_a_constraint_closes_over_are_differentiated():
    base = pendulum(constrained=True)
    solver = to.AugmentedLagrangian(EXACT, tolerance=1e-9)

    def J(fastest: jax.Array) -> jax.Array:
        limit = to.at_most(lambda model, x: x[1] - fastest, 0.0, name="speed")
        problem = eqx.tree_at(lambda p: p.constraints[0], base, limit, is_leaf=lambda x: isinstance(x, to.Constraint))
        return to.solve(problem, solver=solver).cost

    def by_bound(problem: to.Problem) -> jax.Array:
        return to.solve(problem, solver=solver).cost

    expected = eqx.filter_grad(by_bound)(base).constraints[0].upper
    assert abs(expected) > 0.1
    np.testing.assert_allclose(jax.grad(J)(jnp.array(1.5)), expected, rtol=1e-6)


@pytest.mark.whole_run("a batch of problems in test_solve.py, and numbers of one problem above")
def test_a_batch_of_gradients():
    problem = pendulum()

    def J(goal: jax.Array) -> jax.Array:
        return to.solve(eqx.tree_at(lambda p: p.terminal[0].angle, problem, goal), solver=EXACT).efforts[3, 0]

    goals = jnp.array([0.5, 1.2])
    together = jax.vmap(jax.grad(J))(goals)
    for goal, by in zip(goals, together, strict=True):
        np.testing.assert_allclose(jax.grad(J)(goal), by, rtol=1e-7)


@pytest.mark.whole_run("the same derivatives with dynamics that compile in a second, above")
def test_by_masses_and_time_step_of_a_model():
    model = mbjax.load("arm", time_step=0.02)
    start = mbjax.default_state(model)
    goal = jnp.array([0.3, 0.5, -0.2, -0.8, 0.1, 0.4, 0.2])
    problem = to.Problem(
        model, start, 10, [to.Effort(0.1), to.VelocityGoal(weight=0.1)], [to.JointGoal(goal, 3.0), to.VelocityGoal()]
    )
    plan = to.solve(problem, solver=EXACT)

    @eqx.filter_jit
    def J(model: mbjax.MultibodyModel) -> jax.Array:
        found = to.solve(eqx.tree_at(lambda p: p.model, problem, model), plan, EXACT)
        return found.efforts[3, 1] + found.states.q[-1, 2]

    by, mass = eqx.filter_grad(J)(model), mbjax.mass(model, "forearm")
    for name, make, got in (
        (
            "mass",
            lambda d: mbjax.set_mass(model, "forearm", mass + d),
            mbjax.mass(by, "forearm"),
        ),
        ("time step", lambda d: mbjax.set_time_step(model, model.time_step + 0.01 * d), 0.01 * by.time_step),
    ):
        # From a plan that is nearer than this a search ends at once, with an error that is a share of the change.
        np.testing.assert_allclose(got, differentiate_again(J, make, 3e-2), rtol=1e-5, atol=1e-6, err_msg=name)
