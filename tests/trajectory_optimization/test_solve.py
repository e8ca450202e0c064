"""Solvers: optimality conditions, limits, constraints, batches, warm starts, and problems that have no solution."""

import warnings

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.expansion import total_cost
from mbjax.trajectory_optimization.rolled_out import rolled_out

from .problems import STEPS, Goal, Linear, Pendulum, linear_quadratic, pendulum, speed

EXACT = to.FeasibilityDDP(tolerance=1e-15)


def cost_of_efforts(problem: to.Problem, efforts: jax.Array) -> jax.Array:
    """The cost of a rollout, without the solver."""
    return total_cost(problem, rolled_out(problem, efforts), efforts)


@pytest.fixture(scope="module")
def plan() -> to.Solution:
    return to.solve(pendulum(), solver=EXACT)


def test_a_linear_problem_takes_one_step():
    problem = linear_quadratic()
    found = to.solve(problem)
    assert found.report.converged
    assert found.report.iterations == 2
    np.testing.assert_allclose(jax.grad(lambda u: cost_of_efforts(problem, u))(found.efforts), 0.0, atol=1e-7)


def test_the_plan_is_stationary_and_follows_the_dynamics(plan):
    problem = pendulum()
    assert plan.report.converged
    np.testing.assert_allclose(rolled_out(problem, plan.efforts), plan.states, atol=1e-12)
    np.testing.assert_allclose(jax.grad(lambda u: cost_of_efforts(problem, u))(plan.efforts), 0.0, atol=1e-6)
    np.testing.assert_allclose(plan.cost, cost_of_efforts(problem, plan.efforts))


def test_costates_are_derivatives_of_the_cost_to_go(plan):
    problem = pendulum()

    def cost(start: jax.Array) -> jax.Array:
        return cost_of_efforts(eqx.tree_at(lambda p: p.start, problem, start), plan.efforts)

    by_start = jax.grad(cost)(problem.start)
    np.testing.assert_allclose(plan.costates[0], by_start, rtol=1e-6)


def test_gains_are_the_slope_of_the_optimal_effort():
    problem = linear_quadratic()
    found = to.solve(problem)
    for direction in np.eye(4):
        moved = to.solve(eqx.tree_at(lambda p: p.start, problem, problem.start + direction), found)
        np.testing.assert_allclose((moved.efforts - found.efforts)[0], -found.gains[0] @ direction, atol=1e-7)


def test_limits_hold_and_slopes_at_them_push_outward():
    problem = pendulum(limited=True)
    found = to.solve(problem, solver=EXACT)
    gradient = jax.grad(lambda u: cost_of_efforts(problem, u))(found.efforts)
    low, inside = found.efforts <= problem.low, (found.efforts > problem.low) & (found.efforts < problem.high)
    assert found.report.converged
    assert 0 < jnp.sum(low) < STEPS
    assert jnp.all(jnp.where(low, gradient >= 0.0, True))
    np.testing.assert_allclose(jnp.where(inside, gradient, 0.0), 0.0, atol=1e-6)


def test_a_guess_with_gaps_ends_at_the_same_plan(plan):
    states = jnp.linspace(0.0, 1.2, STEPS + 1)[:, None] * jnp.array([1.0, 0.0]) + 0.1
    found = to.solve(pendulum(), (states, jnp.ones((STEPS, 1))), EXACT)
    assert found.report.history.gap[0] > 0.01
    np.testing.assert_allclose(found.cost, plan.cost, rtol=1e-9)
    np.testing.assert_allclose(found.efforts, plan.efforts, atol=1e-5)


def test_constraints_are_met_and_their_multipliers_close_the_conditions():
    problem = pendulum(constrained=True)
    found = to.solve(problem, solver=to.AugmentedLagrangian(EXACT, tolerance=1e-9))
    assert found.report.converged
    assert jnp.max(found.states[:, 1]) <= 1.5 + 1e-9
    np.testing.assert_allclose(found.states[-1, 0], 1.0, atol=1e-9)
    assert jnp.min(found.multipliers["speed"]) >= 0.0
    assert jnp.sum(found.multipliers["speed"] > 0.0) > 2

    def lagrangian(efforts: jax.Array) -> jax.Array:
        states = rolled_out(problem, efforts)
        speed = jnp.sum(found.multipliers["speed"][:, 0] * (states[:, 1] - 1.5))
        return total_cost(problem, states, efforts) + speed + found.multipliers["goal"][-1, 0] * (states[-1, 0] - 1.0)

    np.testing.assert_allclose(jax.grad(lagrangian)(found.efforts), 0.0, atol=1e-5)


