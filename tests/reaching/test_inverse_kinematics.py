"""Inverse kinematics reaches what forward kinematics made, holds what is hard, and says why where it cannot."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from tests.constraints import mechanisms
from tests.gradients.checks import WHOLE_RUN

ARM = mbjax.load("arm")
LIMITS = np.asarray(ARM.position_lower_limits), np.asarray(ARM.position_upper_limits)
Q = mbjax.random_state_within_limits(ARM, jax.random.key(3)).q
X_WT = mbjax.relative_transform(ARM, Q, "world", "tool")


def drawn(model: mbjax.MultibodyModel, key: int, count: int) -> jax.Array:
    """Configurations within limits."""
    keys = jax.random.split(jax.random.key(key), count)
    return jax.vmap(lambda key: mbjax.random_state_within_limits(model, key).q)(keys)


def solve_pose(X: mbjax.RigidTransform, guess: jax.Array) -> mbjax.InverseKinematicsResult:
    return mbjax.inverse_kinematics(ARM, {"hand": to.PoseGoal("tool", X)}, guess)


def test_random_poses_are_reached_within_limits_in_a_batch_as_one_by_one() -> None:
    targets, guesses = drawn(ARM, 0, 40), drawn(ARM, 1, 40)
    X = jax.vmap(lambda q: mbjax.relative_transform(ARM, q, "world", "tool"))(targets)
    found = jax.jit(jax.vmap(solve_pose))(X, guesses)
    assert np.all(found.reachable)
    assert np.all(found.converged)
    assert np.all((found.q >= LIMITS[0]) & (found.q <= LIMITS[1]))
    reached = jax.vmap(lambda q: mbjax.relative_transform(ARM, q, "world", "tool"))(found.q)
    np.testing.assert_allclose(reached.translation, X.translation, atol=1e-8)
    np.testing.assert_allclose(reached.rotation, X.rotation, atol=1e-8)
    one = solve_pose(jax.tree.map(lambda x: x[7], X), guesses[7])
    np.testing.assert_allclose(one.q, found.q[7], atol=1e-9)
    assert "all goals are reached" in str(one)
    with pytest.raises(mbjax.ModelError, match="take one of them first"):
        _ = found.message


@pytest.mark.whole_run("random poses in a batch as one by one")
def test_lanes_find_what_tasks_one_by_one_find(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a CPU's kernels are off, as on a GPU, a batch runs in lanes, here fewer than tasks."""
    from mbjax.reaching import lanes

    monkeypatch.setattr(lanes, "LANES", 4)
    targets, guesses = drawn(ARM, 0, 11), drawn(ARM, 1, 11)
    goals = jax.vmap(lambda q: mbjax.points_positions(ARM, q, "tool", jnp.zeros(3), "world"))(targets)

    def solve(p: jax.Array, guess: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = mbjax.inverse_kinematics(ARM, to.PointGoal("tool", p), guess)
        return found.q, found.iterations

    q, iterations = jax.jit(jax.vmap(solve))(goals, guesses)
    monkeypatch.setenv("MBJAX_ONE_KERNEL", "0")
    jax.clear_caches()
    in_lanes, lane_iterations = jax.jit(jax.vmap(solve))(goals, guesses)
    np.testing.assert_allclose(in_lanes, q, atol=1e-6)
    np.testing.assert_array_equal(lane_iterations, iterations)


@pytest.mark.parametrize(
    ("target", "outcome", "words"),
    [
        ([9.0, 0.0, 0.0], "UNREACHABLE", "'hand' cannot come nearer, from 3 starts: out of reach"),
        ([0.0, 0.0, -9.0], "UNREACHABLE", "out of reach"),
    ],
)
def test_what_is_out_of_reach_is_said_to_be(target, outcome, words) -> None:
    found = mbjax.inverse_kinematics(ARM, {"hand": to.PointGoal("tool", target)}, restarts=2)
    assert mbjax.ReachOutcome(int(found.outcome)).name in (outcome, "AT_LIMITS")
    if int(found.outcome) == mbjax.ReachOutcome.UNREACHABLE:
        assert words in found.message
    assert not found.reachable
    assert found.converged
    assert np.all(np.isfinite(found.q))
    assert "missed" in str(found)


def test_a_limit_that_keeps_the_goal_away_is_named() -> None:
    beyond = ARM.position_upper_limits.at[3].add(0.4)
    goal = to.JointGoal(Q.at[3].set(beyond[3]))
    found = mbjax.inverse_kinematics(ARM, {"posture": goal}, Q, restarts=0)
    assert int(found.outcome) == mbjax.ReachOutcome.AT_LIMITS
    np.testing.assert_array_equal(found.at_limit, np.arange(7) == 3)
    assert found.q[3] == ARM.position_upper_limits[3]
    assert ARM.velocity_names()[3] in found.message
    np.testing.assert_allclose(found.residuals["posture"], np.where(np.arange(7) == 3, -0.4, 0.0), atol=1e-8)
    both = dataclasses.replace(
        found, violations={"posture": jnp.full(7, 0.2)}, missed=jnp.array([True, True]), names=("posture", "posture")
    )  # a constraint of the same name has a line of its own
    assert "keep 'posture', constraint 'posture' from" in both.message
    assert "posture               0.4  missed\nposture (constraint)  0.2  missed\n" in str(both)


@pytest.mark.whole_run("what is out of reach is said to be, and a limit that keeps a goal away is named, above")
def test_goals_that_contradict_each_other_are_named() -> None:
    """Whole run: also where some of them, or all, are constraints."""
    p = X_WT.translation
    goals = {
        "here": to.PointGoal("tool", p),
        "there": to.PointGoal("tool", p + 0.1),
        "any": to.LookAt("tool", p, weight=0),
    }
    found = mbjax.inverse_kinematics(ARM, goals, Q, restarts=1)
    assert int(found.outcome) == mbjax.ReachOutcome.CONTRADICTORY
    assert "'here', 'there' contradict each other" in found.message
    np.testing.assert_allclose(found.residuals["here"], 0.05, atol=1e-7)
    np.testing.assert_allclose(found.residuals["there"], -0.05, atol=1e-7)
    if not WHOLE_RUN:
        return
    held = mbjax.inverse_kinematics(ARM, goals["there"], Q, constraints={"here": goals["here"]}, restarts=0)
    np.testing.assert_allclose(held.violations["here"], 0.0, atol=1e-8)
    assert int(held.outcome) == mbjax.ReachOutcome.CONTRADICTORY
    assert "'here'" in held.message
    impossible = mbjax.inverse_kinematics(ARM, (), Q, constraints=goals | {"any": goals["here"]}, restarts=0)
    assert not impossible.converged
    assert "'there'" in impossible.message


def test_it_leaves_a_singular_configuration() -> None:
    """Stretched out, no direction brings the hand nearer to a place between it and the base."""
    model = two_link()
    start = jnp.zeros(2)
    straight = mbjax.points_positions(model, start, "hand", jnp.zeros(3), "world")
    found = mbjax.inverse_kinematics(model, to.PointGoal("hand", 0.6 * straight), start, restarts=0)
    assert found.reachable
    at_the_edge = mbjax.inverse_kinematics(model, to.PointGoal("hand", straight), start + 0.3, restarts=0)
    np.testing.assert_allclose(at_the_edge.residuals["PointGoal of hand"], 0.0, atol=1e-6)


def two_link() -> mbjax.MultibodyModel:
    """Two links of 1 m in the plane, without limits."""
    plant = mbjax.MultibodyPlant()
    inertia = mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.1, 0.1)
    upper, lower = plant.add_rigid_body("upper", inertia), plant.add_rigid_body("lower", inertia)
    out = mbjax.RigidTransform(jnp.eye(3), jnp.array([1.0, 0.0, 0.0]))
    plant.add_joint(mbjax.RevoluteJoint("shoulder", plant.world_body, upper, axis=[0, 0, 1]))
    plant.add_joint(mbjax.RevoluteJoint("upper_arm_roll", upper, lower, X_PF=out, axis=[0, 0, 1]))
    plant.add_frame("hand", lower, out)
    return plant.finalize()


