"""Two joints that turn in proportion."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import CouplerConstraint, MultibodyModel

from .joint_rows import JointRows


def coupler_rows(
    coupler: CouplerConstraint, model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"] | None
) -> JointRows:
    """q0 - gear_ratio q1 - offset."""
    joint0, joint1 = model.layout.joints[coupler.joint0], model.layout.joints[coupler.joint1]
    ratio = coupler.gear_ratio
    error = q[joint0.q] - ratio * q[joint1.q] - coupler.offset
    columns = [jnp.zeros_like(ratio)] * model.num_velocities
    columns[joint0.v_start], columns[joint1.v_start] = jnp.ones_like(ratio), -ratio
    rate = None if v is None else v[joint0.v] - ratio * v[joint1.v]
    return JointRows(error, jnp.stack(columns)[None], rate, None if rate is None else jnp.zeros_like(rate))