def test_direct_shooting_ends_at_the_same_plan(plan):
    with jax.numpy_dtype_promotion("standard"):  # optax adds integers of two kinds
        found = to.solve(pendulum(), solver=to.DirectShooting(tolerance=1e-7))
    assert found.report.converged
    np.testing.assert_allclose(found.cost, plan.cost, rtol=1e-9)


def test_a_batch_of_problems_equals_one_after_the_other():
    problem = pendulum(limited=True)
    goals, starts = jnp.array([0.5, 1.0, 1.2]), jnp.array([[0.0, 0.0], [0.2, 0.1], [-0.3, 0.5]])

    def solve(goal: jax.Array, start: jax.Array) -> to.Solution:
        changed = eqx.tree_at(lambda p: (p.terminal[0].angle, p.start), problem, (goal, start))
        return to.solve(changed)

    together = jax.jit(jax.vmap(solve))(goals, starts)
    assert jnp.all(together.report.converged)
    assert "3 problems" in str(together.report)
    assert "3: converged" in str(together.report)
    for i in range(3):
        np.testing.assert_allclose(solve(goals[i], starts[i]).efforts, together.efforts[i], atol=1e-6)


def test_a_cost_function_that_returns_a_number_ends_where_its_residuals_do(plan):
    problem = pendulum()
    number = to.Problem(
        None,
        problem.start,
        STEPS,
        lambda model, x, u: 0.5 * 0.05 * jnp.sum(u**2),
        lambda model, x: 0.5 * ((10.0 * (x[0] - 1.2)) ** 2 + (3.0 * x[1]) ** 2),
        (problem.low, problem.high),
        dynamics=problem.dynamics,
    )
    found = to.solve(number)
    np.testing.assert_allclose(found.cost, plan.cost, rtol=1e-8)
    assert found.report.iterations == to.solve(problem).report.iterations  # as its Hessian is the same


def test_data_of_each_step_reaches_every_function():
    targets = jnp.sin(jnp.linspace(0.0, 2.0, STEPS + 1))
    problem = to.Problem(
        None,
        jnp.zeros(2),
        STEPS,
        lambda model, x, u, target: jnp.concatenate([10.0 * (x[:1] - target), 0.01 * u]),
        lambda model, x, target: 10.0 * (x[0] - target)[None],
        (jnp.array([-99.0]), jnp.array([99.0])),
        to.at_most(lambda model, x, target: x[0] - target, 0.3, name="near"),
        stages=targets,
        dynamics=lambda model, x, u, target: Pendulum(jnp.array(1.0))(model, x, u),
    )
    found = to.solve(problem)
    assert found.report.converged
    np.testing.assert_allclose(found.states[5:, 0], targets[5:], atol=0.05)


def test_chosen_steps_of_a_constraint():
    problem = pendulum()
    when = jnp.arange(STEPS + 1) == 20
    problem = to.Problem(
        None,
        problem.start,
        STEPS,
        problem.running,
        problem.terminal,
        (problem.low, problem.high),
        to.equality(lambda model, x: x[0], 0.9, when=when, name="via"),
        dynamics=problem.dynamics,
    )
    found = to.solve(problem)
    assert found.report.converged
    np.testing.assert_allclose(found.states[20, 0], 0.9, atol=1e-6)
    assert jnp.sum(found.multipliers["via"] != 0.0) == 1


def test_receding_horizon_keeps_to_the_plan_and_rejects_a_push(plan):
    problem = pendulum()
    _, moved = to.mpc_step(problem, plan, plan.states[1])
    assert moved.report.iterations == 2
    np.testing.assert_allclose(moved.states[0], plan.states[1], atol=1e-12)

    def near(model, x, *effort):
        return jnp.concatenate([jnp.stack([3.0 * (x[0] - 1.2), 0.3 * x[1]]), *(0.02 * u for u in effort)])

    limits = problem.low, problem.high
    problem = to.Problem(None, problem.start, STEPS, near, near, limits, dynamics=problem.dynamics)
    x, following = jnp.array([0.4, 1.0]), to.solve(problem)
    for _ in range(40):
        effort, following = to.mpc_step(problem, following, x)
        x = problem.next_state(x, effort)
    np.testing.assert_allclose(x, [1.2, 0.0], atol=0.05)


