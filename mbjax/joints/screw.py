"""Rotation about an axis with translation along it in proportion."""

import jax
import jax.numpy as jnp

from mbjax.spatial import axis_angle_to_matrix, safe_normalize

from .abstract_joint import AbstractJoint

TURN = 2.0 * jnp.pi


class ScrewJoint(AbstractJoint):
    """q: the angle in rad, v: its rate. `screw_pitch` is the advance in m per full turn."""

    kind = "screw"
    num_positions = 1
    num_velocities = 1
    position_suffixes = ("q",)
    velocity_suffixes = ("w",)
    zero_positions = (0.0,)
    angular_velocities = (True,)
    has_axis = True
    has_pitch = True

    @staticmethod
    def pose(q, axis, pitch):
        R_FM = jax.vmap(axis_angle_to_matrix, in_axes=-1, out_axes=-1)(axis, q[0])
        return R_FM, safe_normalize(axis, axis=0) * (pitch / TURN * q[0])

    @staticmethod
    def hinge_map(q, axis, pitch):
        axis = safe_normalize(axis, axis=0)
        return jnp.concatenate([axis, axis * (pitch / TURN)])[:, None, :].astype(q.dtype)
