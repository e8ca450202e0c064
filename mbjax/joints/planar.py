"""Planar joint: translation in the x-y plane of F and rotation about its z axis."""

import jax.numpy as jnp

from .abstract_joint import AbstractJoint, constant_hinge_map


class PlanarJoint(AbstractJoint):
    """q: (x, y, angle) in m, m, rad; v: their rates."""

    kind = "planar"
    num_positions = 3
    num_velocities = 3
    position_suffixes = ("x", "y", "qz")
    velocity_suffixes = ("vx", "vy", "wz")
    zero_positions = (0.0, 0.0, 0.0)
    angular_velocities = (False, False, True)

    @staticmethod
    def pose(q, axis, pitch):
        del axis, pitch
        x, y, angle = q
        c, s = jnp.cos(angle), jnp.sin(angle)
        zero = jnp.zeros_like(c)
        R_FM = jnp.stack([jnp.stack([c, -s, zero]), jnp.stack([s, c, zero]), jnp.stack([zero, zero, zero + 1])])
        return R_FM, jnp.stack([x, y, zero])

    @staticmethod
    def hinge_map(q, axis, pitch):
        del axis, pitch
        return constant_hinge_map((3, 4, 2), q)