def test_receding_horizon_with_a_solver_keeps_constraints():
    problem = pendulum(constrained=True)
    plan = to.solve(problem, solver=EXACT)
    _, moved = to.mpc_step(problem, plan, plan.states[1], EXACT)
    assert moved.report.converged
    assert jnp.max(moved.states[:, 1]) <= 1.5 + 1e-6
    assert jax.tree.structure(moved) == jax.tree.structure(plan)
    limits, fast = (problem.low, problem.high), to.at_most(speed, 1.5, name="fast")
    other = to.Problem(
        None, problem.start, STEPS, problem.running, problem.terminal, limits, fast, dynamics=problem.dynamics
    )
    _, moved = to.mpc_step(other, plan, plan.states[1], EXACT)
    assert moved.report.converged
    assert jnp.max(moved.multipliers["fast"]) > 0.0
    with pytest.raises(mbjax.ModelError, match="iterations=3 is for the default solver; give your solver max_iter"):
        to.mpc_step(problem, plan, plan.states[1], EXACT, iterations=3)
    for iterations in (0, -1, 1.5, True):
        with pytest.raises(mbjax.ModelError, match="iterations must be a whole number of at least 1"):
            to.mpc_step(problem, plan, plan.states[1], iterations=iterations)
    with pytest.raises(mbjax.ModelError, match="plan must be what solve or mpc_step returned, got NoneType"):
        to.mpc_step(problem, None, plan.states[1])
    with pytest.raises(
        mbjax.ModelError, match=r"must be like the start of the problem, .* got an array of shape \(3,\)"
    ):
        to.mpc_step(problem, plan, jnp.zeros(3))


TRACES: list[None] = []


class CountedPendulum(Pendulum):
    """A pendulum that notes when a program is made of it."""

    def __call__(self, model, x, u):
        TRACES.append(None)
        return super().__call__(model, x, u)


def test_one_program_for_plans_receding_horizons_and_other_tolerances():
    base = pendulum()
    limits, dynamics = (base.low, base.high), CountedPendulum(jnp.array(1.0))
    problem = to.Problem(None, base.start, STEPS, base.running, base.terminal, limits, dynamics=dynamics)
    plan = to.solve(problem)
    made = len(TRACES)
    assert made > 0
    _, moved = to.mpc_step(problem, plan, plan.states[1], iterations=3)
    assert 2 <= moved.report.iterations <= 4
    assert jax.tree.structure(moved) == jax.tree.structure(plan)
    assert [x.shape for x in jax.tree.leaves(moved)] == [x.shape for x in jax.tree.leaves(plan)]
    tighter = to.solve(problem, plan, to.FeasibilityDDP(tolerance=1e-15, largest_regularization=1e6))
    assert tighter.report.iterations > 1
    assert len(TRACES) == made


def test_the_report_has_the_slope_that_differences_give(plan, capsys):
    """Of a search that ends early: the largest derivative of the cost of a rollout by an effort."""
    problem = pendulum(limited=True)
    with pytest.warns(mbjax.ModelWarning, match="largest slope by an effort"):
        early = to.solve(problem, solver=to.FeasibilityDDP(max_iterations=4), callback=to.print_iteration)
    slopes = jax.grad(lambda u: cost_of_efforts(problem, u))(early.efforts)
    outward = ((early.efforts <= problem.low) & (slopes > 0.0)) | ((early.efforts >= problem.high) & (slopes < 0.0))
    np.testing.assert_allclose(early.report.stationarity, jnp.max(jnp.where(outward, 0.0, jnp.abs(slopes))), rtol=1e-9)
    assert early.report.stationarity > 1e-3
    assert plan.report.stationarity < 1e-6
    jax.effects_barrier()
    assert capsys.readouterr().out.rstrip() == early.report.table()
    assert len(early.report.table().splitlines()) == 1 + early.report.iterations
    with pytest.raises(mbjax.ModelError, match="it shows one search"):
        jax.tree.map(lambda x: x[None], early.report).table()


