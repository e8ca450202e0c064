"""Translation along one axis, the same in F and in M."""

import jax.numpy as jnp

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_normalize

from .abstract_joint import AbstractJoint


class PrismaticJoint(AbstractJoint):
    """q: the displacement in m, v: its rate."""

    kind = "prismatic"
    num_positions = 1
    num_velocities = 1
    position_suffixes = ("x",)
    velocity_suffixes = ("v",)
    zero_positions = (0.0,)
    angular_velocities = (False,)
    has_axis = True

    @staticmethod
    def pose(q, axis, pitch):
        del pitch
        identity = jnp.eye(3, dtype=q.dtype).reshape(3, 3, *(1 for _ in q.shape[1:]))
        R_FM = jnp.broadcast_to(identity, (3, 3, *q.shape[1:]))
        return R_FM, ca.scale(safe_normalize(axis, axis=0), q[0])

    @staticmethod
    def hinge_map(q, axis, pitch):
        del pitch
        axis = safe_normalize(axis, axis=0)
        return jnp.concatenate([jnp.zeros_like(axis), axis])[:, None].astype(q.dtype)
