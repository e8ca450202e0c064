"""Transcription to IPOPT and rules of collocation: other methods' optima, analytic ones, derivatives of the program."""

import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.errors import MissingPackageError
from mbjax.trajectory_optimization.expansion import total_cost
from mbjax.trajectory_optimization.problem import times_of

from .problems import STEPS, linear_quadratic, pendulum

SHARP = to.Transcription(tolerance=1e-12)
DT = 0.05


def rates_of_pendulum(model, x, u):
    return jnp.stack([x[1], u[0] - 9.81 * jnp.sin(x[0]) - 0.1 * x[1]])


def rates_of_double_integrator(model, x, u):
    return jnp.concatenate([x[1:], u])


def with_dynamics(problem: to.Problem, dynamics) -> to.Problem:
    return eqx.tree_at(lambda p: p.dynamics, problem, dynamics)


@pytest.mark.whole_run("the least effort of a double integrator, below, and limits in test_solve.py")
def test_a_swing_up_with_limits_ends_where_shooting_does():
    problem = pendulum(limited=True, goal=np.pi)
    shot = to.solve(problem, solver=to.FeasibilityDDP(tolerance=1e-15))
    found = to.solve(problem, solver=to.Transcription(tolerance=1e-12, hessian="exact"))
    assert shot.report.converged
    assert found.report.converged
    assert 0 < jnp.sum((found.efforts == problem.low) | (found.efforts == problem.high)) < STEPS
    np.testing.assert_allclose(found.cost, shot.cost, rtol=1e-9)
    np.testing.assert_allclose(found.efforts, shot.efforts, atol=1e-4)
    np.testing.assert_allclose(found.costates, shot.costates, atol=1e-4)
    np.testing.assert_allclose(found.report.history.cost[found.report.iterations - 1], found.cost, rtol=1e-6)


@pytest.mark.whole_run("a double integrator with a constraint, below, and multipliers in test_solve.py")
def test_constraints_are_met_with_the_multipliers_of_the_method_of_multipliers():
    problem = pendulum(constrained=True)
    shot = to.solve(problem, solver=to.AugmentedLagrangian(to.FeasibilityDDP(tolerance=1e-13), tolerance=1e-8))
    found = to.solve(problem, solver=SHARP)
    assert found.report.converged
    np.testing.assert_allclose(found.efforts, shot.efforts, atol=1e-5)
    for name in shot.multipliers:
        np.testing.assert_allclose(found.multipliers[name], shot.multipliers[name], atol=1e-4)


@pytest.mark.parametrize("rule", [to.HermiteSimpson, to.Trapezoid])
def test_the_least_effort_of_a_double_integrator(rule):
    """Efforts that are held over N steps and move by d in T: u = c (T/2 - t) in the middle of each step."""
    N, T, d = 20, 2.0, 1.5
    h = T / N
    problem = to.Problem(
        None,
        jnp.zeros(2),
        N,
        lambda model, x, u: jnp.sqrt(h) * u,
        efforts=(jnp.array([-np.inf]), jnp.array([np.inf])),
        constraints=to.equality(lambda model, x: x, jnp.array([d, 0.0]), at="end", name="goal"),
        dynamics=rule(rates_of_double_integrator, h),
    )
    found = to.solve(problem, solver=to.Transcription())
    c = 12.0 * d / (T**3 * (1.0 - 1.0 / N**2))
    np.testing.assert_allclose(found.efforts[:, 0], c * (T / 2 - h * (np.arange(N) + 0.5)), atol=1e-10)
    np.testing.assert_allclose(found.cost, 0.5 * 12.0 * d**2 / (T**3 * (1.0 - 1.0 / N**2)), rtol=1e-10)


@pytest.mark.whole_run("collocation of the double integrator, and steps of the rules")
def test_collocation_ends_where_shooting_by_the_same_rule_does():
    problem = with_dynamics(pendulum(limited=True), to.HermiteSimpson(rates_of_pendulum, DT))
    shot = to.solve(problem, solver=to.FeasibilityDDP(tolerance=1e-13))
    found = to.solve(problem, solver=SHARP)
    np.testing.assert_allclose(found.cost, shot.cost, rtol=1e-10)

    def cost(goal: jax.Array, solver: to.AbstractSolver) -> jax.Array:
        plan = to.solve(eqx.tree_at(lambda p: p.terminal[0].angle, problem, goal), solver=solver)
        return plan.cost + plan.efforts[3, 0]

    slopes = [jax.grad(cost)(jnp.array(1.2), solver) for solver in (SHARP, to.FeasibilityDDP(tolerance=1e-13))]
    np.testing.assert_allclose(*slopes, rtol=1e-7)


