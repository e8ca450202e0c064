"""Closed forms of costs and moves against JAX's derivatives of what they are the slopes of."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax import trajectory_optimization as to
from mbjax.kinematics import difference_configuration, integrate_configuration
from mbjax.spatial import RigidTransform, pose_exp, pose_log, rotation_exp, slopes_of_pose_log
from mbjax.trajectory_optimization.expansion import expand_running, expand_terminal
from mbjax.trajectory_optimization.problem import prepared
from mbjax.trajectory_optimization.tangents import moved_along, slopes_of_difference, slopes_of_move

LINK = """<link name="{0}"><inertial><mass value="1"/>
<inertia ixx="0.1" iyy="0.2" izz="0.3" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
TEXT = f"""<robot name="crane">{LINK.format("base")}{LINK.format("arm")}{LINK.format("hand")}
<joint name="elbow" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/><origin xyz="0 0 0.3"/>
<limit lower="-3" upper="3" effort="9" velocity="9"/></joint>
<joint name="slide" type="prismatic"><parent link="arm"/><child link="hand"/><axis xyz="1 0 0"/>
<limit lower="-3" upper="3" effort="9" velocity="9"/></joint></robot>"""
MODEL = mbjax.load(TEXT, base="floating", time_step=0.02, actuators="joints")
NV, NU = MODEL.num_velocities, MODEL.num_actuators


def ball_model() -> mbjax.MultibodyModel:
    """A ball joint with angles as positions, and a floating base with angles."""
    plant = mbjax.MultibodyPlant(0.02)
    body = plant.add_rigid_body("body", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
    ball = plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_box_with_mass(1.0, 0.1, 0.2, 0.3))
    plant.add_joint(mbjax.RpyFloatingJoint("free", plant.world_body, body))
    plant.add_joint(mbjax.BallRpyJoint("shoulder", body, ball))
    return plant.finalize()


def state_of(seed: int) -> mbjax.State:
    """A state without zeros."""
    state = mbjax.random_state(MODEL, jax.random.key(seed))
    return mbjax.State(state.q, jax.random.normal(jax.random.key(seed + 1), (NV,)), state.time)


WEIGHT = jnp.linspace(0.5, 2.0, 2 * NV)
POSE = RigidTransform(rotation_exp(jnp.array([0.3, -0.7, 0.5])), jnp.array([0.1, 0.2, 0.3]))
GOALS = (
    to.JointGoal(state_of(3).q, WEIGHT[:NV]),
    to.JointGoal(state_of(4).q, WEIGHT[:NV], in_frame="own"),
    to.VelocityGoal(state_of(3).v, 2.0),
    to.VelocityGoal(state_of(4).v, WEIGHT[:NV], in_frame="own"),
    to.StateGoal(state_of(6), WEIGHT, in_frame="own"),
    to.PointGoal("hand", jnp.array([0.1, 0.2, 0.3]), WEIGHT[:3], p_FP=[0.3, 0.2, 0.1]),
    to.PoseGoal("hand", POSE, WEIGHT[:6]),
    to.PoseGoal("hand", POSE, WEIGHT[:6], in_frame="own"),
    to.FrameVelocity("hand", 0.3, WEIGHT[:6]),
    to.CenterOfMass([0.3, -0.2, 0.1], WEIGHT[:3]),
    to.Barrier(to.StateGoal(state_of(6)), -0.4, WEIGHT / 4.0, 1.5),
    to.Barrier(lambda model, state, *rest: state.v, -0.1, 0.2),
)


class Plain(eqx.Module):
    """A cost without its closed form."""

    goal: Callable

    def __call__(self, *args):
        return self.goal(*args)


@pytest.mark.whole_run("slopes of moves and poses, below, and of goals by differences, in test_goals.py")
def test_expansions_by_closed_forms_equal_those_by_differentiation():
    state, effort = state_of(5), jnp.array([0.7, -0.4])

    def expanded(wrapped):
        goals = [wrapped(goal) for goal in GOALS]
        schedule = [to.Scheduled(goals[-1], jnp.array([0.5, 1.5, 2.5]))]
        running = [*goals, *schedule, wrapped(to.Effort(WEIGHT[:NU], 0.3))]
        problem = prepared(to.Problem(MODEL, state, 2, running, goals[:1] + schedule, per="second"))
        return expand_running(problem, state, effort, None, jnp.array(1), None), expand_terminal(problem, state, None)

    found, expected = (jax.jit(lambda w=w: expanded(w))() for w in (lambda goal: goal, Plain))
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-13 * float(jnp.max(jnp.abs(other))))


@pytest.mark.parametrize(
    "model",
    [MODEL, pytest.param(ball_model(), marks=pytest.mark.whole_run("a floating body"))],
    ids=["floating", "ball"],
)
def test_slopes_of_moves_and_differences(model):
    q, other = (mbjax.random_state(model, jax.random.key(seed)).q for seed in (1, 2))
    dv = 0.5 * jax.random.normal(jax.random.key(3), (model.num_velocities,))
    zero, after = jnp.zeros_like(dv), integrate_configuration(model, q, dv)

    def moved(dq, dv):
        here = integrate_configuration(model, q, dq)
        return difference_configuration(model, after, integrate_configuration(model, here, dv))

    def difference(dq):
        return difference_configuration(model, other, integrate_configuration(model, q, dq))

    @jax.jit
    def both(zero, dv):
        closed = slopes_of_move(model, dv), moved_along(model, dv, jnp.eye(len(dv)))
        of_end = slopes_of_difference(model, difference(zero)), jax.jacfwd(difference)(zero)
        return closed, jax.jacfwd(moved, (0, 1))(zero, dv), of_end

    closed, expected, of_end = both(zero, dv)
    for found, by in zip(closed, expected, strict=True):
        np.testing.assert_allclose(found, by, atol=1e-12)
    np.testing.assert_allclose(*of_end, atol=1e-11)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 1.0, 3.0])
def test_slopes_of_the_logarithm_of_a_pose(angle):
    axis = jnp.array([2.0, -3.0, 6.0]) / 7.0
    X = pose_exp(jnp.concatenate([angle * axis, jnp.array([0.3, -0.7, 0.4])]))

    def moved(change):
        turned = rotation_exp(change[:3]) @ X.rotation
        return pose_log(RigidTransform(turned, X.translation + change[3:]))

    np.testing.assert_allclose(slopes_of_pose_log(pose_log(X)), jax.jacfwd(moved)(jnp.zeros(6)), atol=1e-11)


@pytest.mark.whole_run("plans through contact in single precision stay so")
def test_a_plan_in_single_precision_stays_so():
    model = mbjax.load("pendulum", time_step=0.05, dtype=jnp.float32)
    goals = [to.VelocityGoal(weight=0.1), to.Effort(0.1)]
    plan = to.solve(to.Problem(model, mbjax.default_state(model), 8, goals, [to.VelocityGoal()]))
    assert plan.efforts.dtype == plan.states.q.dtype == jnp.float32
    assert bool(plan.report.converged)
