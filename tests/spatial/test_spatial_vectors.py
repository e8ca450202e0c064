"""Spatial vectors against Drake's, and the identities that tie them together."""

import jax
import jax.numpy as jnp
import numpy as np
from pydrake.math import RotationMatrix
from pydrake.multibody.math import (
    SpatialAcceleration,
    SpatialForce,
    SpatialMomentum,
    SpatialVelocity,
)

from mbjax.spatial import (
    compose_spatial_acceleration,
    compose_spatial_velocity,
    cross_force,
    cross_motion,
    quaternion_to_matrix,
    re_express,
    rotation_exp,
    shift_spatial_acceleration,
    shift_spatial_force,
    shift_spatial_momentum,
    shift_spatial_velocity,
)

RNG = np.random.default_rng(22)
U, V, W = RNG.normal(size=(3, 6))
P, OMEGA = RNG.normal(size=(2, 3))
R = np.asarray(quaternion_to_matrix(jnp.asarray(RNG.normal(size=4))))
u, v, w, p, omega = (jnp.asarray(x) for x in (U, V, W, P, OMEGA))


def assert_equals_drake(computed, expected):
    np.testing.assert_allclose(computed, expected.get_coeffs(), atol=1e-14)


def test_shifts_match_drake():
    assert_equals_drake(shift_spatial_velocity(u, p), SpatialVelocity(U).Shift(P))
    assert_equals_drake(shift_spatial_force(u, p), SpatialForce(U).Shift(P))
    assert_equals_drake(shift_spatial_momentum(u, p), SpatialMomentum(U).Shift(P))
    assert_equals_drake(shift_spatial_acceleration(u, p, omega), SpatialAcceleration(U).Shift(P, OMEGA))


def test_compositions_match_drake():
    assert_equals_drake(
        compose_spatial_velocity(u, p, v),
        SpatialVelocity(U).ComposeWithMovingFrameVelocity(P, SpatialVelocity(V)),
    )
    assert_equals_drake(
        compose_spatial_acceleration(u, p, omega, v, w),
        SpatialAcceleration(U).ComposeWithMovingFrameAcceleration(P, OMEGA, SpatialVelocity(V), SpatialAcceleration(W)),
    )


def test_re_express_matches_drake():
    expected = SpatialVelocity(U).Rotate(RotationMatrix(R))
    assert_equals_drake(re_express(jnp.asarray(R), u), expected)


def test_cross_products_are_adjoint_and_satisfy_jacobi():
    np.testing.assert_allclose(cross_force(u, v) @ w, -v @ cross_motion(u, w), atol=1e-14)
    jacobi = cross_motion(u, cross_motion(v, w)) + cross_motion(v, cross_motion(w, u))
    np.testing.assert_allclose(jacobi, -cross_motion(w, cross_motion(u, v)), atol=1e-13)


def test_shift_conserves_power():
    power = u @ v
    np.testing.assert_allclose(shift_spatial_force(u, p) @ shift_spatial_velocity(v, p), power, atol=1e-14)


def test_composition_is_the_time_derivative_of_velocity():
    """A_WB from two nested motions R = exp(w t), differentiated twice in time."""
    w_WP, w_PB, a, b, c = jnp.asarray(RNG.normal(size=(5, 3)))

    def position(t):
        p_PoBo_P = b + c * t * t
        return rotation_exp(w_WP * t) @ p_PoBo_P + a * t

    t = 0.6
    velocity = jax.jit(jax.jacfwd(position))
    R_WP, R_rate = jax.jit(lambda s: jax.jvp(rotation_exp, (w_WP * s,), (w_WP,)))(t)
    p_PB_W, v_PB_W, a_PB_W = R_WP @ (b + c * t * t), R_WP @ (2 * c * t), R_WP @ (2 * c)
    zero = jnp.zeros(3)
    w_PB_W = R_WP @ w_PB
    V_PB = jnp.concatenate([w_PB_W, v_PB_W])
    V_WB = compose_spatial_velocity(jnp.concatenate([w_WP, a]), p_PB_W, V_PB)
    A_PB = jnp.concatenate([zero, a_PB_W])
    A_WB = compose_spatial_acceleration(jnp.zeros(6), p_PB_W, w_WP, V_PB, A_PB)
    np.testing.assert_allclose(V_WB[3:], velocity(t), atol=1e-13)
    np.testing.assert_allclose(A_WB[3:], jax.jit(jax.jacfwd(velocity))(t), atol=1e-13)
    np.testing.assert_allclose(A_WB[:3], R_rate @ w_PB, atol=1e-13)


def test_leading_axes_broadcast_and_float32_stays():
    many = jnp.asarray(RNG.normal(size=(4, 6)), jnp.float32)
    points = many[:, :3]
    single = many[0]
    for function in (shift_spatial_velocity, shift_spatial_force, shift_spatial_momentum):
        out = function(single, points)
        assert out.shape == (4, 6)
        assert out.dtype == jnp.float32
        np.testing.assert_allclose(out[2], function(single, points[2]), rtol=1e-6)
        assert function(many, points[0]).shape == (4, 6)
    assert cross_motion(single, many).shape == cross_force(many, many).shape == (4, 6)
    assert shift_spatial_acceleration(many, points, points[0]).shape == (4, 6)
    composed = compose_spatial_acceleration(single, points, points, many, many)
    assert composed.dtype == jnp.float32
    assert re_express(jnp.eye(3, dtype=jnp.float32), many).dtype == jnp.float32
