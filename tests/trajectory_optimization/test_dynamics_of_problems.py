"""Dynamics that are given with the library: scheduled contacts, efforts that are remembered."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.trajectory_optimization.linearization import differentiate_steps
from tests.gradients.checks import WHOLE_RUN, all_gradients
from tests.simulation.test_wrench_actuators import POINTS as ROTORS
from tests.simulation.test_wrench_actuators import TEXT as FLYING_ARM

from .problems import differences_of_steps

MASS, DT = 2.0, 0.01
DRAG = 0.02, -0.02, 0.02, -0.02
LINK = """<link name="{name}"><inertial><mass value="{mass}"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
SLIDE = """<joint name="{name}" type="prismatic"><parent link="{parent}"/><child link="{child}"/><axis xyz="{axis}"/>
<limit lower="-99" upper="99" effort="99" velocity="99"/></joint>"""


@pytest.fixture(scope="module")
def bead() -> mbjax.MultibodyModel:
    """A point mass that three sliding joints let go anywhere, each with a motor."""
    links = '<link name="base"/><link name="a"/><link name="b"/>' + LINK.format(name="bead", mass=MASS)
    joints = [("x", "base", "a", "1 0 0"), ("y", "a", "b", "0 1 0"), ("z", "b", "bead", "0 0 1")]
    slides = "".join(SLIDE.format(name=n, parent=p, child=c, axis=axis) for n, p, c, axis in joints)
    return mbjax.load(f'<robot name="bead">{links}{slides}</robot>', base="fixed", time_step=DT, actuators="joints")


@pytest.fixture(scope="module")
def dynamics(bead) -> to.ScheduledContacts:
    normals = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
    return to.ScheduledContacts(
        mbjax.ConstraintSet().add_contact_constraint("bead", [0.0, 0, 0], normals, name="foot").bind(bead)
    )


def stage(active: bool, begins: bool) -> dict:
    return {"active": jnp.array([active]), "begins": jnp.array([begins])}


EFFORT = jnp.array([3.0, -4.0, 1.5])


def test_a_contact_holds_swings_and_stops(bead, dynamics):
    step = jax.jit(lambda *args: dynamics(*args))
    state = mbjax.State(jnp.array([0.1, 0.2, 0.3]), jnp.array([1.0, 2.0, -3.0]))
    free = step(bead, state, EFFORT, stage(False, False))
    vdot = np.array(EFFORT) / MASS - [0.0, 0.0, 9.81]
    np.testing.assert_allclose(free.v, state.v + DT * vdot, atol=1e-12)
    np.testing.assert_allclose(free.q, state.q + DT * free.v, atol=1e-12)
    stopped = step(bead, state, EFFORT, stage(True, True))
    np.testing.assert_allclose(stopped.v, 0.0, atol=1e-9)
    kept = step(bead, state, EFFORT, stage(True, False))
    np.testing.assert_allclose(kept.v, state.v, atol=1e-9)  # without acceleration, as the contact did not begin


def test_the_friction_cone_the_pyramid_and_the_force_are_those_of_the_contact(bead, dynamics):
    n = MASS * 9.81 - 1.5
    cone, pyramid = (kind(dynamics, 0.8, margin=7.0) for kind in (to.FrictionCone, to.FrictionPyramid))
    force = to.ContactForce(dynamics, [n, -3.0, 1.0], factor=4.0)
    state = mbjax.State(jnp.zeros(3), jnp.zeros(3))
    found = jax.jit(lambda at: [f(bead, state, EFFORT, at) for f in (cone, pyramid, force)])
    of_cone, of_pyramid, of_force = found(stage(True, False))
    np.testing.assert_allclose(of_cone, [n, (0.8 * n) ** 2 - 25.0], rtol=1e-9)
    np.testing.assert_allclose(of_pyramid, [n, 0.8 * n + 3.0, 0.8 * n - 3.0, 0.8 * n - 4.0, 0.8 * n + 4.0], rtol=1e-9)
    np.testing.assert_allclose(of_force, [0.0, 0.0, 6.0], atol=1e-9)
    for apart in found(stage(False, False))[:2]:
        np.testing.assert_allclose(apart, 7.0)
    with pytest.raises(mbjax.ModelError, match="the contacts have 3 rows"):
        to.ContactForce(dynamics, jnp.zeros(2))(bead, state, EFFORT, stage(True, False))


