"""Poses and velocities of free bodies: on quaternion and roll-pitch-yaw joints, on the world and on moving parents."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.multibody.math import SpatialVelocity

import mbjax
from mbjax.spatial import rotation_exp
from tests.gradients.checks import WHOLE_RUN, check_gradients
from tests.models import relative_error
from tests.simulation.instances import FREE_BODIES, ours, random_pose, two_instances

TOLERANCE = 1e-10
ANCHORED = "bin_joint_parent"  # an offset frame on a body welded to the world
USED = FREE_BODIES if WHOLE_RUN else ("tilted", "satellite", "other")
PLACED = (*((body, ANCHORED) for body in FREE_BODIES[:5]), ("satellite", "world"), ("other", "world"))
PLACED = tuple(x for x in PLACED if x[0] in USED)


def matrix(X: mbjax.RigidTransform | DrakeTransform) -> np.ndarray:
    """A pose as 4x4."""
    return np.asarray(X.as_matrix4() if isinstance(X, mbjax.RigidTransform) else X.GetAsMatrix4())


def set_every_way(state: mbjax.State, poses: mbjax.RigidTransform, velocities: jax.Array) -> dict:
    """State after each body's pose, then its velocity, was set, by (body, frame): not compiled, which takes longer."""
    model, after = two_instances().model, {}
    for body in USED:
        k = FREE_BODIES.index(body)
        moved = mbjax.set_free_body_pose(model, state, body, poses[k])
        after[body, "F"] = mbjax.set_free_body_spatial_velocity(model, moved, body, velocities[k])
    for body, frame in PLACED:
        k = FREE_BODIES.index(body)
        if frame == "world":
            moved = mbjax.set_free_body_pose_in_world_frame(model, state, body, poses[k])
            after[body, frame] = mbjax.set_free_body_spatial_velocity_in_world_frame(model, moved, body, velocities[k])
            continue
        moved = mbjax.set_free_body_pose_in_anchored_frame(model, state, frame, body, poses[k])
        after[body, frame] = mbjax.set_free_body_spatial_velocity_in_anchored_frame(
            model, moved, frame, body, velocities[k]
        )
    return after


@functools.cache
def drawn() -> tuple[mbjax.State, list[DrakeTransform], np.ndarray, dict]:
    """A state, a pose and a velocity per free body, and what they were set to."""
    model, rng = two_instances().model, np.random.default_rng(5)
    state = mbjax.random_state_within_limits(model, jax.random.key(3))
    poses, velocities = [random_pose(rng) for _ in FREE_BODIES], rng.normal(size=(len(FREE_BODIES), 6))
    batch = mbjax.RigidTransform(
        np.array([X.rotation().matrix() for X in poses]), np.array([X.translation() for X in poses])
    )
    return state, poses, velocities, set_every_way(state, batch, velocities)


@pytest.mark.parametrize("body", USED)
def test_in_the_frames_of_the_joint(body: str) -> None:
    """Drake's SetFreeBodyPose, GetFreeBodyPose and SetFreeBodySpatialVelocity."""
    twin = two_instances()
    state, poses, velocities, after = drawn()
    k = FREE_BODIES.index(body)
    theirs, context = twin.plant.GetBodyByName(body), twin.context(state.q, state.v)
    twin.plant.SetFreeBodyPose(context, theirs, poses[k])
    twin.plant.SetFreeBodySpatialVelocity(context, theirs, SpatialVelocity(velocities[k]))
    got = after[body, "F"]
    assert relative_error(got.q, twin.plant.GetPositions(context)) < TOLERANCE
    assert relative_error(got.v, twin.plant.GetVelocities(context)) < TOLERANCE
    pose = mbjax.free_body_pose(twin.model, got.q, body)
    assert relative_error(matrix(pose), matrix(twin.plant.GetFreeBodyPose(context, theirs))) < TOLERANCE
    np.testing.assert_array_equal(mbjax.free_body_spatial_velocity(twin.model, got.v, body), velocities[k])


@pytest.mark.parametrize(("body", "where"), PLACED)
def test_in_the_world_and_in_an_anchored_frame(body: str, where: str) -> None:
    """Drake, given the coordinates, sees the body where and how it was set; nothing else has changed."""
    twin = two_instances()
    state, poses, velocities, after = drawn()
    k, joint = FREE_BODIES.index(body), twin.model.body(body).inboard_joint
    theirs, frame = twin.plant.GetBodyByName(body), twin.plant.GetFrameByName(where)
    got = after[body, where]
    context = twin.context(got.q, got.v)
    X_WA = frame.CalcPoseInWorld(context)
    X_WB = X_WA @ poses[k]
    assert relative_error(matrix(twin.plant.EvalBodyPoseInWorld(context, theirs)), matrix(X_WB)) < TOLERANCE
    V_WB = (X_WA.rotation().matrix() @ velocities[k].reshape(2, 3).T).T.ravel()
    seen = twin.plant.EvalBodySpatialVelocityInWorld(context, theirs).get_coeffs()
    assert relative_error(seen, V_WB) < TOLERANCE
    for x, y, part in ((got.q, state.q, joint.q), (got.v, state.v, joint.v)):
        others = np.ones(x.size, bool)
        others[part] = False
        np.testing.assert_array_equal(x[others], y[others])
    if theirs.is_floating_base_body():  # others Drake refuses
        theirs_context = twin.context(state.q, state.v)
        if where == "world":
            twin.plant.SetFloatingBaseBodyPoseInWorldFrame(theirs_context, theirs, poses[k])
        else:
            twin.plant.SetFloatingBaseBodyPoseInAnchoredFrame(theirs_context, frame, theirs, poses[k])
        assert relative_error(got.q, twin.plant.GetPositions(theirs_context)) < TOLERANCE


