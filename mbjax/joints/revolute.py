"""Rotation about one axis, the same in F and in M."""

import jax
import jax.numpy as jnp

from mbjax.spatial import axis_angle_to_matrix, safe_normalize

from .abstract_joint import AbstractJoint


class RevoluteJoint(AbstractJoint):
    """q: the angle in rad, v: its rate."""

    kind = "revolute"
    num_positions = 1
    num_velocities = 1
    position_suffixes = ("q",)
    velocity_suffixes = ("w",)
    zero_positions = (0.0,)
    angular_velocities = (True,)
    has_axis = True

    @staticmethod
    def pose(q, axis, pitch):
        del pitch
        R_FM = jax.vmap(axis_angle_to_matrix, in_axes=-1, out_axes=-1)(axis, q[0])
        return R_FM, jnp.zeros_like(axis, dtype=q.dtype)

    @staticmethod
    def hinge_map(q, axis, pitch):
        del pitch
        axis = safe_normalize(axis, axis=0)
        return jnp.concatenate([axis, jnp.zeros_like(axis)])[:, None, :].astype(q.dtype)
