"""Dry friction of joints in a discrete step: near-rigid rows whose forces have bounds."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.contact import NEAR_RIGID, BoxRows
from mbjax.execution.arrays import take
from mbjax.model import MultibodyModel, all_joint_velocities, direction_ratios
from mbjax.spatial import safe_divide


def calc_joint_friction_rows(
    model: MultibodyModel, v: Float[Array, " nv"], diagonal: Float[Array, " nv"]
) -> BoxRows | None:
    """Friction rows, one for each direction of a joint with friction f: γ = -v⁺ / R within ±dt f.

    v⁺ is the direction's own velocity, and -γ is the gradient of Huber's function of v⁺. A joint that sticks creeps:
    under a torque τ at v⁺ = R dt τ, which is 2.5e-4 of the speed that τ would give the free joint in a step.
    """
    where, topology = list(model.layout.frictional_directions), model.topology
    if not where:
        return None
    velocities, gains = tuple(topology.velocities_of_directions[where].tolist()), None
    inertia = take(diagonal, velocities, 0)
    if topology.followers:  # the inertia at the mimic joint itself
        gains = take(direction_ratios(model), where, 0)
        inertia = safe_divide(inertia, gains * gains)
    stiffness = inertia / NEAR_RIGID
    bound = model.time_step * take(model.parameters.joint_friction, where, 0)
    v = take(all_joint_velocities(model, v), where, 0)
    return BoxRows(-stiffness * v, stiffness, -bound, bound, velocities, gains)


def calc_friction_without_rows(model: MultibodyModel) -> Float[Array, " nd"]:
    """Friction f of directions without a row: a leaf that was changed directly still acts, and has a gradient."""
    has_row = np.isin(np.arange(model.topology.num_directions), model.layout.frictional_directions)
    has_row = has_row.reshape(-1, *(1,) * model.num_world_axes)
    return jnp.where(has_row, 0.0, model.parameters.joint_friction)
