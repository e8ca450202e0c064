"""Floating joint: free motion in space, with roll-pitch-yaw angles and a translation as positions."""

import jax.numpy as jnp

from .abstract_joint import AbstractJoint, constant_hinge_map
from .ball_rpy import BallRpyJoint


class RpyFloatingJoint(AbstractJoint):
    """q: (roll, pitch, yaw, x, y, z) in rad and m, v: (w_FM_F, v_FMo_F); N(q) is singular at pitch = +-90 degrees."""

    kind = "rpy_floating"
    num_positions = 6
    num_velocities = 6
    position_suffixes = ("qx", "qy", "qz", "x", "y", "z")
    velocity_suffixes = ("wx", "wy", "wz", "vx", "vy", "vz")
    zero_positions = (0.0,) * 6
    angular_velocities = (True, True, True, False, False, False)
    is_floating = True

    @staticmethod
    def pose(q, axis, pitch):
        R_FM, _ = BallRpyJoint.pose(q[:3], axis, pitch)
        return R_FM, q[3:]

    @staticmethod
    def hinge_map(q, axis, pitch):
        del axis, pitch
        return constant_hinge_map((0, 1, 2, 3, 4, 5), q)

    @staticmethod
    def velocity_to_qdot(q, v):
        return jnp.concatenate([BallRpyJoint.velocity_to_qdot(q[:3], v[:3]), v[3:]])

    @staticmethod
    def qdot_to_velocity(q, qdot):
        return jnp.concatenate([BallRpyJoint.qdot_to_velocity(q[:3], qdot[:3]), qdot[3:]])

    @staticmethod
    def integrate(q, dv):
        return jnp.concatenate([BallRpyJoint.integrate(q[:3], dv[:3]), q[3:] + dv[3:]])

    @staticmethod
    def difference(q0, q1):
        return jnp.concatenate([BallRpyJoint.difference(q0[:3], q1[:3]), q1[3:] - q0[3:]])
