"""How the torques of inverse dynamics change: where only the state moves, in reverse mode on a CPU by a recursion."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.kinematics import qdot_to_velocity
from mbjax.linear_maps import linear_map
from mbjax.model import MultibodyModel
from mbjax.tangents import with_zeros

from .newton_euler import calc_inverse_dynamics, calc_motion_and_forces
from .recursive_torque_gradient import calc_torque_gradient, has_torque_gradient
from .tree_motion import TreeMotion


def calc_torque_change_along(
    motion: TreeMotion,
    vdot: Float[Array, " nv"],
    F_applied_T: Float[Array, "6 nm"] | None,
    only_weights: bool,
    dmotion: Any,
    dvdot: Float[Array, " nv"] | None,
    dF_applied_T: Float[Array, "6 nm"] | None,
) -> Float[Array, " nv"] | None:
    """dtau of `calc_inverse_dynamics` along tangents; None where nothing moves."""
    moved = [dmotion.q, dmotion.v, dvdot]
    by_state_alone = not jax.tree.leaves(dmotion.model) and (only_weights or F_applied_T is None)
    if by_state_alone and jax.tree.leaves(moved) and has_torque_gradient(motion.model):
        moved = moved if dvdot is not None else moved[:2]
        moved = with_zeros(moved, [motion.q, motion.v, vdot][: len(moved)])
        return calc_torque_change_by_state(motion, vdot, moved, F_applied_T is not None)
    arguments, tangents = (motion, vdot, F_applied_T), (dmotion, dvdot, dF_applied_T)
    return eqx.filter_jvp(calc_inverse_dynamics, arguments, tangents)[1]


def calc_torque_change_by_state(
    motion: TreeMotion, vdot: Float[Array, " nv"], moved: list[Array], gravity: bool
) -> Float[Array, " nv"]:
    """dtau along `moved`, which are dq, dv and perhaps dvdot; under `gravity` or without any force applied."""
    count = len(moved)

    def change(fixed: tuple[MultibodyModel, Array, Array, Array], moved: list[Array]) -> Array:
        model, *state = fixed

        def required(*moving: Array) -> Array:
            q, v, vdot = *moving, *state[count:]
            motion, F_T = calc_motion_and_forces(model, q, v, None, gravity)
            return calc_inverse_dynamics(motion, vdot, F_T)

        return jax.jvp(required, tuple(state[:count]), tuple(moved))[1]

    def pull_back(fixed: tuple[MultibodyModel, Array, Array, Array], weight: Array) -> list[Array]:
        model, q, v, vdot = fixed
        by_q, by_v, by_vdot = calc_torque_gradient(model, q, v, vdot, weight, gravity)
        worlds = jnp.broadcast_shapes(q.shape[1:], by_q.shape[1:])
        q, by_q = (jnp.broadcast_to(x, (x.shape[0], *worlds)) for x in (q, by_q))
        _, to_qdot = jax.vjp(lambda dq: qdot_to_velocity(model, q, dq), jnp.zeros_like(q))
        return [*to_qdot(by_q), by_v, by_vdot][:count]

    return linear_map(change, pull_back, (motion.model, motion.q, motion.v, vdot), moved)
