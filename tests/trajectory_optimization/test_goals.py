"""Goals by what they say: zero at the goal, weighted, and with the derivatives that differences give."""

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from tests.gradients.checks import OFFSETS, WEIGHTS, all_gradients

MODEL = mbjax.load("arm", time_step=0.01)
STATE = mbjax.State(jnp.linspace(-0.8, 0.9, 7)[jnp.array([3, 0, 5, 1, 6, 2, 4])], 0.3 * jnp.arange(1.0, 8.0))


@functools.cache
def tool_pose() -> mbjax.RigidTransform:
    """Where the tool is."""
    return mbjax.relative_transform(MODEL, STATE.q, "world", "tool")


@functools.cache
def center_of_mass() -> jax.Array:
    """Where the centre of mass is."""
    return mbjax.center_of_mass_position_in_world(MODEL, STATE.q)


AT_THE_GOAL: dict[str, Callable] = {
    "joints": lambda: to.JointGoal(STATE.q),
    "velocities": lambda: to.VelocityGoal(STATE.v),
    "state": lambda: to.StateGoal(STATE),
    "point": lambda: to.PointGoal("tool", tool_pose().translation),
    "point of a frame": lambda: to.PointGoal("tool", tool_pose() @ jnp.array([0.1, 0.2, 0.3]), p_FP=[0.1, 0.2, 0.3]),
    "pose": lambda: to.PoseGoal("tool", tool_pose()),
    "frame's velocity": lambda: to.FrameVelocity(
        "tool", mbjax.body_spatial_velocity_in_world(MODEL, STATE.q, STATE.v, "tool")
    ),
    "centre of mass": lambda: to.CenterOfMass(center_of_mass()),
    "its velocity": lambda: to.CenterOfMassVelocity(
        mbjax.center_of_mass_translational_velocity_in_world(MODEL, STATE.q, STATE.v)
    ),
    "momentum": lambda: to.Momentum(
        mbjax.spatial_momentum_in_world_about_point(MODEL, STATE.q, STATE.v, center_of_mass())
    ),
    "barrier": lambda: to.Barrier(to.VelocityGoal(STATE.v - 0.5), -9.0, 0.5),
}


WHOLE = {
    "state": pytest.mark.whole_run("joints and velocities"),
    "point": pytest.mark.whole_run("a point of a frame"),
    "pose": pytest.mark.whole_run("its numbers, below, and slopes in test_slopes.py"),
    "its velocity": pytest.mark.whole_run("momentum, and the frame's velocity"),
}


@pytest.mark.parametrize("name", [pytest.param(name, marks=WHOLE.get(name, ())) for name in AT_THE_GOAL])
def test_zero_at_the_goal_and_slopes_by_differences(name):
    goal = AT_THE_GOAL[name]()
    weighted = jax.tree.map(lambda x: x, goal)
    if name != "barrier":  # which is at its kink, and has other tests
        object.__setattr__(weighted, "weight", jnp.array(3.0))
    direction = jnp.linspace(-1.0, 1.0, 14)

    @jax.jit
    def along(t: jax.Array) -> tuple[tuple, tuple]:
        """Values of both, and their slopes."""

        def both(t: jax.Array) -> tuple[jax.Array, jax.Array]:
            moved = to.move_state(MODEL, STATE, t * direction)
            return goal(MODEL, moved), weighted(MODEL, moved)

        return jax.jvp(both, (t,), (jnp.array(1.0),))

    (value, _), (forward, _) = along(jnp.array(0.0))
    np.testing.assert_allclose(value, 0.0, atol=1e-12)
    h = 1e-4
    values = np.stack([along(jnp.array(o * h))[0][0] for o in OFFSETS])
    np.testing.assert_allclose(forward, np.tensordot(WEIGHTS, values, 1) / h, atol=1e-8)
    if name != "barrier":
        assert np.max(np.abs(forward)) > 0.01
        value, of_weighted = along(jnp.array(0.1))[0]
        np.testing.assert_allclose(of_weighted, 3.0 * value)