@pytest.mark.whole_run("a hard priority beside Drake, in test_robots_and_trees.py")
def test_hard_priorities_bounds_and_locked_joints_hold_exactly() -> None:
    model = mbjax.lock_joint(ARM, "upper_arm_roll")
    low = X_WT.translation - jnp.array([0.02, 0.05, 0.1])

    def tip(model: mbjax.MultibodyModel, state: mbjax.State) -> jax.Array:
        return mbjax.points_positions(model, state.q, "tool", jnp.zeros(3), "world")

    found = mbjax.inverse_kinematics(
        model,
        {"posture": to.JointGoal(jnp.zeros(7))},
        Q,
        constraints={
            "window": to.Constraint(tip, low, low + 0.02),
            "view": to.LookAt("tool", X_WT @ jnp.array([0, 0, 1.0])),
        },
        restarts=0,
    )
    assert found.converged
    assert not found.reachable
    assert found.q[ARM.joint("upper_arm_roll").q] == Q[ARM.joint("upper_arm_roll").q]
    p = mbjax.points_positions(model, found.q, "tool", jnp.zeros(3), "world")
    assert np.all((p >= low - 1e-8) & (p <= low + 0.02 + 1e-8))
    np.testing.assert_allclose(found.violations["view"], 0.0, atol=1e-8)


