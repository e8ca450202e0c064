"""Position limits of joints with one degree of freedom, as near-rigid unilateral springs at the end of a step."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.contact import NEAR_RIGID, BoxRows, join_rows
from mbjax.execution.arrays import take
from mbjax.model import MultibodyModel

STIFFNESS = 1e12  # stiffness of a limit that the step could resolve, in N/m or N m/rad, as in Drake


def calc_joint_limit_rows(
    model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"], diagonal: Float[Array, " nv"]
) -> BoxRows | None:
    """Limit rows, all lower limits first; each pushes inward only, with the dissipation time of one step.

    Limits of joints that mimic are converted to limits of their leader. With the gap g = q - q_l at the start,
    γ = max(0, -(g / 2 dt + v⁺) / R): Castro et al. 2022, sec. V. An infinite limit has no stiffness.
    """
    joints, dt = model.layout.limited_joints, model.time_step
    positions, velocities = [j.q_start for j in joints], tuple(j.v_start for j in joints)
    q, v, diagonal = take(q, positions, 0), take(v, velocities, 0), take(diagonal, velocities, 0)
    stiffness = 1.0 / jnp.maximum(NEAR_RIGID / diagonal, 1.0 / (2.0 * STIFFNESS * dt * dt))
    nothing, unbounded = jnp.zeros_like(q), jnp.full_like(q, jnp.inf)

    def rows(limits: Array, lower: Array, upper: Array) -> BoxRows:
        limit = take(limits, positions, 0)
        exists = jnp.isfinite(limit)
        gap = q - jnp.where(exists, limit, 0.0)
        k = jnp.where(exists, stiffness, 0.0)
        return BoxRows(-k * (gap / (2.0 * dt) + v), k, lower, upper, velocities)

    below = rows(model.position_lower_limits, nothing, unbounded)
    above = rows(model.position_upper_limits, -unbounded, nothing)
    return join_rows([below, above])
