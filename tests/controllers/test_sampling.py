"""Sampling control: better plans by costs alone, within limits, with a key; a cart-pole swung up."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import controllers
from mbjax import trajectory_optimization as to
from mbjax.geometry import Box, Sphere
from mbjax.trajectory_optimization.sampling import costs_of, draw
from tests.gradients.checks import compiled
from tests.trajectory_optimization.problems import pendulum

STEPPERS = [controllers.mppi_step, controllers.cem_step]


@pytest.mark.parametrize("stepper", STEPPERS)
def test_plans_get_better_within_limits_and_depend_on_the_key_alone(stepper) -> None:
    problem = pendulum(limited=True)
    first = controllers.sampled_plan(problem, 3.0)
    key = jax.random.key(0)
    u, plan = stepper(problem, first, jnp.zeros(2), key, knots=8, iterations=8)
    again, _ = stepper(problem, first, jnp.zeros(2), key, knots=8, iterations=8)
    np.testing.assert_array_equal(u, again)
    at_rest = stepper(problem, first, jnp.zeros(2), key, samples=2, iterations=1, **few(stepper))[1].cost
    assert plan.cost < 0.5 * at_rest
    assert ((plan.efforts >= problem.low - 1e-12) & (plan.efforts <= problem.high + 1e-12)).all()
    best = to.solve(problem)
    assert plan.cost < 3.0 * best.cost


def few(stepper) -> dict:
    return {"elites": 2} if stepper is controllers.cem_step else {}


def test_the_mean_of_mppi_is_that_of_its_equation() -> None:
    """Two samples whose costs are known weigh as exp(-S / λ) says."""
    problem = pendulum()
    plan = controllers.sampled_plan(problem, 1.0)
    key = jax.random.key(3)
    _, found = controllers.mppi_step(problem, plan, jnp.zeros(2), key, samples=2, temperature=5.0)
    drawn = draw(problem, plan, jax.random.split(key, 1)[0], 2, None)
    S = np.asarray(costs_of(problem, drawn))
    w = np.exp(-(S - S.min()) / 5.0)
    np.testing.assert_allclose(found.efforts, np.tensordot(w / w.sum(), drawn, 1), rtol=1e-9, atol=1e-12)


def test_derivatives_of_mppi_are_those_of_the_mean() -> None:
    def effort(goal):
        problem = pendulum(goal=goal)
        plan = controllers.sampled_plan(problem, 1.0)
        return controllers.mppi_step(problem, plan, jnp.zeros(2), jax.random.key(0), samples=8, temperature=50.0)[0]

    check = mbjax.check_grads(effort, jnp.array(1.2), quiet=True)
    assert check, str(check)


def test_what_samplers_cannot_do_is_refused() -> None:
    problem, key = pendulum(constrained=True), jax.random.key(0)
    plan = controllers.sampled_plan(problem, 1.0)
    with pytest.raises(mbjax.ModelError, match="'speed', 'goal'"):
        controllers.mppi_step(problem, plan, jnp.zeros(2), key)
    with pytest.raises(mbjax.ModelError, match="elites must be"):
        controllers.cem_step(pendulum(), plan, jnp.zeros(2), key, samples=8, elites=9)
    with pytest.raises(mbjax.ModelError, match="samples must be"):
        controllers.mppi_step(pendulum(), plan, jnp.zeros(2), key, samples=1)
    with pytest.raises(mbjax.ModelError, match="temperature must be"):
        controllers.mppi_step(pendulum(), plan, jnp.zeros(2), key, temperature=0.0)
    with pytest.raises(mbjax.ModelError, match="deviation has shape"):
        controllers.sampled_plan(problem, jnp.ones(3))
    for deviation in (-1.0, jnp.nan):
        with pytest.raises(mbjax.ModelError, match="sampled_plan: deviation must be a finite number >= 0"):
            controllers.sampled_plan(problem, deviation)
    with pytest.raises(mbjax.ModelError, match=r"cem_step: least_deviation has shape \(3,\)"):
        controllers.cem_step(pendulum(), plan, jnp.zeros(2), key, least_deviation=jnp.ones(3))
    with pytest.raises(mbjax.ModelError, match="mppi_step: the key must be one key of JAX"):
        controllers.mppi_step(pendulum(), plan, jnp.zeros(2), 3)


def test_samples_without_a_cost_are_no_elites() -> None:
    """Beyond |u| = 0.3 the cost is NaN: the plan is the mean of the others; at a state of NaN it stays."""

    def cost(model, x, u):
        return jnp.where(abs(u[0]) > 0.3, jnp.nan, jnp.sum(u**2) + 0.0 * x[0])

    free = jnp.array([-jnp.inf]), jnp.array([jnp.inf])
    problem = to.Problem(None, jnp.zeros(2), 3, cost, efforts=free, dynamics=lambda model, x, u: x)
    first, key = controllers.sampled_plan(problem, 0.5), jax.random.key(0)
    options = {"samples": 16, "elites": 8, "iterations": 1}
    _, plan = controllers.cem_step(problem, first, jnp.zeros(2), key, **options)
    drawn = draw(problem, first, jax.random.split(key, 1)[0], 16, None)
    kept = drawn[jnp.isfinite(costs_of(problem, drawn))]
    assert 1 < len(kept) < 8
    np.testing.assert_allclose(plan.efforts, kept.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(plan.deviation, kept.std(axis=0), rtol=1e-12)
    _, plan = controllers.cem_step(problem, first, jnp.full(2, jnp.nan), key, **options)
    np.testing.assert_array_equal(plan.efforts, first.efforts)
    np.testing.assert_array_equal(plan.deviation, first.deviation)


@functools.cache
def cart() -> mbjax.MultibodyModel:
    return mbjax.load("cart_pole", time_step=0.02)


def pole_cost(model, state, effort):
    x, angle = state.q
    return 10.0 * (1.0 - jnp.cos(angle)) + 0.5 * x**2 + 0.05 * state.v @ state.v + 1e-4 * effort @ effort


def pole_end(model, state):
    return 20.0 * pole_cost(model, state, jnp.zeros(1))


def swing_up():
    """From a key to positions and efforts of four seconds of control from hanging."""
    model = cart()
    start = mbjax.State(jnp.array([0.0, jnp.pi]), jnp.zeros(2))
    problem = to.Problem(model, start, 50, pole_cost, pole_end)
    first = controllers.sampled_plan(problem, 25.0)

    def one(carry, key):
        state, plan = carry
        u, plan = controllers.mppi_step(problem, plan, state, key, samples=64, temperature=5.0, knots=8)
        after = mbjax.step(model, state, u)[0]
        return (after, plan), (after.q, u)

    return lambda key: jax.lax.scan(one, (start, first), jax.random.split(key, 200))[1]


@pytest.mark.whole_run("plans get better within limits, and the mean is that of the equation")
def test_mppi_swings_up_the_cart_pole() -> None:
    """From hanging to standing, under effort limits, step by step in closed loop."""
    q, u = compiled(swing_up())(jax.random.key(0))
    assert (abs(u) <= 80.0).all()
    assert (jnp.cos(q[-25:, 1]) > 0.95).all()


def block_on_a_table() -> mbjax.MultibodyModel:
    """A finger and a block that slide in a plane, the block turning too; damping stands for the table's friction."""
    plant = mbjax.MultibodyPlant(0.02, discrete_contact_approximation="lagged")
    surface = mbjax.ProximityProperties(static_friction=0.4, dynamic_friction=0.4)
    light = mbjax.SpatialInertia.solid_sphere_with_mass(0.01, 0.02)
    moved = {}
    for name, damping in (("finger", 2.0), ("block", 8.0)):
        carrier, moved[name] = plant.add_rigid_body(f"{name}_x", light), plant.add_rigid_body(f"{name}_y", light)
        plant.add_joint(mbjax.PrismaticJoint(f"{name}_x", "world", carrier, axis=(1.0, 0.0, 0.0), damping=damping))
        plant.add_joint(mbjax.PrismaticJoint(f"{name}_y", carrier, moved[name], axis=(0.0, 1.0, 0.0), damping=damping))
    block = plant.add_rigid_body("block", mbjax.SpatialInertia.solid_cube_with_mass(0.5, 0.1))
    plant.add_joint(mbjax.RevoluteJoint("turn", moved["block"], block, axis=(0.0, 0.0, 1.0), damping=0.03))
    here = mbjax.RigidTransform.identity()
    plant.register_collision_geometry(moved["finger"], here, Sphere(0.03), "tip", surface)
    plant.register_collision_geometry(block, here, Box((0.1, 0.1, 0.1)), "sides", surface)
    for axis in "xy":
        plant.add_joint_actuator(f"push_{axis}", f"finger_{axis}", effort_limit=20.0)
    return plant.finalize()


