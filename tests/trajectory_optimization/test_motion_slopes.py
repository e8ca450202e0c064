"""Closed forms of costs that read contact forces, and of goals that are data of steps, against JAX's derivatives."""

import functools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.dynamics import calc_center_of_mass_and_jacobian
from mbjax.kinematics import for_worlds_of
from mbjax.trajectory_optimization.expansion import expand
from mbjax.trajectory_optimization.frame_motions import frame_motion, frame_velocity
from mbjax.trajectory_optimization.linearization import differentiate_steps
from mbjax.trajectory_optimization.multipliers import Penalties
from mbjax.trajectory_optimization.problem import prepared
from tests.gradients.checks import WHOLE_RUN

from .test_slopes import MODEL, NU, NV, state_of

FOOT = to.FlatFoot("sole", "arm", (0.2, 0.1))
EFFORTS = jnp.linspace(-0.7, 0.9, 3 * NU).reshape(3, NU)


@functools.cache
def on_points() -> to.ScheduledContacts:
    """A foot and a hand on points."""
    points = mbjax.ConstraintSet()
    for body, at in (("base", [0.3, 0.1, -0.2]), ("hand", [-0.1, 0.2, 0.1])):
        points.add_contact_constraint(body, at, np.eye(3)[[2, 0, 1]], name=body, stabilization_time=0.1)
    return to.ScheduledContacts(points.bind(MODEL))


@functools.cache
def on_a_sole() -> to.ScheduledContacts:
    """A flat foot on the ground."""
    return to.ScheduledContacts(FOOT.add_to(mbjax.ConstraintSet()).bind(MODEL))


@functools.cache
def four_states() -> mbjax.State:
    """States at which the goals are compared, stacked."""
    return jax.tree.map(lambda *x: jnp.stack(x), *(state_of(seed) for seed in (1, 2, 3, 4)))


class Plain(eqx.Module):
    """A cost without its closed form, which computes the step's motion by itself."""

    goal: Callable

    def __call__(self, *args):
        return self.goal(*args)


def expansion_of(goals, dynamics, stages, wrapped, constraints=(), terminal=()):
    """The expansion about given states, of goals as they are or wrapped; with constraints as penalties."""
    bounds = [to.at_least(wrapped(c), at="running", name=str(i)) for i, c in enumerate(constraints)]
    running = [wrapped(goal) for goal in goals]
    problem = to.Problem(MODEL, state_of(1), 3, running, terminal, constraints=bounds, dynamics=dynamics, stages=stages)
    problem = prepared(problem)
    penalties = None
    if constraints:
        penalties = Penalties(tuple(jnp.full((4, n), -0.3) for n in (4, 10)), jnp.asarray(2.0))
    reached = jax.tree.map(lambda x: x[1:], four_states())
    return jax.jit(lambda: expand(problem, four_states(), EFFORTS, reached, penalties))()


def assert_equal(found, expected):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11 * float(jnp.max(jnp.abs(other), initial=1.0)))


@pytest.mark.whole_run("slopes of goals in test_goals.py, and forces of contacts in test_dynamics_of_problems.py")
def test_costs_and_constraints_of_contact_forces():
    """With both contacts, one that begins by an impulse, and one alone."""
    stages = to.contact_schedule([[True, False], [True, True], [False, True], [False, True]])
    pyramid = to.FrictionPyramid(on_points(), 0.6)
    goals = [to.ContactForce(on_points(), 3.0, jnp.linspace(0.1, 0.6, 6)), to.Barrier(pyramid, 0.0, jnp.inf, 0.4)]
    constraints = [to.FrictionCone(on_points(), 0.8), pyramid]
    given = goals, on_points(), stages
    found = expansion_of(*given, lambda goal: goal, constraints, [to.CenterOfMass([0.0, 0, 1])])
    assert_equal(found, expansion_of(*given, Plain, constraints, [to.CenterOfMass([0.0, 0, 1])]))
    before, of_steps = (jax.tree.map(lambda x: x[:-1], x) for x in (four_states(), stages))
    plain = jax.jit(lambda: differentiate_steps(lambda *x: on_points()(MODEL, *x), MODEL, before, EFFORTS, of_steps))()
    assert_equal((found.A, found.B), (plain.A, plain.B))


