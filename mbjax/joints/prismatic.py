"""Prismatic joint: translation along one axis, the same in F and in M."""

import jax.numpy as jnp

from .axis_joint import AxisJoint


class PrismaticJoint(AxisJoint):
    """q: the displacement in m, v: its rate."""

    kind = "prismatic"
    position_suffixes = ("x",)
    velocity_suffixes = ("v",)
    angular_velocities = (False,)
    turns = False

    @staticmethod
    def advance(pitch):
        return jnp.ones_like(pitch)
