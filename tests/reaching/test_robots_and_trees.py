"""Random trees of every joint, real robots with floating bases, and Drake's `InverseKinematics` beside it."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.inverse_kinematics import InverseKinematics
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.solvers import Solve

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.reference_models import path as bundled
from tests.models import JOINT_CLASSES, load_robot, random_tree


@pytest.fixture(scope="module")
def tree() -> mbjax.MultibodyModel:
    """One joint of every kind, and a free body; roll-pitch-yaw joints within limits."""
    model = random_tree(5, tuple(JOINT_CLASSES)).model
    for joint in model.layout.joints:
        if joint.kind in ("ball_rpy", "universal", "revolute", "planar"):
            limits = np.full(joint.num_positions, 1.1)
            model = mbjax.set_position_limits(model, joint.index, -limits, limits)
    return model


@pytest.mark.whole_run("random poses of an arm, in test_inverse_kinematics.py, and coupled joints, below")
def test_every_kind_of_joint_moves_and_keeps_its_limits(tree: mbjax.MultibodyModel) -> None:
    bodies = [f"body{i}" for i in range(len(JOINT_CLASSES) + 1)]
    truth = mbjax.random_state_within_limits(tree, jax.random.key(1)).q
    guess = mbjax.random_state_within_limits(tree, jax.random.key(2)).q
    X = [mbjax.relative_transform(tree, truth, "world", body) for body in bodies]
    goals = {body: to.PoseGoal(body, X_WB) for body, X_WB in zip(bodies, X, strict=True)}
    found = mbjax.inverse_kinematics(tree, goals, guess, restarts=30)
    assert found.reachable, str(found)
    assert np.all((found.q >= tree.position_lower_limits) & (found.q <= tree.position_upper_limits))
    for body, X_WB in zip(bodies, X, strict=True):
        reached = mbjax.relative_transform(tree, found.q, "world", body)
        np.testing.assert_allclose(reached.translation, X_WB.translation, atol=1e-7)
        np.testing.assert_allclose(reached.rotation, X_WB.rotation, atol=1e-7)


@pytest.mark.whole_run("derivatives of a compromise of such goals, in test_solution_derivative.py")
def test_jacobians_in_closed_form_are_those_of_differentiation() -> None:
    from mbjax.kinematics import calc_position_kinematics
    from mbjax.reaching.residual_rows import rows_by_differentiation, rows_of

    tree = random_tree(5, ("revolute", "ball_rpy", "quaternion_floating", "screw")).model
    q = mbjax.random_state_within_limits(tree, jax.random.key(3)).q
    X = mbjax.relative_transform(tree, q, "world", "body3")
    near = mbjax.RigidTransform(mbjax.spatial.rotation_exp(jnp.array([1e-4, 2e-4, 1e-4])) @ X.rotation, X.translation)
    goals = [
        to.PoseGoal("body2", X),
        to.PoseGoal("body3", near),
        to.PoseGoal("body4", X, in_frame="own"),
        to.RelativePose("body4", "body1", X),
        to.PointGoal("body1", jnp.ones(3), p_FP=[0.1, 0.2, 0.3]),
        to.LookAt("body0", jnp.array([2.0, 1.0, 0.5]), [1.0, 1.0, 0.0], p_FP=[0.1, 0.0, 0.0]),
        to.CenterOfMass(jnp.zeros(3)),
        to.JointGoal(mbjax.random_state_within_limits(tree, jax.random.key(4)).q),
    ]

    def all_of(model: mbjax.MultibodyModel, state: mbjax.State) -> jax.Array:
        return jnp.concatenate([goal(model, state) for goal in goals])

    @jax.jit
    def both(q: jax.Array) -> tuple[list, tuple]:
        position = calc_position_kinematics(tree, q)
        return [rows_of(goal, tree, q, position) for goal in goals], rows_by_differentiation(all_of, tree, q)

    closed, differentiated = both(q)
    start = 0
    for goal, rows in zip(goals, closed, strict=True):
        part = slice(start, start + len(rows.value))
        start = part.stop
        for got, expected in zip(rows, differentiated, strict=True):
            np.testing.assert_allclose(got, expected[part], atol=1e-10, err_msg=type(goal).__name__)
    assert start == len(differentiated[0])


def test_rows_of_a_pose_in_its_own_frame_are_the_slopes_of_the_goal() -> None:
    """So that a weight of zero frees the goal's own axis."""
    from mbjax.kinematics import calc_position_kinematics
    from mbjax.reaching.residual_rows import rows_of

    arm = mbjax.load("arm")
    q, X = jnp.linspace(-0.6, 0.9, 7), mbjax.spatial.pose_exp(jnp.array([0.3, -0.5, 0.2, 0.4, 0.1, 0.6]))
    goal = to.PoseGoal("tool", X, in_frame="own")

    @jax.jit
    def both(q: jax.Array) -> tuple:
        return rows_of(goal, arm, q, calc_position_kinematics(arm, q)), goal.slopes(arm, mbjax.State(q, 0.0 * q))[0]

    rows, slopes = both(q)
    np.testing.assert_allclose(rows.value, slopes.residual, atol=1e-12)
    np.testing.assert_allclose(rows.J, slopes.by_q, atol=1e-12)