def test_closed_loops_stay_closed() -> None:
    case = mechanisms.four_bar()
    goal = case.q.at[0].add(0.3)
    crank = {"crank": to.JointGoal(goal, jnp.arange(len(goal)) == 0)}
    found = mbjax.inverse_kinematics(case.model, crank, case.q, cset=case.cset, local=True)
    np.testing.assert_allclose(mbjax.constraints_position_error(case.model, case.cset, found.q), 0.0, atol=1e-8)
    np.testing.assert_allclose(found.q[0], goal[0], atol=1e-7)
    assert found.reachable
    np.testing.assert_allclose(found.violations["closed loops"], 0.0, atol=1e-8)


def test_errors_say_which_goal_and_what_to_do() -> None:
    pose = to.PoseGoal("tool", X_WT)
    with pytest.raises(mbjax.ModelError, match="there are no goals"):
        mbjax.inverse_kinematics(ARM, [])
    with pytest.raises(mbjax.ModelError, match=r"goal 'hand': there is no frame named 'tol'. Did you mean 'tool'"):
        mbjax.inverse_kinematics(ARM, {"hand": to.PoseGoal("tol", X_WT)})
    with pytest.raises(mbjax.ModelError, match=r"'PointGoal of tool': p_WP must have shape \(3,\), got \(2, 3\).*vmap"):
        mbjax.inverse_kinematics(ARM, to.PointGoal("tool", np.zeros((2, 3))))
    with pytest.raises(mbjax.ModelError, match="goal 'JointGoal' has a number that is NaN, in q"):
        mbjax.inverse_kinematics(ARM, to.JointGoal(np.full(7, np.nan)))
    with pytest.raises(mbjax.ModelError, match="guess must be finite"):
        mbjax.inverse_kinematics(ARM, pose, np.full(7, np.inf))
    with pytest.raises(mbjax.ModelError, match="Clearance is a distance"):
        mbjax.inverse_kinematics(ARM, to.Clearance())
    with pytest.raises(mbjax.ModelError, match="held exactly; give it in constraints="):
        mbjax.inverse_kinematics(ARM, to.at_least(to.Clearance(), 0.01))
    for tolerance in (0.0, "a", [1e-3], np.inf):
        with pytest.raises(mbjax.ModelError, match="inverse_kinematics: tolerance must be"):
            mbjax.inverse_kinematics(ARM, pose, tolerance=tolerance)
    for rotation in (2.0 * np.eye(3), np.diag([1.0, 1.0, -1.0]), np.eye(3) + np.triu(np.full((3, 3), 0.1), 1)):
        X = mbjax.RigidTransform(rotation, np.zeros(3))
        with pytest.raises(mbjax.ModelError, match=r"PoseGoal of 'tool': X_WF: the rotation is not a rotation matrix"):
            to.PoseGoal("tool", X)
        with pytest.raises(mbjax.ModelError, match=r"RelativePose of 'tool': X_AF: the rotation is not a rotation"):
            to.RelativePose("tool", "base", X)
    for X in (None, np.eye(4)):
        with pytest.raises(mbjax.ModelError, match=r"X_WF must be a mbjax\.RigidTransform, got (NoneType|ndarray)"):
            to.PoseGoal("tool", X)
    with pytest.raises(mbjax.ModelError, match=r"goal 'hand': weight must be a finite number >= 0, got"):
        mbjax.inverse_kinematics(ARM, {"hand": to.PoseGoal("tool", X_WT, -1.0)})
    with pytest.raises(mbjax.ModelError, match=r"cset must be a BoundConstraintSet, as .* got 'a'"):
        mbjax.inverse_kinematics(ARM, pose, cset="a")
    with pytest.raises(mbjax.ModelError, match="or a function of"):
        mbjax.inverse_kinematics(ARM, 3.0)
    with pytest.raises(mbjax.ModelError, match=r"restarts must be a whole number of at least 0, got 2\.5"):
        mbjax.inverse_kinematics(ARM, pose, restarts=2.5)
    with pytest.raises(mbjax.ModelError, match="must be one key of JAX, like"):
        mbjax.inverse_kinematics(ARM, pose, key=3)
    with pytest.raises(mbjax.ModelError, match=r"constraint 'JointGoal' has a number that is NaN, in function\.q"):
        mbjax.inverse_kinematics(ARM, None, constraints=to.JointGoal(np.full(7, np.nan)))
    with pytest.raises(mbjax.ModelError, match="weight must be a number or have shape"):
        mbjax.inverse_kinematics(ARM, to.PoseGoal("tool", X_WT, np.ones(3)))