def test_a_schedule_has_a_column_for_each_contact(bead, dynamics):
    two = jax.tree.map(lambda x: x[0], to.contact_schedule([[True, False]]))
    for read in (dynamics.acting, dynamics.active_rows):
        with pytest.raises(mbjax.ModelError, match=r"shape \(2,\), the set 1 contacts \(foot\); give contact_schedule"):
            read(two)


@pytest.mark.whole_run("a guess of a pendulum, which holds what it can")
def test_a_quasi_static_guess_stands_on_its_contacts_and_hovers_without(bead, dynamics):
    stages = to.contact_schedule([[True], [True], [False], [False]])
    problem = to.Problem(
        bead, mbjax.State(jnp.zeros(3), jnp.ones(3)), 3, lambda model, x, u, stage: u, stages=stages, dynamics=dynamics
    )
    states, efforts = to.quasi_static(problem)
    np.testing.assert_array_equal(states.v, 0.0)
    np.testing.assert_allclose(states.time, DT * np.arange(4))
    np.testing.assert_allclose(efforts, [[0, 0, 0], [0, 0, 0], [0, 0, MASS * 9.81]], atol=1e-7)


@pytest.mark.whole_run("the cone, the pyramid and the force are those of the contact, above")
@pytest.mark.parametrize("force", [[0.0, 0.0, MASS * 9.81], [3.0, -4.0, 1.5]], ids=["none", "some"])
def test_gradients_of_the_cone(bead, dynamics, force):
    """Also where the contact bears nothing: the cone's tip is smooth in squares."""
    cone = to.FrictionCone(dynamics, 0.8)
    state = mbjax.State(jnp.zeros(3), jnp.array([0.1, 0.2, 0.0]))
    gradients = all_gradients(lambda u: cone(bead, state, u, stage(True, False)), jnp.array(force))
    np.testing.assert_allclose(gradients.reverse, gradients.forward, atol=1e-9)
    np.testing.assert_allclose(gradients.differences, gradients.forward, atol=1e-6)


def test_a_schedule_marks_where_contacts_begin():
    stages = to.contact_schedule([[1, 0], [0, 0], [1, 1], [1, 1]])
    np.testing.assert_array_equal(stages["begins"], [[0, 0], [0, 0], [1, 1], [0, 0]])
    with pytest.raises(mbjax.ModelError, match="must be of truth values, or of zeros and ones"):
        to.contact_schedule([[np.nan, 0.5]])
    with pytest.raises(mbjax.ModelError, match="a row for each step"):
        to.contact_schedule([1, 0])


@pytest.mark.parametrize("kind", ["contacts", "last effort", "collocation"])
def test_limits_of_the_model_hold_in_other_dynamics(bead, dynamics, kind):
    """As in its steps; those of actuators without limits leave the problem without limits."""
    rest = mbjax.State(jnp.zeros(3), jnp.zeros(3))
    start, given = {
        "contacts": (rest, {"dynamics": dynamics, "stages": to.contact_schedule([[True]] * 4)}),
        "last effort": ((rest, jnp.zeros(3)), {"dynamics": to.WithLastEffort()}),
        "collocation": (rest, {"dynamics": to.HermiteSimpson()}),
    }[kind]
    problem = to.Problem(bead, start, 3, to.Effort(), **given)
    np.testing.assert_array_equal([problem.low, problem.high], [[-99.0] * 3, [99.0] * 3])
    problem = to.Problem(bead, start, 3, to.Effort(), efforts=(-1e3, 2.0), **given)
    np.testing.assert_array_equal([problem.low, problem.high], [[-99.0] * 3, [2.0] * 3])
    with pytest.raises(mbjax.ModelError, match=r"efforts' low has shape \(2,\); the model has 3 actuators"):
        to.Problem(bead, start, 3, to.Effort(), efforts=(jnp.zeros(2), 1.0), **given)
    free = eqx.tree_at(lambda m: m.parameters.effort_limit, bead, jnp.full(3, jnp.inf))
    assert to.Problem(free, start, 3, to.Effort(), **given).low is None


def test_the_rate_of_efforts_is_a_cost(bead):
    start = mbjax.State(jnp.zeros(3), jnp.zeros(3))
    effort = jnp.array([0.0, 0.0, MASS * (9.81 + 2.0)])
    pair = to.WithLastEffort()(bead, (start, jnp.zeros(3)), effort)
    np.testing.assert_allclose(pair[1], effort)
    np.testing.assert_allclose(pair[0].q, [0.0, 0.0, 2.0 * DT**2], atol=1e-15)
    np.testing.assert_allclose(to.EffortRate(2.0)(bead, pair, effort + 1.0), 2.0)
    np.testing.assert_allclose(to.JointGoal(jnp.ones(3))(bead, pair), pair[0].q - 1.0)
    with pytest.raises(mbjax.ModelError, match=r"need a mbjax\.State"):
        to.JointGoal(jnp.ones(3))(bead, jnp.zeros(3))
    with pytest.raises(mbjax.ModelError, match=r"a pair \(state, effort before\), such as .* got State"):
        to.WithLastEffort()(bead, start, effort)


