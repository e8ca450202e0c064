"""Rotations: identities, Drake as oracle, and derivatives at every singular attitude."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.common.eigen_geometry import AngleAxis, Quaternion
from pydrake.math import RollPitchYaw, RotationMatrix
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import SpatialInertia

from mbjax.spatial import rotation, safe_math

KEY = np.random.default_rng(20)
QUATERNIONS = KEY.normal(size=(20, 4))
RPYS = KEY.uniform(-1.5, 1.5, size=(20, 3))
DIAGONAL = np.ones(3) / np.sqrt(3.0)
AXES = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], DIAGONAL, [0.36, -0.48, 0.8]])
IDENTITY = np.array([1.0, 0, 0, 0])


def half_turn(axis):
    return np.concatenate([[0.0], axis])


@cache
def batched(function, transform=None):
    """Compiled once for each function and derivative."""
    return jax.jit(jax.vmap(transform(function) if transform else function))


def both_modes(function):
    """Values, and derivatives by forward and by reverse mode."""
    return lambda x: (function(x), jax.jacfwd(function)(x), jax.jacrev(function)(x))


def differences(f, x, h=1e-6):
    """Central differences of a batched function, row by row; derivative on the last axis."""
    columns = [(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.shape[-1])]
    return np.stack(columns, axis=-1)


def assert_derivatives(function, x, rtol=1e-6, atol=1e-7):
    """Forward = reverse = central differences, all finite, on the batch x."""
    program = batched(function, both_modes)
    _, forward, reverse = program(x)
    assert np.all(np.isfinite(forward))
    np.testing.assert_allclose(forward, reverse, rtol=1e-9, atol=1e-9)
    expected = differences(lambda x: program(x)[0], np.asarray(x))
    np.testing.assert_allclose(reverse, expected, rtol=rtol, atol=atol)
    return reverse


# Values against Drake


def test_quaternion_matrix_and_back_match_drake():
    R = rotation.quaternion_to_matrix(jnp.asarray(QUATERNIONS))
    q_back = rotation.matrix_to_quaternion(R)
    for q, R_i, q_i in zip(QUATERNIONS, R, q_back, strict=True):
        unit = q / np.linalg.norm(q)
        expected = RotationMatrix(Quaternion(unit))
        np.testing.assert_allclose(R_i, expected.matrix(), atol=2e-15)
        np.testing.assert_allclose(q_i, expected.ToQuaternion().wxyz(), atol=2e-15)
        assert q_i[0] >= 0.0


def test_quaternion_algebra():
    qa, qb = jnp.asarray(QUATERNIONS[:10]), jnp.asarray(QUATERNIONS[10:])
    p = jnp.asarray(KEY.normal(size=(10, 3)))
    to_matrix = rotation.quaternion_to_matrix
    product = to_matrix(rotation.quaternion_multiply(qa, qb))
    np.testing.assert_allclose(product, to_matrix(qa) @ to_matrix(qb), atol=1e-14)
    inverse = to_matrix(rotation.quaternion_conjugate(qa))
    np.testing.assert_allclose(inverse, jnp.swapaxes(to_matrix(qa), -1, -2), atol=1e-15)
    rotated = rotation.quaternion_rotate(qa, p)
    np.testing.assert_allclose(rotated, jnp.einsum("bij,bj->bi", to_matrix(qa), p), atol=1e-14)
    np.testing.assert_allclose(rotation.quaternion_rotate(qa[0], p), p @ to_matrix(qa[0]).T, atol=1e-14)


def test_rpy_matches_drake():
    R = rotation.rpy_to_matrix(jnp.asarray(RPYS))
    rpy_back = rotation.matrix_to_rpy(R)
    q = rotation.rpy_to_quaternion(jnp.asarray(RPYS))
    for rpy, R_i in zip(RPYS, R, strict=True):
        np.testing.assert_allclose(R_i, RollPitchYaw(rpy).ToRotationMatrix().matrix(), atol=1e-15)
    np.testing.assert_allclose(rpy_back, RPYS, atol=1e-13)
    np.testing.assert_allclose(rotation.quaternion_to_matrix(q), R, atol=1e-15)
    np.testing.assert_allclose(rotation.quaternion_to_rpy(-2.0 * q), RPYS, atol=1e-13)


def test_rpy_wide_angles_match_drake():
    R = rotation.quaternion_to_matrix(jnp.asarray(QUATERNIONS))
    expected = [RollPitchYaw(RotationMatrix(np.asarray(R_i))).vector() for R_i in R]
    np.testing.assert_allclose(rotation.matrix_to_rpy(R), expected, atol=1e-13)


def test_rpy_rates_match_drake():
    rpydot = KEY.normal(size=(20, 3))
    E = rotation.rpy_rates_to_angular_velocity_matrix(jnp.asarray(RPYS))
    N = rotation.angular_velocity_to_rpy_rates_matrix(jnp.asarray(RPYS))
    for rpy, rate, E_i in zip(RPYS, rpydot, E, strict=True):
        w = RollPitchYaw(rpy).CalcAngularVelocityInParentFromRpyDt(rate)
        np.testing.assert_allclose(E_i @ rate, w, atol=1e-14)
    np.testing.assert_allclose(N @ E, np.tile(np.eye(3), (20, 1, 1)), atol=1e-12)


def test_axis_angle_and_elementary_rotations_match_drake():
    angle = 0.7
    for axis in AXES:
        expected = RotationMatrix(AngleAxis(angle, axis)).matrix()
        computed = rotation.axis_angle_to_matrix(jnp.asarray(3.0 * axis), jnp.asarray(angle))
        np.testing.assert_allclose(computed, expected, atol=1e-15)
    a = jnp.asarray(angle)
    np.testing.assert_allclose(rotation.x_rotation(a), RotationMatrix.MakeXRotation(angle).matrix(), atol=1e-15)
    np.testing.assert_allclose(rotation.y_rotation(a), RotationMatrix.MakeYRotation(angle).matrix(), atol=1e-15)
    np.testing.assert_allclose(rotation.z_rotation(a), RotationMatrix.MakeZRotation(angle).matrix(), atol=1e-15)


def test_quaternion_rates_match_drake_for_raw_quaternions():
    plant = MultibodyPlant(0.0)
    plant.AddRigidBody("body", SpatialInertia.SolidSphereWithMass(1.0, 1.0))
    plant.Finalize()
    context = plant.CreateDefaultContext()
    for q, w, rate in zip(QUATERNIONS, KEY.normal(size=(20, 3)), KEY.normal(size=(20, 4)), strict=True):
        plant.SetPositions(context, np.concatenate([q, np.zeros(3)]))
        N = rotation.quaternion_rates_matrix(jnp.asarray(q))
        N_left = rotation.quaternion_rates_to_angular_velocity_matrix(jnp.asarray(q))
        qdot = plant.MapVelocityToQDot(context, np.concatenate([w, np.zeros(3)]))[:4]
        w_back = plant.MapQDotToVelocity(context, np.concatenate([rate, np.zeros(3)]))[:3]
        np.testing.assert_allclose(N @ w, qdot, atol=1e-14)
        np.testing.assert_allclose(N_left @ rate, w_back, atol=1e-13)
        np.testing.assert_allclose(N_left @ N, np.eye(3), atol=1e-14)


def test_quaternion_rate_is_the_derivative_of_the_rotation():
    q, w = jnp.asarray(QUATERNIONS[0]), jnp.asarray([0.3, -0.8, 0.5])
    qdot = rotation.quaternion_rates_matrix(q) @ w
    R, Rdot = jax.jvp(rotation.quaternion_to_matrix, (q,), (qdot,))
    np.testing.assert_allclose(Rdot, rotation.skew(w) @ R, atol=1e-14)


def test_skew_and_vee():
    a, b = jnp.asarray([0.3, -0.8, 0.5]), jnp.asarray([1.3, 0.2, -0.7])
    np.testing.assert_allclose(rotation.skew(a) @ b, np.cross(a, b), atol=1e-15)
    np.testing.assert_array_equal(rotation.vee(rotation.skew(a)), a)


# G01, G02: the exponential near zero

SMALL = np.array([0.0, 1e-12, 1e-9, 1e-8, 1e-7, 1e-4, 1e-3])


def step_orientation(w):
    """q(dt) of a body at the identity that turns at w for dt = 0.002."""
    return rotation.quaternion_exp(w * 0.002)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-9), (jnp.float32, 1e-6)])
def test_g01_g02_orientation_after_a_step_depends_on_velocity(dtype, tolerance):
    w = jnp.asarray(SMALL[:, None] * np.array([0.6, -0.48, 0.64]), dtype=dtype)
    expected = np.tile(0.001 * np.eye(3), (len(SMALL), 1, 1))
    for transform in (jax.jacfwd, jax.jacrev):
        J = batched(step_orientation, transform)(w)
        assert J.dtype == dtype
        np.testing.assert_allclose(J[:, 1:], expected, atol=1e-3 * tolerance)
        np.testing.assert_allclose(J[:, 0], -0.25 * 0.002**2 * w, atol=1e-3 * tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(jnp.float64, 1e-14), (jnp.float32, 1e-6)])
def test_g02_no_step_in_value_or_derivative_at_the_series_switch(dtype, tolerance):
    # The switch of quaternion_exp sits at |r| = 2.
    eps = float(jnp.finfo(dtype).eps)
    r = jnp.asarray((2.0 + np.arange(-4, 5)[:, None] * 2 * eps) * DIAGONAL, dtype=dtype)
    assert np.ptp(batched(rotation.quaternion_exp)(r), axis=0).max() < 10 * tolerance
    J = batched(rotation.quaternion_exp, jax.jacfwd)(r)
    H = batched(rotation.quaternion_exp, jax.hessian)(r)
    assert np.ptp(J, axis=0).max() < 10 * tolerance
    assert np.ptp(H, axis=0).max() < 20 * tolerance


def test_exponentials_agree_and_differentiate():
    r = np.concatenate([SMALL[:, None] * AXES[4], KEY.normal(size=(6, 3)), 3.5 * AXES])
    R = batched(rotation.rotation_exp)(r)
    q = batched(rotation.quaternion_exp)(r)
    np.testing.assert_allclose(R, rotation.quaternion_to_matrix(q), atol=2e-15)
    for r_i, R_i in zip(r[7:], R[7:], strict=True):
        angle = np.linalg.norm(r_i)
        expected = RotationMatrix(AngleAxis(angle, r_i / angle)).matrix()
        np.testing.assert_allclose(R_i, expected, atol=2e-15)
    assert_derivatives(rotation.quaternion_exp, r)
    assert_derivatives(rotation.rotation_exp, r)
    assert np.all(np.isfinite(batched(rotation.rotation_exp, jax.hessian)(r)))


# G03: the logarithm at +identity, -identity and half turns


def log_exp(r):
    return rotation.quaternion_log(rotation.quaternion_exp(r))


def matrix_log_exp(r):
    return rotation.rotation_log(rotation.rotation_exp(r))


@pytest.mark.parametrize("function", [log_exp, matrix_log_exp])
def test_g03_derivative_of_log_exp_is_the_identity(function):
    angles = np.concatenate([SMALL, [0.5, 1.0, 2.0, 3.0, np.pi - 1e-4]])
    r = np.concatenate([angle * AXES for angle in angles])
    np.testing.assert_allclose(batched(function)(r), r, atol=2e-11)
    for transform in (jax.jacfwd, jax.jacrev):
        J = batched(function, transform)(r)
        np.testing.assert_allclose(J, np.tile(np.eye(3), (len(r), 1, 1)), atol=2e-10)


def test_g03_log_hessian_vanishes_through_zero():
    H = batched(log_exp, jax.hessian)(SMALL[:, None] * AXES[4])
    np.testing.assert_allclose(H, 0.0, atol=1e-9)


def test_g03_q_and_minus_q_agree_with_opposite_derivatives():
    near = 1e-9 * AXES[4]
    q = np.stack([IDENTITY, -IDENTITY, np.append(1.0, near), np.append(-1.0, near), *QUATERNIONS])
    value = batched(rotation.quaternion_log)(q)
    np.testing.assert_allclose(value, batched(rotation.quaternion_log)(-q), atol=1e-15)
    J = assert_derivatives(rotation.quaternion_log, q)
    np.testing.assert_allclose(J[1], -J[0], atol=1e-15)
    np.testing.assert_allclose(J[0], np.hstack([np.zeros((3, 1)), 2 * np.eye(3)]), atol=1e-15)
    np.testing.assert_array_equal(value[1], np.zeros(3))


def test_g03_half_turns_are_finite_and_one_sided():
    q = np.stack([half_turn(axis) for axis in AXES])
    np.testing.assert_allclose(batched(rotation.quaternion_log)(q), np.pi * AXES, atol=1e-15)
    forward = batched(rotation.quaternion_log, jax.jacfwd)(q)
    reverse = batched(rotation.quaternion_log, jax.jacrev)(q)
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    # From the side w >= 0 (angles up to pi), second order one-sided differences along w.
    f, h = batched(rotation.quaternion_log), 1e-4
    one_sided = (4 * f(q + h * IDENTITY) - 3 * f(q) - f(q + 2 * h * IDENTITY)) / (2 * h)
    np.testing.assert_allclose(forward[:, :, 0], one_sided, atol=1e-6)
    matrices = batched(rotation.quaternion_to_matrix)(q)
    r = batched(rotation.rotation_log)(matrices)
    np.testing.assert_allclose(batched(rotation.rotation_exp)(r), matrices, atol=1e-14)
    for transform in (jax.jacfwd, jax.jacrev):
        assert np.all(np.isfinite(batched(rotation.rotation_log, transform)(matrices)))
        assert np.all(np.isfinite(batched(log_exp, transform)(np.pi * AXES)))


# G04: matrix to quaternion at trace -1 and around every branch


def quaternion_of_perturbed_matrix(q, r):
    """Quaternion of R(q) exp([r]x), made comparable by its sign."""
    R = rotation.quaternion_to_matrix(q) @ rotation.rotation_exp(r)
    p = rotation.matrix_to_quaternion(R)
    return p * jnp.where(jnp.sum(p * q) < 0, -1.0, 1.0)


def test_g04_matrix_to_quaternion_at_every_branch():
    ties = [[1, 1, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0], [1, 0, 0, 1]]
    ties += [[0, 1, 1, 0], [0, 1, 0, 1], [0, 0, 1, 1], [0, 1, 1, 1]]
    bases = [half_turn(axis) for axis in AXES] + [np.array(t, dtype=float) for t in ties]
    offsets = [np.zeros(4)] + [s * 1e-12 * e for e in np.eye(4) for s in (1, -1)]
    q = np.stack([base / np.linalg.norm(base) + d for base in bases for d in offsets])
    zero = np.zeros((len(q), 3))
    value = batched(quaternion_of_perturbed_matrix)(q, zero)
    np.testing.assert_allclose(value, q, atol=1e-11)
    derivatives = [
        batched(quaternion_of_perturbed_matrix, argument_one(transform))(q, zero)
        for transform in (jax.jacfwd, jax.jacrev)
    ]
    np.testing.assert_allclose(derivatives[0], derivatives[1], atol=1e-9)
    expected = differences(lambda r: batched(quaternion_of_perturbed_matrix)(q, r), zero)
    np.testing.assert_allclose(derivatives[0], expected, atol=1e-8)
    matrices = batched(rotation.quaternion_to_matrix)(q)
    assert np.all(np.isfinite(batched(rotation.matrix_to_quaternion, jax.jacrev)(matrices)))
    assert np.all(np.isfinite(batched(rotation.matrix_to_quaternion, jax.jacfwd)(matrices)))


@cache
def argument_one(transform):
    return lambda f: transform(f, argnums=1)


# G05: pitch of a quarter turn


def test_g05_rpy_at_the_singularity_reproduces_the_rotation_with_finite_derivatives():
    pitch = np.array([np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-13, np.pi / 2 - 1e-6, 0.4])
    rpy = np.stack([np.full(5, 0.3), pitch, np.full(5, -0.9)], axis=-1)
    R = batched(rotation.rpy_to_matrix)(rpy)
    rpy_back = batched(rotation.matrix_to_rpy)(R)
    np.testing.assert_allclose(batched(rotation.rpy_to_matrix)(rpy_back), R, atol=1e-9)
    for R_i, angles in zip(R[:2], rpy_back[:2], strict=True):
        expected = RollPitchYaw(RotationMatrix(np.asarray(R_i))).vector()
        np.testing.assert_allclose(angles, expected, atol=1e-12)
    for transform in (jax.jacfwd, jax.jacrev):
        assert np.all(np.isfinite(batched(rotation.matrix_to_rpy, transform)(R)))
    assert not np.all(np.abs(rotation.angular_velocity_to_rpy_rates_matrix(jnp.asarray(rpy[0]))) < 1e12)
    assert "singular" in rotation.matrix_to_rpy.__doc__


def rpy_round_trip(rpy):
    return rotation.matrix_to_rpy(rotation.rpy_to_matrix(rpy))


def test_rpy_round_trip_derivative_is_the_identity():
    J = batched(rpy_round_trip, jax.jacrev)(RPYS)
    np.testing.assert_allclose(J, np.tile(np.eye(3), (20, 1, 1)), atol=1e-12)


# G06: raw quaternions of any scale


def test_g06_gradient_over_four_raw_numbers():
    p = jnp.asarray([0.4, -1.1, 0.7])

    def rotated(q):
        return rotation.quaternion_rotate(q, p)

    q = np.concatenate([scale * QUATERNIONS[:4] for scale in (1.001, 0.5, 2.0)])
    q = np.concatenate([q, 0.5 * IDENTITY[None], -2.0 * IDENTITY[None]])
    functions = [rotation.quaternion_to_matrix, rotated, rotation.quaternion_log]
    for function in [*functions, safe_math.normalize_quaternion]:
        J = assert_derivatives(function, q)
        radial = np.einsum("b...i,bi->b...", J, q)  # no rotation depends on the length
        np.testing.assert_allclose(radial, 0.0, atol=1e-13)


def test_zero_quaternion_reads_as_identity():
    np.testing.assert_array_equal(rotation.quaternion_to_matrix(jnp.zeros(4)), np.eye(3))
    assert np.all(np.isfinite(jax.jacrev(rotation.quaternion_to_matrix)(jnp.zeros(4))))


# G07 (the part that is a rotation): a fixed axis at zero angle


def test_g07_axis_angle_derivatives_at_zero_angle():
    def matrix(x):
        return rotation.axis_angle_to_matrix(x[:3], x[3])

    x = np.concatenate([2.0 * np.repeat(AXES, 3, 0), np.tile([[0.0], [1e-9], [1.3]], (5, 1))], 1)
    J = assert_derivatives(matrix, x)
    np.testing.assert_allclose(J[0, :, :, 3], rotation.skew(jnp.asarray(AXES[0])), atol=1e-15)


def test_float32_is_preserved():
    f32 = {
        3: jnp.asarray(AXES[4], jnp.float32),
        4: jnp.asarray(QUATERNIONS[0], jnp.float32),
        9: jnp.eye(3, dtype=jnp.float32),
    }
    by_size = {
        3: "quaternion_exp rotation_exp rpy_to_matrix rpy_to_quaternion skew x_rotation y_rotation "
        "z_rotation rpy_rates_to_angular_velocity_matrix angular_velocity_to_rpy_rates_matrix",
        4: "quaternion_to_matrix quaternion_conjugate quaternion_log quaternion_to_rpy "
        "quaternion_rates_matrix quaternion_rates_to_angular_velocity_matrix",
        9: "matrix_to_quaternion matrix_to_rpy rotation_log vee",
    }
    for size, names in by_size.items():
        for name in names.split():
            out = jax.eval_shape(getattr(rotation, name), f32[size])
            assert out.dtype == jnp.float32, name
            assert not out.weak_type, name
    q, p = f32[4], f32[3]
    assert rotation.quaternion_multiply(q, q).dtype == jnp.float32
    assert rotation.quaternion_rotate(q, p).dtype == jnp.float32
    assert rotation.axis_angle_to_matrix(p, p[0]).dtype == jnp.float32