def test_progress_reaches_the_callback():
    seen = []
    found = to.solve(pendulum(), callback=lambda k, entry: seen.append((int(k), float(entry["cost"]))))
    jax.effects_barrier()
    assert [k for k, _ in seen] == list(range(int(found.report.iterations)))
    np.testing.assert_allclose([cost for _, cost in seen], found.report.history.cost[: len(seen)])


def test_a_plan_of_a_model_is_stationary():
    model = mbjax.load("pendulum", time_step=0.05)
    nv, nu = model.num_velocities, model.num_actuators
    goal = to.JointGoal(jnp.full(model.num_positions, 0.4), 5.0)
    problem = to.Problem(model, mbjax.default_state(model), 6, to.Effort(0.1), [goal, to.VelocityGoal()])
    plan = to.solve(problem, solver=EXACT)
    assert plan.report.converged
    assert plan.gains.shape == (6, nu, 2 * nv)
    np.testing.assert_allclose(plan.states.time, 0.05 * np.arange(7))

    def cost(efforts: jax.Array) -> tuple[jax.Array, jax.Array]:
        """And the positions on the way."""
        way = mbjax.rollout(model, problem.start, efforts)
        final = way.final_state
        total = jnp.sum((0.1 * efforts) ** 2) + jnp.sum(goal(model, final) ** 2) + jnp.sum(final.v**2)
        return 0.5 * total, way.q

    (total, q), slope = jax.jit(jax.value_and_grad(cost, has_aux=True))(plan.efforts)
    np.testing.assert_allclose(plan.states.q, q, atol=1e-10)
    np.testing.assert_allclose(plan.cost, total, rtol=1e-9)
    inside = jnp.abs(plan.efforts) < model.parameters.effort_limit
    np.testing.assert_allclose(jnp.where(inside, slope, 0.0), 0.0, atol=1e-5)


