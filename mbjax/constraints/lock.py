"""Locks: a joint held at a position, or wherever it is."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution import each_world
from mbjax.joints import JOINT_KINDS
from mbjax.model import LockConstraint, MultibodyModel

from .custom import rows_of_residual
from .joint_rows import JointRows


def lock_rows(
    lock: LockConstraint, model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"] | None
) -> JointRows:
    """Rows of a lock."""
    joint = model.layout.joints[lock.joint]
    if lock.position is not None and joint.num_velocities > 1:
        return each_world(rows_of_one_world, model.num_world_axes, lock, model, q, v)
    k = joint.num_velocities
    selector = np.zeros((k, model.num_velocities, *(1,) * model.num_world_axes))
    selector[np.arange(k), np.arange(joint.v.start, joint.v.stop)] = 1.0
    error = model.zeros(k) if lock.position is None else q[joint.q] - lock.position
    rate = None if v is None else v[joint.v]
    return JointRows(error, jnp.asarray(selector, model.dtype), rate, None if rate is None else jnp.zeros_like(rate))


def rows_of_one_world(lock: LockConstraint, model: MultibodyModel, q: Array, v: Array | None) -> JointRows:
    """Rows of a lock with several velocities: the difference from the held position on the joint's manifold."""
    joint = model.layout.joints[lock.joint]
    assert lock.position is not None
    held = lock.position[:, None]
    return rows_of_residual(lambda q: JOINT_KINDS[joint.kind].difference(held, q[joint.q, None])[:, 0], model, q, v)
