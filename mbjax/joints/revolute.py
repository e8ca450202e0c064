"""Rotation about one axis, the same in F and in M."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_normalize

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
        return rotation_about(safe_normalize(axis, axis=0), q[0]), jnp.zeros_like(axis, dtype=q.dtype)

    @staticmethod
    def hinge_map(q, axis, pitch):
        del pitch
        axis = safe_normalize(axis, axis=0)
        return jnp.concatenate([axis, jnp.zeros_like(axis)])[:, None].astype(q.dtype)


def rotation_about(n: Float[Array, "3 *k"], angle: Float[Array, "*k"]) -> Float[Array, "3 3 *k"]:
    """R = n nᵀ + cos(a) (1 - n nᵀ) + sin(a) [n]x about a unit axis n (Rodrigues)."""
    along = ca.outer(n, n)
    identity = jnp.eye(3, dtype=n.dtype).reshape(3, 3, *(1 for _ in n.shape[1:]))
    c, s = (ca.spread(ca.spread(x, 3), 3) for x in (jnp.cos(angle), jnp.sin(angle)))
    return along + c * (identity - along) + s * ca.skew(n)
