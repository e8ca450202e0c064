"""Universal joint: rotations about Fx, then about the y axis of the intermediate frame."""

import jax.numpy as jnp

from .abstract_joint import AbstractJoint


class UniversalJoint(AbstractJoint):
    """q: the two angles in rad, v: their rates. R_FM = Rx(q0) Ry(q1)."""

    kind = "universal"
    num_positions = 2
    num_velocities = 2
    position_suffixes = ("qx", "qy")
    velocity_suffixes = ("wx", "wy")
    zero_positions = (0.0, 0.0)
    angular_velocities = (True, True)

    @staticmethod
    def pose(q, axis, pitch):
        del axis, pitch
        (c0, c1), (s0, s1) = jnp.cos(q), jnp.sin(q)
        zero = jnp.zeros_like(c0)
        R_FM = jnp.stack(
            [
                jnp.stack([c1, zero, s1]),
                jnp.stack([s0 * s1, c0, -s0 * c1]),
                jnp.stack([-c0 * s1, s0, c0 * c1]),
            ]
        )
        return R_FM, jnp.zeros_like(R_FM[0])

    @staticmethod
    def hinge_map(q, axis, pitch):
        del axis, pitch
        c0, s0 = jnp.cos(q[0]), jnp.sin(q[0])
        zero = jnp.zeros_like(c0)
        about_Fx = jnp.stack([zero + 1, zero, zero, zero, zero, zero])
        about_Iy = jnp.stack([zero, c0, s0, zero, zero, zero])
        return jnp.stack([about_Fx, about_Iy], axis=1)

    @staticmethod
    def hinge_map_rate(q, v):
        c0, s0 = jnp.cos(q[0]), jnp.sin(q[0])
        zero = jnp.zeros_like(c0)
        about_Fx = jnp.stack([zero] * 6)
        about_Iy = jnp.stack([zero, -s0 * v[0], c0 * v[0], zero, zero, zero])
        return jnp.stack([about_Fx, about_Iy], axis=1)
