"""Moves along the configuration manifold, and velocities as their rates."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from tests.models import ALL_KINDS, random_tree, relative_error

MODEL = functools.partial(random_tree, 0, ALL_KINDS)
integrate = jax.jit(mbjax.integrate_configuration)
difference = jax.jit(mbjax.difference_configuration)
body_poses = jax.jit(mbjax.body_poses_in_world)
random_state = jax.jit(mbjax.random_state)


def start(model: mbjax.MultibodyModel, seed: int) -> np.ndarray:
    """Random positions, or the zero ones; roll-pitch-yaw joints well away from 90 degrees of pitch."""
    q = np.array(mbjax.default_state(model).q if seed < 0 else random_state(model, jax.random.key(seed)).q)
    for joint in model.layout.joints:
        if joint.kind in ("ball_rpy", "rpy_floating"):
            pitch = joint.q_start + 1
            q[pitch] = 0.3 * np.sin(q[pitch])
    return q


def rotation_vectors(model: mbjax.MultibodyModel) -> list[slice]:
    """Where dv holds the rotation vector of a joint that turns freely."""
    free = ("quaternion_floating", "rpy_floating", "ball_rpy")
    return [slice(j.v_start, j.v_start + 3) for j in model.layout.joints if j.kind in free]


@pytest.mark.parametrize("seed", [-1, 0, 1, 2])
@pytest.mark.parametrize("size", [0.0, 1e-9, 1e-4, 0.3, 1.0])
def test_difference_undoes_integrate(seed, size):
    model = MODEL().model
    q = start(model, seed)
    dv = size * np.random.default_rng(seed + 50).normal(size=model.num_velocities)
    for rows in rotation_vectors(model):  # unique below half a turn
        dv[rows] *= min(1.0, 3.0 / (np.linalg.norm(dv[rows]) + 1e-30))
    moved = integrate(model, q, dv)
    np.testing.assert_allclose(difference(model, q, moved), dv, rtol=0, atol=1e-12)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1), (-2, 1, 0.5)])
def test_half_a_turn(axis):
    """At 180 degrees the sign of the rotation vector is open; either way it leads to the same orientation."""
    model = MODEL().model
    q = start(model, 0)
    dv = np.zeros(model.num_velocities)
    turn = np.pi * np.asarray(axis, float) / np.linalg.norm(axis)
    for rows in rotation_vectors(model):
        dv[rows] = turn
    moved = integrate(model, q, dv)
    back = np.asarray(difference(model, q, moved))
    for rows in rotation_vectors(model):
        assert min(np.abs(back[rows] - turn).max(), np.abs(back[rows] + turn).max()) < 1e-7
    again = integrate(model, q, back)
    got, expected = body_poses(model, again), body_poses(model, moved)
    np.testing.assert_allclose(got.rotation, expected.rotation, rtol=0, atol=1e-12)
    np.testing.assert_allclose(got.translation, expected.translation, rtol=0, atol=1e-12)


def test_integrate_undoes_difference():
    model = MODEL().model
    q0, q1 = start(model, 3), start(model, 4)
    poses = [body_poses(model, q).translation for q in (q1, integrate(model, q0, difference(model, q0, q1)))]
    np.testing.assert_allclose(*poses, rtol=0, atol=1e-12)


def test_quaternions_keep_unit_length_and_scale_does_not_matter():
    model = MODEL().model
    q = start(model, 1)
    rows = next(j.q for j in model.layout.joints if j.kind == "quaternion_floating")
    quaternion = slice(rows.start, rows.start + 4)
    dv = np.ones(model.num_velocities)
    expected = np.asarray(integrate(model, q, dv))[quaternion]
    for scale in (1.0, 1.001, 0.5, -2.0):
        longer = q.copy()
        longer[quaternion] *= scale
        moved = np.asarray(integrate(model, longer, dv))[quaternion]
        assert abs(np.linalg.norm(moved) - 1.0) < 1e-15
        np.testing.assert_allclose(np.sign(scale) * moved, expected, atol=1e-15)


def test_velocities_are_rates_of_poses_along_integrate_configuration():
    """V_WB = J v by central differences of poses."""
    model = MODEL().model
    q, v, h = start(model, 5), np.asarray(random_state(model, jax.random.key(5)).v), 1e-6

    X, ahead, behind = (jax.tree.map(np.asarray, body_poses(model, integrate(model, q, s * v))) for s in (0.0, h, -h))
    rate = (ahead.rotation - behind.rotation) / (2 * h) @ np.swapaxes(X.rotation, 1, 2)
    w = np.stack([rate[:, 2, 1] - rate[:, 1, 2], rate[:, 0, 2] - rate[:, 2, 0], rate[:, 1, 0] - rate[:, 0, 1]], 1) / 2
    V = np.concatenate([w, (ahead.translation - behind.translation) / (2 * h)], axis=1)
    assert relative_error(mbjax.body_spatial_velocities_in_world(model, q, v), V) < 1e-8
    B, A, E = (model.body_frame_index(b) for b in ("body5", "body3", "body1"))
    p = np.array([0.1, 0.2, -0.3])
    J = mbjax.jacobian_translational_velocity(model, q, B, p, A, A)
    ends = [np.asarray(mbjax.points_positions(model, integrate(model, q, s * h * v), B, p, A)) for s in (1, -1)]
    assert relative_error(np.asarray(J) @ v, (ends[0] - ends[1]) / (2 * h)) < 1e-7
    J_E = mbjax.jacobian_translational_velocity(model, q, B, p, A, E)
    R_EA = mbjax.relative_rotation_matrix(model, q, E, A)
    assert relative_error(J_E, np.asarray(R_EA) @ np.asarray(J)) < 1e-12


def test_accelerations_are_rates_of_velocities():
    """A_WB = dV_WB/dt along qdot and vdot, by forward mode."""
    model = MODEL().model
    state = random_state(model, jax.random.key(6))
    q, v = state.q, state.v
    vdot = jax.random.normal(jax.random.key(7), v.shape)

    @jax.jit
    def both(model, q, v, vdot):
        qdot = mbjax.velocity_to_qdot(model, q, v)
        V = jax.jvp(lambda q, v: mbjax.body_spatial_velocities_in_world(model, q, v), (q, v), (qdot, vdot))[1]
        return V, mbjax.spatial_accelerations_from_vdot(model, q, v, vdot)

    rate, A = both(model, q, v, vdot)
    assert relative_error(A, rate) < 1e-12


def test_wrong_shapes_say_what_is_needed():
    model = MODEL().model
    with pytest.raises(ValueError, match=rf"q has shape \(3,\), the model needs \({model.num_positions},\)"):
        mbjax.body_poses_in_world(model, jnp.zeros(3))
    with pytest.raises(ValueError, match=r"v has shape.*vmap"):
        mbjax.velocity_to_qdot(model, jnp.zeros(model.num_positions), jnp.zeros((2, model.num_velocities)))
    q = mbjax.default_state(model).q
    with pytest.raises(mbjax.ModelError, match="wrt must be 'v' or 'qdot'"):
        mbjax.jacobian_angular_velocity(model, q, "body1", "world", "world", wrt="u")
