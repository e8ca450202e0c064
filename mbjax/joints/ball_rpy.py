"""Ball joint: free rotation about a point, with roll-pitch-yaw angles as positions."""

import jax
import jax.numpy as jnp

from mbjax.spatial import (
    angular_velocity_to_rpy_rates_matrix,
    matrix_to_quaternion,
    matrix_to_rpy,
    quaternion_exp,
    quaternion_log,
    quaternion_to_matrix,
    rpy_rates_to_angular_velocity_matrix,
    rpy_to_matrix,
    small_matmul,
    small_matvec,
)
from mbjax.spatial.component_algebra import over_columns

from .abstract_joint import AbstractJoint, constant_hinge_map


class BallRpyJoint(AbstractJoint):
    """q: (roll, pitch, yaw) in rad with R_FM = Rz(yaw) Ry(pitch) Rx(roll); v: w_FM_F in rad/s.

    qdot = N(q) v is singular at pitch = +-90 degrees; the dynamics themselves never use N.
    """

    kind = "ball_rpy"
    num_positions = 3
    num_velocities = 3
    position_suffixes = ("qx", "qy", "qz")
    velocity_suffixes = ("wx", "wy", "wz")
    zero_positions = (0.0, 0.0, 0.0)
    angular_velocities = (True, True, True)

    @staticmethod
    def pose(q, axis, pitch):
        del axis, pitch
        return over_columns(rpy_to_matrix, q), jnp.zeros_like(q)

    @staticmethod
    def hinge_map(q, axis, pitch):
        del axis, pitch
        return constant_hinge_map((0, 1, 2), q)

    @staticmethod
    def velocity_to_qdot(q, v):
        return over_columns(rpy_rates_from, q, v)

    @staticmethod
    def qdot_to_velocity(q, qdot):
        return over_columns(angular_velocity_from, q, qdot)

    @staticmethod
    def integrate(q, dv):
        return over_columns(rotated_rpy, q, dv)

    @staticmethod
    def difference(q0, q1):
        return over_columns(rpy_rotation_between, q0, q1)


def rpy_rates_from(rpy, w_FM_F):
    return small_matvec(angular_velocity_to_rpy_rates_matrix(rpy), w_FM_F)


def angular_velocity_from(rpy, rpy_rates):
    return small_matvec(rpy_rates_to_angular_velocity_matrix(rpy), rpy_rates)


def rotated_rpy(rpy, rotation_vector):
    """Roll-pitch-yaw angles of exp(rotation_vector) R_FM, on the branch nearest to `rpy`."""
    moved = matrix_to_rpy(small_matmul(quaternion_to_matrix(quaternion_exp(rotation_vector)), rpy_to_matrix(rpy)))
    turn = 2.0 * jnp.pi
    same_branch = moved + turn * jax.lax.stop_gradient(jnp.round((rpy - moved) / turn))
    other = jnp.stack([moved[0] + jnp.pi, jnp.pi - moved[1], moved[2] + jnp.pi])
    other_branch = other + turn * jax.lax.stop_gradient(jnp.round((rpy - other) / turn))
    nearer = jnp.sum((other_branch - rpy) ** 2) < jnp.sum((same_branch - rpy) ** 2)
    return jnp.where(nearer, other_branch, same_branch)


def rpy_rotation_between(rpy0, rpy1):
    from_0_to_1 = rpy_to_matrix(rpy1) @ rpy_to_matrix(rpy0).T
    return quaternion_log(matrix_to_quaternion(from_0_to_1))