@pytest.mark.parametrize(("rule", "order"), [(to.HermiteSimpson, 4), (to.Trapezoid, 2)])
def test_errors_of_steps_fall_with_the_order_of_the_rule(rule, order):
    x, u = jnp.array([0.4, -1.0]), jnp.array([2.0])

    def end(N: int) -> jax.Array:
        step = rule(rates_of_pendulum, 0.8 / N)
        return jax.lax.fori_loop(0, N, lambda _, x: step(None, x, u), x)

    exact = end(64) if order == 4 else end(4096)
    errors = [float(jnp.max(jnp.abs(end(N) - exact))) for N in (4, 8)]
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), order, atol=0.3)


@pytest.fixture(scope="module")
def body() -> mbjax.MultibodyModel:
    """A free body that is no ball, with a motor that turns a second one."""
    link = """<link name="{0}"><inertial><mass value="{1}"/>
    <inertia ixx="0.25" iyy="0.2" izz="0.1" ixy="0.02" ixz="0" iyz="0"/></inertial></link>"""
    joint = """<joint name="wheel" type="continuous"><parent link="a"/><child link="b"/><origin xyz="0.1 0 0.2"/>
    <axis xyz="0 0 1"/></joint>"""
    text = f'<robot name="body">{link.format("a", 1.0)}{link.format("b", 0.5)}{joint}</robot>'
    return mbjax.load(text, time_step=0.1, base="floating", actuators="joints", on_unsupported="warn")


def test_the_time_step_of_a_rule_is_that_of_costs_and_times():
    """Also of a model that is continuous, whose own has no length."""
    model = mbjax.load("pendulum")
    rule = to.Trapezoid(time_step=0.05)
    problem = to.Problem(model, mbjax.default_state(model), 3, to.Effort(), dynamics=rule, per="second")
    states, efforts = jax.tree.map(lambda x: jnp.stack([x] * 4), problem.start), jnp.ones((3, 1))
    np.testing.assert_allclose(total_cost(problem, states, efforts), 3 * 0.05 / 2)
    np.testing.assert_allclose(times_of(problem, states, efforts).time, 0.05 * np.arange(4))


@pytest.mark.whole_run("sparse derivatives of the pendulum's program")
@pytest.mark.parametrize("rule", [None, to.HermiteSimpson()], ids=["step", "collocation"])
def test_sparse_derivatives_equal_dense_ones_on_a_manifold(body, rule):
    rng = np.random.default_rng(0)
    start = mbjax.State(mbjax.default_state(body).q, jnp.asarray(rng.normal(size=7)), jnp.zeros(()))
    height = to.at_least(lambda model, x: x.q[4:7] ** 2, 0.1, name="height")
    problem = to.Problem(
        body, start, 2, [to.Effort(), to.StateGoal(start)], to.VelocityGoal(), constraints=height, dynamics=rule
    )
    states = jax.tree.map(lambda x: jnp.repeat(x[None], 3, axis=0), start)
    program = to.NonlinearProgram(problem, states, False)
    z = jnp.asarray(0.3 * rng.normal(size=program.num_unknowns))
    gradient, entries = program.derivatives(z)
    dense, places = np.zeros((len(program.bounds_of_rows()[0]), len(z))), program.jacobian_sparsity()
    np.add.at(dense, (places.rows, places.columns), entries)
    of_cost, of_rows = jax.jacfwd(program.values)(z)
    np.testing.assert_allclose(gradient, of_cost, atol=1e-9)
    np.testing.assert_allclose(dense, of_rows, atol=1e-8)
    states, efforts = program.split(z)
    np.testing.assert_allclose(program.join(states, efforts), z, atol=1e-12)
    np.testing.assert_allclose(jnp.linalg.norm(states.q[:, :4], axis=1), 1.0)