BLOCK_GOAL = jnp.array([0.3, 0.2, 0.6])


def block_cost(model, state, effort):
    tip, block = state.q[:2], state.q[2:]
    off = block - BLOCK_GOAL
    near = 0.5 * jnp.sum((tip - block[:2]) ** 2)
    return 20.0 * jnp.sum(off[:2] ** 2) + off[2] ** 2 + near + 0.02 * state.v @ state.v + 1e-4 * effort @ effort


def block_end(model, state):
    return 20.0 * block_cost(model, state, jnp.zeros(2))


def push_block(samples: int):
    """From a key to where the block is off after four seconds of control, in m and rad."""
    model = block_on_a_table()
    start = mbjax.State(jnp.array([-0.15, 0.0, 0.0, 0.0, 0.0]), jnp.zeros(5))
    problem = to.Problem(model, start, 30, block_cost, block_end)

    def one(carry, key):
        state, plan = carry
        u, plan = controllers.mppi_step(problem, plan, state, key, samples=samples, temperature=0.5, knots=6)
        return (mbjax.step(model, state, u)[0], plan), None

    def run(key):
        (end, _), _ = jax.lax.scan(one, (start, controllers.sampled_plan(problem, 6.0)), jax.random.split(key, 200))
        return end.q[2:] - BLOCK_GOAL

    return run


@pytest.mark.whole_run("plans get better within limits, and the mean is that of the equation")
def test_mppi_pushes_a_block_to_a_pose() -> None:
    """36 cm away and turned by 0.6 rad, through contact: within 7 cm and 0.25 rad four seconds later, with any key.

    Ten keys ended 1.4 to 4.7 cm off, and one of them 5.3 where the program was not optimized, and rounded otherwise.
    """
    run = compiled(push_block(128))
    for seed in range(3):
        off = run(jax.random.key(seed))
        assert jnp.linalg.norm(off[:2]) < 0.07, seed
        assert abs(off[2]) < 0.25, seed
