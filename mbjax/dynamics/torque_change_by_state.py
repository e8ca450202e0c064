"""How the torques of inverse dynamics change with the state alone: in reverse mode on a CPU a recursion."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.forces import calc_gravity_on_mobods
from mbjax.kinematics import calc_position_kinematics, qdot_to_velocity
from mbjax.linear_maps import linear_map
from mbjax.model import MultibodyModel

from .newton_euler import calc_inverse_dynamics
from .recursive_torque_gradient import calc_torque_gradient
from .tree_motion import TreeMotion, calc_tree_motion


def calc_torque_change_by_state(
    motion: TreeMotion, vdot: Float[Array, " nv"], moved: list[Array], gravity: bool
) -> Float[Array, " nv"]:
    """dtau along `moved`, which are dq and dv; under `gravity` or without any force applied."""

    def change(fixed: tuple[MultibodyModel, Array, Array, Array], moved: list[Array]) -> Array:
        model, q, v, vdot = fixed

        def required(q: Array, v: Array) -> Array:
            position = calc_position_kinematics(model, q)
            F_T = calc_gravity_on_mobods(model, position) if gravity else None
            return calc_inverse_dynamics(calc_tree_motion(model, position, q, v), vdot, F_T)

        return jax.jvp(required, (q, v), tuple(moved))[1]

    def pull_back(fixed: tuple[MultibodyModel, Array, Array, Array], weight: Array) -> list[Array]:
        model, q, v, vdot = fixed
        by_q, by_v, _ = calc_torque_gradient(model, q, v, vdot, weight, gravity)
        q = jnp.broadcast_to(q, (q.shape[0], *jnp.broadcast_shapes(q.shape[1:], by_q.shape[1:])))
        _, to_qdot = jax.vjp(lambda dq: qdot_to_velocity(model, q, dq), jnp.zeros_like(q))
        return [*to_qdot(jnp.broadcast_to(by_q, (by_q.shape[0], *q.shape[1:]))), by_v]

    return linear_map(change, pull_back, (motion.model, motion.q, motion.v, vdot), moved)