def test_a_pose_goal_measures_the_turn_and_the_distance():
    shifted = mbjax.RigidTransform(tool_pose().rotation, tool_pose().translation + jnp.array([0.0, 0.0, 0.2]))
    np.testing.assert_allclose(to.PoseGoal("tool", shifted)(MODEL, STATE), [0, 0, 0, 0, 0, -0.2], atol=1e-12)
    c, s = np.cos(0.4), np.sin(0.4)
    turned = mbjax.RigidTransform(
        jnp.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]]).T @ tool_pose().rotation, tool_pose().translation
    )
    np.testing.assert_allclose(to.PoseGoal("tool", turned)(MODEL, STATE), [0, 0, 0.4, 0, 0, 0], atol=1e-12)


def test_a_barrier_is_what_lies_beyond_the_bounds():
    barrier = to.Barrier(to.VelocityGoal(), 0.4, 1.0, weight=2.0)
    expected = 2.0 * (np.maximum(STATE.v - 1.0, 0.0) + np.minimum(STATE.v - 0.4, 0.0))
    np.testing.assert_allclose(barrier(MODEL, STATE), expected)
    assert 0 < np.sum(expected != 0.0) < 7
    gradients = all_gradients(lambda v: barrier(MODEL, mbjax.State(STATE.q, v, STATE.time)), STATE.v)
    np.testing.assert_allclose(gradients.forward, 2.0 * np.diag(expected != 0.0), atol=1e-12)
    np.testing.assert_allclose(gradients.reverse, gradients.forward, atol=1e-12)
    np.testing.assert_allclose(gradients.differences, gradients.forward, atol=1e-8)


@pytest.mark.whole_run("the turn and the distance, above, and slopes of the logarithm of a pose in test_slopes.py")
def test_gradients_of_a_pose_goal_near_and_at_half_a_turn():
    half = mbjax.RigidTransform(jnp.diag(jnp.array([1.0, -1.0, -1.0])) @ tool_pose().rotation, tool_pose().translation)
    goal = to.PoseGoal("tool", half)

    def of(q: jax.Array) -> jax.Array:
        return goal(MODEL, mbjax.State(q, STATE.v, STATE.time))

    value, at = jax.jit(lambda q: (of(q), jax.jacrev(of)(q)))(STATE.q)
    np.testing.assert_allclose(np.linalg.norm(value[:3]), np.pi, atol=1e-7)
    assert np.all(np.isfinite(at))
    gradients = all_gradients(of, STATE.q + 0.05)
    np.testing.assert_allclose(gradients.reverse, gradients.forward, atol=1e-9)
    np.testing.assert_allclose(gradients.differences, gradients.forward, atol=1e-6)


def test_efforts_less_a_reference():
    np.testing.assert_allclose(
        to.Effort(2.0, jnp.arange(7.0))(MODEL, STATE, jnp.ones(7)), 2.0 * (1.0 - jnp.arange(7.0))
    )


def test_clearance_is_the_signed_distance():
    text = """<robot name="two"><link name="a"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0"
    ixz="0" iyz="0"/></inertial><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
    <link name="wall"><collision><geometry><box size="0.2 2 2"/></geometry></collision></link>
    <joint name="slide" type="prismatic"><parent link="wall"/><child link="a"/><axis xyz="1 0 0"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/></joint></robot>"""
    model = mbjax.load(text, base="fixed", time_step=0.01, contact_model=None)
    state = mbjax.State(jnp.array([0.7]), jnp.zeros(1))
    np.testing.assert_allclose(to.Clearance([("a", "wall")])(model, state), [0.5])


FLOATING = mbjax.load(
    """<robot name="box"><link name="box"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>""",
    base="floating",
    time_step=0.01,
)


def floating_state(seed: int) -> mbjax.State:
    rng = np.random.default_rng(seed)
    quaternion = rng.normal(size=4)
    q = np.concatenate([quaternion / np.linalg.norm(quaternion), rng.normal(size=3)])
    return mbjax.State(jnp.asarray(q), jnp.asarray(rng.normal(size=6)))


