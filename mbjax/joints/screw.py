"""Screw joint: rotation about an axis with translation along it in proportion."""

import jax.numpy as jnp

from .axis_joint import AxisJoint

RADIANS_PER_TURN = 2.0 * jnp.pi


class ScrewJoint(AxisJoint):
    """q: the angle in rad, v: its rate. `screw_pitch` is the advance in m per full turn."""

    kind = "screw"
    position_suffixes = ("q",)
    velocity_suffixes = ("w",)
    angular_velocities = (True,)
    has_pitch = True
    turns = True

    @staticmethod
    def advance(pitch):
        return pitch / RADIANS_PER_TURN