@pytest.mark.whole_run("a guess of a pendulum, in test_contact_forces.py, and lengths of steps in test_free_steps.py")
def test_a_quasi_static_guess_knows_the_last_effort_and_lengths_of_steps(bead):
    """Neither is pushed to what would leave the state as it is."""
    start, holds = mbjax.State(jnp.zeros(3), jnp.ones(3)), [0.0, 0.0, MASS * 9.81]
    remembered = to.Problem(bead, (start, jnp.ones(3)), 2, to.Effort(), dynamics=to.WithLastEffort())
    states, efforts = to.quasi_static(remembered)
    np.testing.assert_allclose(efforts, [holds] * 2, atol=1e-7)
    np.testing.assert_allclose(states[1], [[1.0, 1.0, 1.0], holds, holds], atol=1e-7)
    free = to.Problem(bead, start, 2, to.Effort(), dynamics=to.FreeSteps(0.02, 0.05))
    states, efforts = to.quasi_static(free)
    np.testing.assert_allclose(efforts, [[*holds, 0.02]] * 2, atol=1e-6)
    np.testing.assert_allclose(states.time, [0.0, 0.02, 0.04])
    with pytest.raises(mbjax.ModelError, match=r"quasi_static: states\.q has shape \(3,\); the problem needs \(3, 3\)"):
        to.quasi_static(free, start)


@pytest.fixture(scope="module")
def flying_arm() -> tuple[mbjax.MultibodyModel, to.WithWrenches]:
    """Trimmed: of an elbow without limits, so that steps compile faster."""
    turning = FLYING_ARM.replace('type="revolute"', 'type="continuous"').replace('lower="-2" upper="2" ', "")
    model = mbjax.load(FLYING_ARM if WHOLE_RUN else turning, base="floating", time_step=DT, actuators="joints")
    return model, to.WithWrenches(mbjax.WrenchActuators.propellers(["body"] * 4, ROTORS, drag=DRAG, high=8.0))


@pytest.mark.whole_run("steps beside differences in test_linearization.py, and wrenches in test_wrench_actuators.py")
def test_closed_forms_of_steps_under_wrenches_are_their_derivatives(flying_arm):
    """Trimmed: those of differences."""
    model, dynamics = flying_arm
    keys = jax.random.split(jax.random.key(0), 3)
    states = jax.vmap(lambda key: mbjax.random_state(model, key))(keys)
    states = mbjax.State(states.q, 0.2 * jnp.sin(jnp.arange(21.0)).reshape(3, 7), states.time)
    efforts = jnp.linspace(0.1, 7.0, 15).reshape(3, 5).at[0, 0].set(9.0).at[1, 2].set(-1.0)  # two beyond their limits

    closed = jax.jit(lambda states, efforts: dynamics.linearize(model, states, efforts))(states, efforts)
    if WHOLE_RUN:
        by_steps = jax.jit(lambda *x: differentiate_steps(lambda *y: dynamics(model, *y), model, *x, None))
        differentiated, allowed = by_steps(states, efforts), 1e-11
    else:
        differentiated, allowed = differences_of_steps(dynamics, model, states, efforts), 1e-7
    np.testing.assert_allclose(closed.A, differentiated.A, atol=allowed)
    np.testing.assert_allclose(closed.B, differentiated.B, atol=allowed)
    assert np.all(closed.B[0, :, 0] == 0.0)
    assert np.all(closed.B[1, :, 2] == 0.0)


def test_limits_of_wrenches_are_those_of_the_problem(flying_arm):
    model, dynamics = flying_arm
    problem = to.Problem(model, mbjax.default_state(model), 3, to.Effort(), efforts=(-2.0, 5.0), dynamics=dynamics)
    np.testing.assert_array_equal(problem.low, [-1.5, 0, 0, 0, 0])
    np.testing.assert_array_equal(problem.high, [1.5, 5, 5, 5, 5])
    with pytest.raises(mbjax.ModelError, match="actuator 'propeller_1' must be at least 9"):
        to.Problem(model, problem.start, 3, to.Effort(), efforts=([0, 0, 9, 0, 0], 9.0), dynamics=dynamics)
