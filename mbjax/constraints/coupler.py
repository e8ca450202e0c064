"""Couplers: two joints that turn in proportion."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import (
    CouplerConstraint,
    MultibodyModel,
    all_joint_positions,
    all_joint_velocities,
    sum_joint_forces,
)

from .joint_rows import JointRows


def coupler_rows(
    coupler: CouplerConstraint, model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"] | None
) -> JointRows:
    """The row of a coupler, with error q0 - gear_ratio q1 - offset."""
    joint0, joint1 = model.layout.joints[coupler.joint0], model.layout.joints[coupler.joint1]
    ratio, q = coupler.gear_ratio, all_joint_positions(model, q)
    error = q[joint0.all_q] - ratio * q[joint1.all_q] - coupler.offset
    columns = [jnp.zeros_like(ratio)] * model.topology.num_directions
    columns[joint0.all_v_start], columns[joint1.all_v_start] = jnp.ones_like(ratio), -ratio
    G = sum_joint_forces(model, jnp.stack(columns))[None]
    v = None if v is None else all_joint_velocities(model, v)
    rate = None if v is None else v[joint0.all_v] - ratio * v[joint1.all_v]
    return JointRows(error, G, rate, None if rate is None else jnp.zeros_like(rate))
