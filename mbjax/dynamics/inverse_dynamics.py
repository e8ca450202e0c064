"""tau from v̇, where nothing else reads the kinematics: on a CPU by recursion."""

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.by_device import in_kernels
from mbjax.model import MultibodyModel
from mbjax.tangents import fit_tangent

from .newton_euler import calc_motion_and_forces, moved_to_mobods, newton_euler
from .recursive_newton_euler import calc_motion, calc_torques
from .torque_change_along import calc_torque_change_along
from .tree_motion import TreeMotion


@eqx.filter_custom_jvp
def calc_inverse_dynamics_alone(
    motion: TreeMotion, vdot: Float[Array, " nv"], F_applied_T: Float[Array, "6 nm"] | None, only_weights: bool
) -> Float[Array, " nv"]:
    """`calc_inverse_dynamics`; `F_applied_T` are `only_weights` if they are those of all that feels gravity."""
    topology = motion.model.topology
    if topology.followers or topology.num_velocities == 0:
        return newton_euler(motion, vdot, F_applied_T)
    weights, F_W = only_weights and F_applied_T is not None, None
    if F_applied_T is not None and not weights:
        F_W = moved_to_mobods(motion.position, F_applied_T, -1.0)

    def by_recursion(model: MultibodyModel, q: Array, v: Array, vdot: Array, F_W: Array | None) -> Array:
        return calc_torques(model.topology, calc_motion(model, q, v, vdot, weights, F_W))

    def by_sums(model: MultibodyModel, q: Array, v: Array, vdot: Array, F_W: Array | None) -> Array:
        motion, F_T = calc_motion_and_forces(model, q, v, F_W, weights)
        return newton_euler(motion, vdot, F_T)

    return in_kernels(by_recursion, by_sums, motion.model, motion.q, motion.v, vdot, F_W)


@calc_inverse_dynamics_alone.def_jvp
def _calc_inverse_dynamics_alone_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    tau = calc_inverse_dynamics_alone(*primals)
    return tau, fit_tangent(calc_torque_change_along(*primals, *tangents[:3]), tau)