@pytest.mark.whole_run("random poses in test_inverse_kinematics.py, and a hard priority beside Drake, below")
def test_a_humanoid_reaches_with_its_feet_on_the_ground_and_its_mass_above_them() -> None:
    model = load_robot("g1_description/urdf/g1_29dof_rev_1_0.urdf", "floating")
    q = jnp.asarray(model.parameters.default_positions)
    frames = ("left_ankle_roll_link", "right_ankle_roll_link")
    X = {name: mbjax.relative_transform(model, q, "world", name) for name in (*frames, "left_rubber_hand")}
    middle = 0.5 * (X[frames[0]].translation + X[frames[1]].translation)
    target = X["left_rubber_hand"].translation + jnp.array([0.15, 0.05, 0.1])
    found = mbjax.inverse_kinematics(
        model,
        {"hand": to.PointGoal("left_rubber_hand", target)},
        q,
        constraints={name: to.PoseGoal(name, X[name]) for name in frames}
        | {"mass": to.CenterOfMass(middle.at[2].set(0.0), jnp.array([1.0, 1.0, 0.0]))},  # at any height
        restarts=0,
    )
    assert found.reachable, str(found)
    assert np.all((found.q >= model.position_lower_limits) & (found.q <= model.position_upper_limits))
    for name in frames:
        np.testing.assert_allclose(
            mbjax.relative_transform(model, found.q, "world", name).translation, X[name].translation, atol=1e-7
        )
    com = mbjax.center_of_mass_position_in_world(model, found.q)
    np.testing.assert_allclose(com[:2], middle[:2], atol=1e-7)


MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
GRIPPER = f"""<robot name="gripper">
  <link name="palm"/> <link name="left">{MASS}</link> <link name="right">{MASS}</link>
  <joint name="left" type="prismatic"><parent link="palm"/><child link="left"/><axis xyz="0 1 0"/>
    <limit lower="0" upper="0.05" velocity="1" effort="10"/></joint>
  <joint name="right" type="prismatic"><parent link="palm"/><child link="right"/><axis xyz="0 1 0"/>
    <limit lower="-0.08" upper="0" velocity="1" effort="10"/><mimic joint="left" multiplier="-2" offset="0.01"/></joint>
</robot>"""


@pytest.mark.parametrize("mimic", ["couple", "eliminate"])
def test_coupled_and_mimicked_joints_follow_and_their_limits_count(mimic) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbjax.ModelWarning)
        model = mbjax.load(GRIPPER, base="fixed", mimic=mimic)
    found = mbjax.inverse_kinematics(model, {"tip": to.PointGoal("right", [0.0, -0.03, 0.0])})
    assert found.reachable
    left = found.q[model.joint("left").q]
    np.testing.assert_allclose(left, [0.02], atol=1e-7)
    far = mbjax.inverse_kinematics(model, {"tip": to.PointGoal("right", [0.0, -0.2, 0.0])}, restarts=1)
    np.testing.assert_allclose(far.q[model.joint("left").q], [0.045], atol=1e-7)  # the right finger is at -0.08
    assert int(far.outcome) == mbjax.ReachOutcome.AT_LIMITS, far.message


def test_drake_agrees_on_the_solution_nearest_to_a_posture() -> None:
    """Drake minimizes the distance from a posture under the pose as a constraint; so does a hard priority."""
    model, plant = mbjax.load("arm"), MultibodyPlant(0.0)
    DrakeParser(plant).AddModels(str(bundled("arm")))
    plant.Finalize()
    assert plant.num_positions() == model.num_positions
    for seed in range(4):
        q = mbjax.random_state_within_limits(model, jax.random.key(seed)).q
        q = 0.5 * (q + 0.5 * (model.position_lower_limits + model.position_upper_limits))
        target = mbjax.points_positions(model, q, "tool", jnp.zeros(3), "world") + jnp.array([0.03, -0.05, 0.04])
        hold = {"hand": to.PointGoal("tool", target)}
        found = mbjax.inverse_kinematics(model, {"posture": to.JointGoal(q)}, q, constraints=hold, local=True)
        assert found.converged
        ik = InverseKinematics(plant)
        frame, p, posture = plant.GetFrameByName("tool"), np.asarray(target), np.asarray(q)
        ik.AddPositionConstraint(frame, [0, 0, 0], plant.world_frame(), p, p)
        ik.prog().AddQuadraticErrorCost(np.eye(7), posture, ik.q())
        solved = Solve(ik.prog(), posture)
        assert solved.is_success()
        np.testing.assert_allclose(found.q, solved.GetSolution(ik.q()), atol=1e-5)