@pytest.mark.whole_run("a plan of a model with a fixed base, above; scheduled steps in test_dynamics_of_problems")
def test_a_floating_leg_jumps_by_a_schedule():
    """A body on a driven slide: it stands for ten steps, flies for ten, and ends as high as it was asked to."""
    link = """<link name="{}"><inertial><mass value="{}"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    text = f"""<robot name="hopper">{link.format("body", 2.0)}{link.format("foot", 0.2)}
    <joint name="leg" type="prismatic">
    <parent link="body"/><child link="foot"/><origin xyz="0 0 -0.5"/><axis xyz="0 0 1"/>
    <limit lower="-9" upper="9" effort="1000" velocity="99"/></joint></robot>"""
    model = mbjax.load(text, base="floating", time_step=0.02, actuators="joints")
    start = mbjax.State(jnp.array([1.0, 0, 0, 0, 0, 0, 0.5, 0.0]), jnp.zeros(7))
    contacts = mbjax.ConstraintSet().add_contact_constraint("foot", jnp.zeros(3), np.eye(3)[[2, 0, 1]], name="foot")
    dynamics = to.ScheduledContacts(contacts.bind(model))
    active = np.arange(21)[:, None] < 10
    stages = to.contact_schedule(active)

    def final(model, x, stage):
        return 30.0 * (mbjax.center_of_mass_position_in_world(model, x.q)[2:] - 0.8)

    problem = to.Problem(
        model,
        start,
        20,
        [lambda model, x, u, stage: 1e-2 * u],
        [final],
        (jnp.array([-500.0]), jnp.array([500.0])),
        to.at_least(to.FrictionCone(dynamics, 0.8), at="running", name="cone"),
        stages=stages,
        dynamics=dynamics,
    )
    plan = to.solve(problem)
    assert plan.report.converged, str(plan.report)
    np.testing.assert_allclose(jnp.linalg.norm(plan.states.q[:, :4], axis=1), 1.0, atol=1e-12)  # no quaternion drifts
    foot = jax.vmap(lambda q: mbjax.body_pose_in_world(model, q, "foot").translation)(plan.states.q)
    np.testing.assert_allclose(foot[:11], np.broadcast_to(foot[:1], (11, 3)), atol=1e-6)  # it stands
    end = mbjax.center_of_mass_position_in_world(model, plan.states.q[-1])
    np.testing.assert_allclose(end[2], 0.8, atol=0.01)  # it flies as high as asked


def test_limits_of_a_model_hold_with_those_that_are_given():
    model = mbjax.load("arm", time_step=0.02)
    limit = np.asarray(model.parameters.effort_limit)
    problem = to.Problem(model, mbjax.default_state(model), 3, to.Effort(), efforts=(-1e3, 2.0))
    np.testing.assert_array_equal(problem.low, -limit)
    np.testing.assert_array_equal(problem.high, np.minimum(limit, 2.0))
    with pytest.raises(mbjax.ModelError, match="no effort is both"):
        to.Problem(model, mbjax.default_state(model), 3, to.Effort(), efforts=(1e4, 1e5))


def test_a_cost_without_descent_is_told():
    """The Hessian of a number that is concave in the effort: no regularization within reach mends it."""
    problem = to.Problem(
        None,
        jnp.zeros(2),
        STEPS,
        lambda model, x, u: -1e12 * jnp.sum(u**2),
        Goal(jnp.array(1.0)),
        (jnp.array([-np.inf]), jnp.array([np.inf])),
        dynamics=Pendulum(jnp.array(1.0)),
    )
    with pytest.warns(mbjax.ModelWarning, match="no step length lowers the cost"):
        found = to.solve(problem)
    assert found.report.outcome == to.Outcome.NO_DESCENT


@pytest.mark.parametrize(
    "final",
    [
        lambda model, x: 0.05 * jnp.sum(jnp.abs(x - 0.95)),
        lambda model, x: jnp.sum(x**2) - 2.0 * jnp.sum(jax.lax.stop_gradient(x) ** 2),
    ],
    ids=["kink", "wrong derivative"],
)
def test_steps_that_regularization_alone_made_small_are_no_optimum(final):
    limits, dynamics = (jnp.full(2, -np.inf), jnp.full(2, np.inf)), Linear(jnp.eye(2), 0.1 * jnp.eye(2))
    problem = to.Problem(
        None, jnp.ones(2), 3, lambda model, x, u: 0.005 * jnp.sum(u * u), final, limits, dynamics=dynamics
    )
    with pytest.warns(mbjax.ModelWarning, match="no step length lowers the cost"):
        found = to.solve(problem)
    assert found.report.outcome == to.Outcome.NO_DESCENT
    assert found.report.iterations < 40
    assert found.report.stationarity > 1e-3


def test_misuse_of_a_problem_of_a_model_is_named():
    model = mbjax.load("arm", time_step=0.02)
    start = mbjax.default_state(model)
    with pytest.raises(mbjax.ModelError, match=r"Problem: the state must be a mbjax\.State"):
        to.Problem(model, start.q, 3, to.Effort())
    with pytest.raises(mbjax.ModelError, match=r"JointGoal: q has shape \(3,\), the model needs \(7,\)"):
        to.solve(to.Problem(model, start, 3, to.Effort(), to.JointGoal(jnp.zeros(3))))
    with pytest.raises(mbjax.ModelError, match=r"VelocityGoal: v has shape \(3,\)"):
        to.solve(to.Problem(model, start, 3, to.Effort(), to.VelocityGoal(jnp.zeros(3))))
    with pytest.raises(
        mbjax.ModelError, match=r"<lambda>\(q, v\) is called with 3 arguments, \(model, state, effort\)"
    ):
        to.solve(to.Problem(model, start, 3, lambda q, v: 0.0))


def test_a_start_of_the_wrong_size_is_named():
    model = mbjax.load("arm", time_step=0.02)
    problem = to.Problem(model, mbjax.State(jnp.zeros(3), jnp.zeros(7)), 3, to.Effort())
    with pytest.raises(mbjax.ModelError, match=r"state\.q"):
        to.solve(problem)


def test_warnings_are_only_for_what_did_not_converge():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        to.solve(pendulum())
    with pytest.warns(mbjax.ModelWarning, match="larger max_iterations"):
        to.solve(pendulum(), solver=to.FeasibilityDDP(max_iterations=2))