@pytest.mark.whole_run("errors of steps of the rules, of a plant without a model")
def test_a_collocated_step_of_a_free_body_follows_the_plant(body):
    rng = np.random.default_rng(1)
    state = mbjax.State(mbjax.default_state(body).q, jnp.asarray(rng.normal(size=7)), jnp.zeros(()))
    step = to.HermiteSimpson()
    after = step(body, state, jnp.array([0.3]))
    fine = to.HermiteSimpson(time_step=0.0125)
    exact = jax.lax.fori_loop(0, 8, lambda _, x: fine(body, x, jnp.array([0.3])), state)
    np.testing.assert_allclose(after.q, exact.q, atol=2e-6)
    np.testing.assert_allclose(after.v, exact.v, atol=2e-5)
    np.testing.assert_allclose(after.time, 0.1)


def test_sparse_derivatives_are_those_of_the_lagrangian():
    problem = pendulum(constrained=True)
    program = to.NonlinearProgram(problem, jnp.zeros((STEPS + 1, 2)), True)
    rng = np.random.default_rng(2)
    z = jnp.asarray(rng.normal(size=program.num_unknowns))
    y = jnp.asarray(rng.normal(size=len(program.bounds_of_rows()[0])))
    dense, places = np.zeros((len(z), len(z))), program.hessian_sparsity()
    np.add.at(dense, (places.rows, places.columns), program.hessian(z, jnp.array(0.7), y))

    def lagrangian(z: jax.Array) -> jax.Array:
        f, g = program.values(z)
        return 0.7 * f + y @ g

    gradient, entries = program.derivatives(z)
    jacobian, at = np.zeros((len(y), len(z))), program.jacobian_sparsity()
    np.add.at(jacobian, (at.rows, at.columns), entries)
    np.testing.assert_allclose(0.7 * gradient + y @ jacobian, jax.grad(lagrangian)(z), atol=1e-9)

    np.testing.assert_allclose(dense, jax.hessian(lagrangian)(z), atol=1e-8)


class TestProblemsWithoutSolution:
    def test_constraints_that_contradict_each_other(self):
        problem = pendulum()
        fast, slow = (
            to.equality(lambda model, x: x[1], value, at="end", name=name)
            for name, value in (("fast", 2.0), ("slow", 1.0))
        )
        problem = to.Problem(
            None,
            problem.start,
            STEPS,
            problem.running,
            problem.terminal,
            (problem.low, problem.high),
            (fast, slow),
            dynamics=problem.dynamics,
        )
        with pytest.warns(mbjax.ModelWarning, match=r"constraint '(fast|slow)' is .* off its bounds"):
            found = to.solve(problem, solver=to.Transcription(max_iterations=100))
        assert not found.report.converged

    def test_within_jit(self):
        with pytest.raises(mbjax.ModelError, match="not within jit or vmap"):
            jax.jit(
                lambda start: to.solve(eqx.tree_at(lambda p: p.start, linear_quadratic(), start), solver=SHARP).cost
            )(jnp.zeros(4))

    def test_a_package_that_is_missing(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "casadi", None)
        with pytest.raises(MissingPackageError, match=r"mbjax\[nlp\]"):
            to.solve(linear_quadratic(), solver=SHARP)

    def test_wrong_arguments(self):
        with pytest.raises(mbjax.ModelError, match="gauss_newton"):
            to.Transcription(hessian="none")  # pyright: ignore[reportArgumentType]
        with pytest.raises(mbjax.ModelError, match="rates"):
            to.HermiteSimpson(time_step=0.1)(None, jnp.zeros(3), jnp.zeros(1))
        with pytest.raises(mbjax.ModelError, match="time_step="):
            to.HermiteSimpson(rates_of_pendulum)(None, jnp.zeros(2), jnp.zeros(1))


def test_progress_reaches_the_callback():
    seen = []
    found = to.solve(linear_quadratic(), solver=SHARP, callback=lambda k, entry: seen.append((k, entry["cost"])))
    assert [k for k, _ in seen] == list(range(len(seen)))
    np.testing.assert_allclose(seen[-1][1], found.cost, rtol=1e-9)
