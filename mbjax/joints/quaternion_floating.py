"""Floating joint: free motion in space, with a quaternion and a translation as positions."""

import jax.numpy as jnp

from mbjax.spatial import (
    normalize_quaternion,
    quaternion_conjugate,
    quaternion_exp,
    quaternion_log,
    quaternion_multiply,
    quaternion_rates_matrix,
    quaternion_rates_to_angular_velocity_matrix,
    quaternion_to_matrix,
    small_matvec,
)
from mbjax.spatial.component_algebra import over_columns

from .abstract_joint import AbstractJoint, constant_hinge_map


class QuaternionFloatingJoint(AbstractJoint):
    """q: (qw, qx, qy, qz, x, y, z), v: (w_FM_F, v_FMo_F). The quaternion is normalised where it is used."""

    kind = "quaternion_floating"
    num_positions = 7
    num_velocities = 6
    position_suffixes = ("qw", "qx", "qy", "qz", "x", "y", "z")
    velocity_suffixes = ("wx", "wy", "wz", "vx", "vy", "vz")
    zero_positions = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    angular_velocities = (True, True, True, False, False, False)
    has_quaternion = True
    is_floating = True

    @staticmethod
    def pose(q, axis, pitch):
        del axis, pitch
        return over_columns(quaternion_to_matrix, q[:4]), q[4:]

    @staticmethod
    def hinge_map(q, axis, pitch):
        del axis, pitch
        return constant_hinge_map((0, 1, 2, 3, 4, 5), q)

    @staticmethod
    def velocity_to_qdot(q, v):
        return jnp.concatenate([over_columns(quaternion_rates, q[:4], v[:3]), v[3:]])

    @staticmethod
    def qdot_to_velocity(q, qdot):
        w_FM_F = over_columns(angular_velocity, q[:4], qdot[:4])
        return jnp.concatenate([w_FM_F, qdot[4:]])

    @staticmethod
    def integrate(q, dv):
        return jnp.concatenate([over_columns(rotated, q[:4], dv[:3]), q[4:] + dv[3:]])

    @staticmethod
    def difference(q0, q1):
        return jnp.concatenate([over_columns(rotation_between, q0[:4], q1[:4]), q1[4:] - q0[4:]])


def quaternion_rates(quaternion, w_FM_F):
    """Rates of the quaternion's four numbers at angular velocity w_FM_F."""
    return small_matvec(quaternion_rates_matrix(quaternion), w_FM_F)


def angular_velocity(quaternion, rates):
    """Angular velocity w_FM_F at which the quaternion changes with the given rates."""
    return small_matvec(quaternion_rates_to_angular_velocity_matrix(quaternion), rates)


def rotated(quaternion, rotation_vector):
    """Quaternion turned by a rotation vector in F: exp(rotation_vector) q, of unit length."""
    return quaternion_multiply(quaternion_exp(rotation_vector), normalize_quaternion(quaternion))


def rotation_between(quaternion0, quaternion1):
    """Rotation vector in F that turns the first quaternion's orientation into the second's."""
    q0, q1 = normalize_quaternion(quaternion0), normalize_quaternion(quaternion1)
    return quaternion_log(quaternion_multiply(q1, quaternion_conjugate(q0)))
