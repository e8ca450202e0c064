"""Dry friction of joints in a discrete step: it holds as other rigid rows do, up to its bound."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.contact import BoxRows
from mbjax.model import MultibodyModel
from mbjax.topology import take

from .constraint_rows import NEAR_RIGID


def calc_joint_friction_rows(
    model: MultibodyModel, v: Float[Array, " nv"], diagonal: Float[Array, " nv"]
) -> BoxRows | None:
    """A row for each velocity of a joint with friction f: γ = -v⁺ / R within ±dt f.

    -γ is the gradient of Huber's function of v⁺. A joint that sticks creeps: under a torque τ at v⁺ = R dt τ, which is
    2.5e-4 of the speed that τ would give the joint in a step if it were free.
    """
    velocities = model.layout.frictional_velocities
    if not velocities:
        return None
    where = list(velocities)
    stiffness = take(diagonal, where, 0) / NEAR_RIGID
    bound = model.time_step * take(model.parameters.joint_friction, where, 0)
    return BoxRows(-stiffness * take(v, where, 0), stiffness, -bound, bound, velocities)


def calc_friction_without_rows(model: MultibodyModel) -> Float[Array, " nv"]:
    """f of the velocities that have no row: a leaf that was changed directly still acts, and has a gradient."""
    has_row = np.isin(np.arange(model.num_velocities), model.layout.frictional_velocities)
    has_row = has_row.reshape(-1, *(1,) * model.num_world_axes)
    return jnp.where(has_row, 0.0, model.parameters.joint_friction)