def test_numbers_that_are_not_finite_inside_of_jit_are_reported_and_q_is_the_guess() -> None:
    """Whichever number it is, though goals and constraints are met; a bound may be infinite."""
    model, q = two_link(), jnp.array([0.4, 0.9])
    p = jnp.ravel(mbjax.points_positions(model, q, "hand", jnp.zeros(3), "world"))

    @jax.jit
    def reach(p, weight, held_weight, bound, tolerance) -> mbjax.InverseKinematicsResult:
        held = {"below": to.at_most(to.CenterOfMass(jnp.zeros(3), held_weight), bound)}
        goals = {"hand": to.PointGoal("hand", p, weight)}
        return mbjax.inverse_kinematics(model, goals, q, constraints=held, tolerance=tolerance, restarts=0)

    good = p, jnp.ones(3), jnp.ones(3), jnp.array([9.0, 9.0, jnp.inf]), jnp.array(1e-8)
    assert int(reach(*good).outcome) == mbjax.ReachOutcome.REACHED
    for place in range(len(good)):
        wrong = jnp.ravel(good[place]).at[0].set(jnp.nan).reshape(good[place].shape)
        found = reach(*good[:place], wrong, *good[place + 1 :])
        assert int(found.outcome) == mbjax.ReachOutcome.NOT_FINITE, place
        np.testing.assert_array_equal(found.q, q)
        assert not found.converged
        assert "the tolerance, the guess or the model" in found.message


def test_a_minimum_far_from_its_goals_is_one_to_the_last_digit() -> None:
    """As for a target in mm: steps that change the residual by little are not the end."""
    target, weight = 50.0 * X_WT.translation, 0.3

    def slope(q: jax.Array) -> jax.Array:
        J = mbjax.jacobian_translational_velocity(ARM, q, "tool", jnp.zeros(3), "world", "world")
        missed = mbjax.points_positions(ARM, q, "tool", jnp.zeros(3), "world") - target
        return J.T @ jnp.ravel(missed) + weight**2 * q

    goals = {"hand": to.PointGoal("tool", target), "posture": to.JointGoal(jnp.zeros(7), weight)}
    found = mbjax.inverse_kinematics(ARM, goals, Q, restarts=0, max_iterations=jnp.array(400))
    assert found.converged
    assert not np.any(found.q == LIMITS[0]) or np.any(found.q == LIMITS[1])
    np.testing.assert_allclose(slope(found.q), 0.0, atol=1e-7)
    early = mbjax.inverse_kinematics(ARM, goals, Q, restarts=0, max_iterations=jnp.array(5))
    assert int(early.outcome) == mbjax.ReachOutcome.ITERATION_LIMIT


def test_locked_joints_stay_beyond_limits_and_quaternions_become_unit() -> None:
    model = mbjax.lock_joint(ARM, "upper_arm_roll")
    place = ARM.joint("upper_arm_roll").q
    guess = Q.at[place].set(ARM.position_upper_limits[place] + 0.5)
    found = mbjax.inverse_kinematics(model, {"hand": to.PointGoal("tool", X_WT.translation)}, guess, restarts=1)
    np.testing.assert_array_equal(found.q[place], guess[place])
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("body", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
    free = plant.finalize()
    for length in (2.0, 0.0):
        met = mbjax.inverse_kinematics(
            free, to.PointGoal("body", [1.0, 2.0, 3.0]), jnp.array([length, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0]), restarts=0
        )
        np.testing.assert_array_equal(met.q, [1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0])


def test_a_path_is_followed_without_jumps() -> None:
    """By two links; whole run: by the arm."""
    model, hand, q = (ARM, "tool", Q) if WHOLE_RUN else (two_link(), "hand", jnp.array([0.4, 0.9]))

    def hand_at(p: jax.Array) -> to.PointGoal:
        return to.PointGoal(hand, p)

    s = jnp.linspace(0.0, 1.0, 25)[:, None]
    start = mbjax.points_positions(model, q, hand, jnp.zeros(3), "world")
    path = jnp.ravel(start) + 0.15 * jnp.concatenate([jnp.cos(6 * s) - 1.0, jnp.sin(6 * s), 0.0 * s], 1)
    found = mbjax.follow(model, hand_at, path, q)
    assert np.mean(found.reachable) == 1.0
    reached = jax.vmap(lambda q: mbjax.points_positions(model, q, hand, jnp.zeros(3), "world"))(found.q)
    np.testing.assert_allclose(reached, path, atol=1e-8)
    assert np.max(np.abs(np.diff(found.q, axis=0))) < 0.3
    with pytest.raises(mbjax.ModelError, match="must be a function of a point"):
        mbjax.follow(model, to.PointGoal(hand, path[0]).p_WP, path)
    with pytest.raises(mbjax.ModelError, match=r"must be a function of a point.* got PointGoal"):
        mbjax.follow(model, to.PointGoal(hand, path[0]), path)
