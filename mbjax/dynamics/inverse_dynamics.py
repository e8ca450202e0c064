"""Inverse dynamics: tau from v̇, by the recursive Newton-Euler algorithm, and its derivative rule.

    calc_inverse_dynamics_from_state    model, q, v, v̇         where nothing else reads the kinematics
    calc_inverse_dynamics_from_motion   kinematics computed     where forces on bodies act
    calc_inverse_dynamics               kinematics computed     sums on any device, which other equations differentiate
The first two run `recursive_newton_euler_algorithm`: in kernels newton_euler/recursion.py, elsewhere
newton_euler/sums.py.
Derivatives are in closed form: derivatives/rule.py.
"""

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.execution import in_kernels
from mbjax.execution.derivative_rules import fit_tangent
from mbjax.model import MultibodyModel

from .derivatives.rule import torque_derivative_rule
from .newton_euler.recursion import calc_motion, calc_torques
from .newton_euler.sums import calc_motion_and_forces, moved_to_mobods, newton_euler
from .records.tree_motion import TreeMotion


@eqx.filter_custom_jvp
def calc_inverse_dynamics_from_motion(
    motion: TreeMotion, vdot: Float[Array, " nv"], F_applied_T: Float[Array, "6 nm"] | None, only_weights: bool
) -> Float[Array, " nv"]:
    """tau from the motion; `only_weights` says that `F_applied_T` are the weights of all bodies and nothing else."""
    topology = motion.model.topology
    if topology.followers or topology.num_velocities == 0:
        return newton_euler(motion, vdot, F_applied_T)
    weights, F_W = only_weights and F_applied_T is not None, None
    if F_applied_T is not None and not weights:
        F_W = moved_to_mobods(motion.position, F_applied_T, -1.0)
    return recursive_newton_euler_algorithm(motion.model, motion.q, motion.v, vdot, F_W, weights)


@calc_inverse_dynamics_from_motion.def_jvp
def _calc_inverse_dynamics_from_motion_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    tau = calc_inverse_dynamics_from_motion(*primals)
    return tau, fit_tangent(torque_derivative_rule(*primals, *tangents[:3]), tau)


@eqx.filter_custom_jvp
def calc_inverse_dynamics_from_state(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
    weights: bool,
) -> Float[Array, " nv"]:
    """tau from model and state, where no forces act on bodies except, with `weights`, gravity.

    Only derivatives compute the kinematics records.
    """
    if model.topology.followers or model.topology.num_velocities == 0:
        return inverse_dynamics_through_motion(model, q, v, vdot, weights)
    return recursive_newton_euler_algorithm(model, q, v, vdot, None, weights)


@calc_inverse_dynamics_from_state.def_jvp
def _calc_inverse_dynamics_from_state_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    tau, change = eqx.filter_jvp(inverse_dynamics_through_motion, primals, tangents)
    return tau, fit_tangent(change, tau)


def inverse_dynamics_through_motion(
    model: MultibodyModel, q: Array, v: Array, vdot: Array, weights: bool
) -> Float[Array, " nv"]:
    """tau from model and state: computes the motion, then calls `calc_inverse_dynamics_from_motion`."""
    motion, F_T = calc_motion_and_forces(model, q, v, None, weights)
    return calc_inverse_dynamics_from_motion(motion, vdot, F_T, True)


def recursive_newton_euler_algorithm(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"] | None,
    F_applied_W: Float[Array, "6 nm"] | None,
    weights: bool,
) -> Float[Array, " nv"]:
    """tau from model and state: by recursion in kernels, by sums elsewhere. Applied forces act at each mobod's Mo."""

    def by_recursion(model: MultibodyModel, q: Array, v: Array, vdot: Array | None, F_W: Array | None) -> Array:
        return calc_torques(model.topology, calc_motion(model, q, v, vdot, weights, F_W))

    def by_sums(model: MultibodyModel, q: Array, v: Array, vdot: Array | None, F_W: Array | None) -> Array:
        motion, F_T = calc_motion_and_forces(model, q, v, F_W, weights)
        return newton_euler(motion, vdot, F_T)

    return in_kernels(by_recursion, by_sums, model, q, v, vdot, F_applied_W)