@pytest.mark.whole_run("contacts hold, swing and stop, and their forces, in test_dynamics_of_problems.py")
def test_forces_where_a_contact_begins_are_those_after_the_impulse():
    stage = {"active": jnp.array([True, True]), "begins": jnp.array([False, True])}
    state, effort = state_of(5), EFFORTS[0]

    def found():
        motion = on_points().motion(MODEL, state, effort, stage)
        stopped = mbjax.constraint_impulses(MODEL, on_points().contacts, state.q, state.v).v
        rates = mbjax.constraints_velocity_error(MODEL, on_points().contacts, state.q, motion.v)
        _, force = on_points().solve(MODEL, mbjax.State(state.q, stopped), effort, stage)
        return motion, stopped, rates, force, to.ContactForce(on_points())(MODEL, state, effort, stage)

    motion, stopped, rates, force, cost = jax.jit(found)()
    np.testing.assert_allclose(motion.v, stopped, atol=1e-12)
    np.testing.assert_allclose(rates, 0.0, atol=1e-11)
    np.testing.assert_allclose(motion.force, force, atol=1e-9)
    np.testing.assert_allclose(cost, force, atol=1e-9)


@pytest.mark.whole_run("the wrench cone is what forces can give, in test_contact_forces.py")
def test_costs_of_flat_feet():
    stages = to.contact_schedule([[True] * 3] * 2 + [[False] * 3] * 2)
    cone = to.Barrier(to.WrenchCone(on_a_sole(), FOOT, 0.5), 2.0, jnp.inf)
    goals = [cone, to.CenterOfPressure(on_a_sole(), FOOT, (0.02, 0.01), 0.7)]
    given = goals, on_a_sole(), stages
    assert_equal(expansion_of(*given, lambda goal: goal), expansion_of(*given, Plain))


@pytest.mark.whole_run("data of each step reaches every function, in test_solve.py; goals of points in test_goals.py")
def test_goals_that_are_data_of_steps():
    """A stage's goal equals one with its numbers. Whole run: slopes, where references and weights change."""
    stages = to.contact_schedule([[True, False]] * 4) | {
        "point": jnp.arange(12.0).reshape(4, 3) / 9.0,
        "weight": jnp.array([0.5, 1.5, 0.0, 2.0]),
    }

    def of_states(stage):
        return [to.PointGoal("hand", stage["point"], stage["weight"]), to.VelocityGoal(factor=stage["weight"])]

    def running(stage):
        return [*of_states(stage), to.ContactForce(on_points(), weight=stage["weight"]), to.Effort(stage["weight"])]

    if WHOLE_RUN:
        staged = [to.AtStage(running)], on_points(), stages
        found = expansion_of(*staged, lambda goal: goal, terminal=to.AtStage(of_states))
        assert_equal(found, expansion_of(*staged, Plain, terminal=Plain(to.AtStage(of_states))))
    one = to.AtStage(lambda stage: to.PointGoal("hand", stage["point"], stage["weight"]))
    stage = jax.tree.map(lambda x: x[1], stages)
    expected = to.PointGoal("hand", stage["point"], 1.5)(MODEL, state_of(5))
    np.testing.assert_allclose(one(MODEL, state_of(5), EFFORTS[0], stage), expected, atol=1e-14)
    assert one.slopes(MODEL, state_of(5), EFFORTS[0], stage)[0].by_q.shape == (3, NV)
    with pytest.raises(mbjax.ModelError, match="give the Problem stages="):
        to.AtStage(of_states)(MODEL, state_of(5))


@pytest.mark.whole_run("slopes of goals of points of frames and of centres by differences, in test_goals.py")
def test_motions_of_frames_and_centres_are_alike_in_one_world_and_in_many():
    states = jax.vmap(lambda key: mbjax.random_state(MODEL, key))(jax.random.split(jax.random.key(3), 40))
    p_FP = jnp.array([0.3, 0.2, 0.1])

    def found(state):
        centre = for_worlds_of(calc_center_of_mass_and_jacobian, MODEL, state.q)
        at, velocity = frame_motion(MODEL, state.q, "hand", p_FP), frame_velocity(MODEL, state.q, state.v, "hand", p_FP)
        return centre, at.p_WP, at.J, velocity

    def expected(state):
        frame, point = MODEL.frame_index("hand"), mbjax.points_positions(MODEL, state.q, "hand", p_FP, "world")
        J = mbjax.jacobian_spatial_velocity(MODEL, state.q, frame, p_FP, "world", "world")
        centre = mbjax.center_of_mass_position_in_world(MODEL, state.q)
        J_centre = mbjax.jacobian_center_of_mass_translational_velocity(MODEL, state.q)
        by_q = jax.jacfwd(lambda dq: velocity_at(mbjax.integrate_configuration(MODEL, state.q, dq), state.v))
        return (centre, J_centre), point, J, (J @ state.v, by_q(jnp.zeros(NV)), J)

    def velocity_at(q, v):
        return mbjax.jacobian_spatial_velocity(MODEL, q, "hand", p_FP, "world", "world") @ v

    one, other = (jax.jit(jax.vmap(function))(states) for function in (found, expected))
    assert_equal(one, other)