def test_floating_states_in_their_own_frame_are_those_of_pinocchio():
    """The log of SE(3) and velocities along the body's axes, with the translation first there."""
    pinocchio = pytest.importorskip("pinocchio")
    here, goal = floating_state(1), floating_state(2)

    def placement(state):
        R = np.asarray(mbjax.spatial.quaternion_to_matrix(state.q[:4]))
        return pinocchio.SE3(R, np.asarray(state.q[4:]))

    X0, X1 = placement(goal), placement(here)
    expected = pinocchio.log6(X0.actInv(X1)).vector
    dq = to.JointGoal(goal.q, in_frame="own")(FLOATING, here)
    np.testing.assert_allclose(dq, np.concatenate([expected[3:], expected[:3]]), atol=1e-12)
    along = [np.concatenate([X.rotation.T @ x.v[:3], X.rotation.T @ x.v[3:]]) for X, x in ((X1, here), (X0, goal))]
    np.testing.assert_allclose(to.VelocityGoal(in_frame="own")(FLOATING, here), along[0], atol=1e-12)
    both = to.StateGoal(goal, in_frame="own")(FLOATING, here)
    np.testing.assert_allclose(both, np.concatenate([dq, along[0] - along[1]]), atol=1e-12)
    pose = to.PoseGoal("box", mbjax.RigidTransform(jnp.asarray(X0.rotation), goal.q[4:]), in_frame="own")
    np.testing.assert_allclose(pose(FLOATING, here), dq, atol=1e-12)
    np.testing.assert_allclose(pose(FLOATING, goal), 0.0, atol=1e-12)
    with pytest.raises(mbjax.ModelError, match="in_frame must be"):
        to.StateGoal(goal, in_frame="body")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: to.PointGoal("tool", 0.3), r"PointGoal of 'tool': p_WP must be 3 number\(s\), got shape \(\): 0.3"),
        (lambda: to.PointGoal("tool", "up"), "p_WP must be 3 .* got 'up'"),
        (lambda: to.LookAt("tool", [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]), "axis_F must be finite and not all zero"),
        (
            lambda: to.FrameVelocity("tool", [1.0, 0.0, 0.0]),
            r"V_WF must be one number or 6 number\(s\), got shape \(3,\)",
        ),
        (lambda: to.Momentum([1.0, 0.0, 0.0]), "Momentum: L_WCcm must be one number or 6"),
        (lambda: to.StateGoal(jnp.zeros(14)), "StateGoal: the goal must be a mbjax.State, got"),
        (lambda: to.at_least(to.CenterOfMass(jnp.zeros(3)), jnp.inf), "must be at least inf and at most inf: no value"),
    ],
)
def test_goals_that_cannot_be_are_refused(make, words):
    for call in (make, lambda: jax.jit(make)()):
        with pytest.raises(mbjax.ModelError, match=words):
            call()


def test_goals_are_made_of_known_and_traced_numbers_within_jit():
    def made(p):
        return [
            to.LookAt("tool", p),
            to.LookAt("tool", [1.0, 0.0, 0.0], p),
            to.PointGoal("tool", p, p_FP=[0.0, 0.1, p[0]]),
        ]

    for goal in jax.jit(made)(jnp.ones(3)):
        assert all(leaf.dtype == float for leaf in jax.tree.leaves(goal))


@pytest.mark.whole_run("states in their own frame are Pinocchio's, and slopes of goals are those of differences")
def test_gradients_of_a_state_goal_in_its_own_frame():
    here, goal = floating_state(1), to.StateGoal(floating_state(2), in_frame="own")

    def of(dx):
        return goal(FLOATING, to.move_state(FLOATING, here, dx))

    gradients = all_gradients(of, 0.1 * jnp.arange(1.0, 13.0))
    np.testing.assert_allclose(gradients.reverse, gradients.forward, atol=1e-9)
    np.testing.assert_allclose(gradients.differences, gradients.forward, atol=1e-6)
    at_goal = jax.jacfwd(lambda dx: goal(FLOATING, to.move_state(FLOATING, goal.goal, dx)))(jnp.zeros(12))
    assert np.all(np.isfinite(at_goal))
