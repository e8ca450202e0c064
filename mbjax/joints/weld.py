"""Weld joint, without motion. Welded bodies are merged for the computation and keep their names and parameters."""

import jax.numpy as jnp

from .abstract_joint import AbstractJoint


class WeldJoint(AbstractJoint):
    """M stays at F; place the frames with `X_PF` and `X_BM`."""

    kind = "weld"
    num_positions = 0
    num_velocities = 0
    position_suffixes = ()
    velocity_suffixes = ()
    zero_positions = ()
    angular_velocities = ()

    @staticmethod
    def pose(q, axis, pitch):
        del pitch
        k = axis.shape[-1]
        return jnp.broadcast_to(jnp.eye(3, dtype=q.dtype)[:, :, None], (3, 3, k)), jnp.zeros((3, k), q.dtype)

    @staticmethod
    def hinge_map(q, axis, pitch):
        del pitch
        return jnp.zeros((6, 0, axis.shape[-1]), q.dtype)
