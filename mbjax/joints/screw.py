"""Rotation about an axis with translation along it in proportion."""

import jax.numpy as jnp

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_normalize

from .abstract_joint import AbstractJoint
from .revolute import rotation_about

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
        axis = safe_normalize(axis, axis=0)
        return rotation_about(axis, q[0]), ca.scale(axis, pitch / TURN * q[0])

    @staticmethod
    def hinge_map(q, axis, pitch):
        axis = safe_normalize(axis, axis=0)
        return ca.concatenate([axis, ca.scale(axis, pitch / TURN)], 0)[:, None].astype(q.dtype)