def test_default_poses() -> None:
    """Of the model against Drake's joints and floating base bodies; every setter leaves the other bodies alone."""
    twin = two_instances()
    model, drake = twin.model, twin.plant
    before = drake.GetDefaultPositions()
    rng = np.random.default_rng(8)
    try:
        for body in FREE_BODIES:
            theirs, X = drake.GetBodyByName(body), random_pose(rng)
            assert relative_error(matrix(mbjax.default_free_body_pose(model, body)), np.eye(4)) < TOLERANCE
            model = mbjax.set_default_free_body_pose(model, body, ours(X))
            if theirs.is_floating_base_body():
                drake.SetDefaultFloatingBaseBodyPose(theirs, X)
            else:
                drake.GetJointByName(f"{body}_joint").SetDefaultPose(X)
            assert relative_error(matrix(mbjax.default_free_body_pose(model, body)), matrix(X)) < TOLERANCE
        expected = drake.GetPositions(drake.CreateDefaultContext())
        assert relative_error(mbjax.default_state(model).q, expected) < TOLERANCE
    finally:
        drake.SetDefaultPositions(before)


def test_a_default_pose_given_before_finalize() -> None:
    rng = np.random.default_rng(9)
    X = random_pose(rng)
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("crate", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.set_default_free_body_pose("crate", ours(X))
    model = plant.finalize()
    assert relative_error(matrix(mbjax.default_free_body_pose(model, "crate")), matrix(X)) < TOLERANCE
    pose = mbjax.free_body_pose(model, mbjax.default_state(model).q, "crate")
    assert relative_error(matrix(pose), matrix(X)) < TOLERANCE


def test_bodies_that_do_not_float_and_frames_that_move() -> None:
    model = two_instances().model
    state, X = mbjax.default_state(model), mbjax.RigidTransform(np.eye(3), np.zeros(3))
    with pytest.raises(mbjax.ModelError, match=r"'arm' does not float, joint 'arm_joint' \(revolute\).*'arm_joint'"):
        mbjax.free_body_pose(model, state.q, "arm")
    with pytest.raises(mbjax.ModelError, match=r"'bin' does not float.*welded to, 'shelf'"):
        mbjax.set_free_body_pose(model, state, "bin", X)
    with pytest.raises(mbjax.ModelError, match="is the world"):
        mbjax.set_default_free_body_pose(model, "world", X)
    for call, value in (
        (mbjax.set_free_body_pose_in_anchored_frame, X),
        (mbjax.set_free_body_spatial_velocity_in_anchored_frame, np.zeros(6)),
    ):
        with pytest.raises(mbjax.ModelError, match="frame 'turret' moves with body 'turret'"):
            call(model, state, "turret", "free", value)
    with pytest.raises(ValueError, match=r"V_FM_F has shape \(3,\)"):
        mbjax.set_free_body_spatial_velocity(model, state, "free", np.zeros(3))


@pytest.mark.whole_run("poses in the frames of the joint")
def test_derivatives() -> None:
    """Of a body on a moving parent: by the state, by pose and velocity, by the joint's frame; at 0, pi and 0.7 rad."""
    rng = np.random.default_rng(12)
    plant = mbjax.MultibodyPlant()
    for name in ("turret", "moon"):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "turret", X_PF=ours(random_pose(rng))))
    poses = {"X_PF": ours(random_pose(rng)), "X_BM": ours(random_pose(rng))}
    plant.add_joint(mbjax.QuaternionFloatingJoint("orbit", "turret", "moon", **poses))
    plant.add_frame("dock", "world", ours(random_pose(rng)))

    model = plant.finalize()

    def f(x):
        q, v, rotation_vector, p_AB, V_WB_W, p_PF = jnp.split(x, np.cumsum([8, 7, 3, 3, 6]))
        shifted = mbjax.set_frame_pose(model, "orbit_parent", mbjax.RigidTransform(jnp.eye(3), p_PF))
        state = mbjax.State(q, v, jnp.zeros(()))
        X_AB = mbjax.RigidTransform(rotation_exp(rotation_vector), p_AB)
        state = mbjax.set_free_body_pose_in_anchored_frame(shifted, state, "dock", "moon", X_AB)
        state = mbjax.set_free_body_spatial_velocity_in_world_frame(shifted, state, "moon", V_WB_W)
        X_FM = mbjax.free_body_pose(model, state.q, "moon")
        return jnp.concatenate([X_FM.rotation.ravel(), X_FM.translation, state.v])

    rows = rng.normal(size=(3, 30))
    rows[:, 15:18] = np.outer([0.0, np.pi, 0.7], [0.48, -0.6, 0.64])
    check_gradients(jax.vmap(f), jnp.asarray(rows))


def test_new_poses_do_not_recompile_and_batches() -> None:
    model, rng = two_instances().model, np.random.default_rng(10)
    state, traces = mbjax.default_state(model), []

    @jax.jit
    @jax.vmap
    def place(X: mbjax.RigidTransform) -> mbjax.State:
        traces.append(1)
        return mbjax.set_free_body_pose(model, state, "tilted", X)

    for _ in range(2):
        X = [ours(random_pose(rng)) for _ in range(3)]
        batch = jax.tree.map(lambda *x: jnp.stack(x), *X)
        states = place(batch)
        for k in range(3):
            alone = mbjax.set_free_body_pose(model, state, "tilted", X[k])
            np.testing.assert_allclose(states.q[k], alone.q, atol=1e-14)
    assert len(traces) == 1
