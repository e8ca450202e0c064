"""Newton–Euler by sums over the tree: one formula for inverse dynamics, bias term and mass-matrix products."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.derivative_rules import fit_tangent, with_zeros
from mbjax.forces import calc_gravity_on_mobods
from mbjax.kinematics import MobodInertia, PositionKinematics, VelocityKinematics, calc_position_kinematics
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.topology import (
    TreeTopology,
    over_directions,
    sum_directions,
    sum_moved_mobods,
    sum_velocities_over_path,
)

from ..derivatives.tangent import Change, calc_torque_tangent
from ..records.inertia_about_origin import calc_inertia_change
from ..records.tree_motion import TreeMotion, calc_tree_motion


@eqx.filter_custom_jvp
def calc_inverse_dynamics(
    motion: TreeMotion, vdot: Float[Array, " nv"] | None, F_applied_T: Float[Array, "6 nm"] | None
) -> Float[Array, " nv"]:
    """Torques tau = S · (sum of M A + bias - F_applied over the mobods each velocity moves); vdot None means zero.

    Derivatives are in closed form (`derivatives/tangent.py`). From the tangent of the position kinematics in `motion`
    they read only the displacement, the shift and the placement.
    """
    return newton_euler(motion, vdot, F_applied_T)


@calc_inverse_dynamics.def_jvp
def _calc_inverse_dynamics_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    motion, vdot, F_applied_T = primals
    dmotion, dvdot, dF_applied_T = tangents
    tau = calc_inverse_dynamics(motion, vdot, F_applied_T)
    dposition = dmotion.position
    shift = with_zeros(dposition.shift, motion.position.shift)
    dinertia_T = calc_inertia_change(motion.model, dmotion.model, motion.position, dposition.placement)
    change = Change(dmotion.q, dposition.displacement, dmotion.v, dvdot, dF_applied_T, shift, dinertia_T)
    change = calc_torque_tangent(motion, vdot, F_applied_T, change)
    return tau, fit_tangent(change, tau)


def newton_euler(
    motion: TreeMotion, vdot: Float[Array, " nv"] | None, F_applied_T: Float[Array, "6 nm"] | None
) -> Float[Array, " nv"]:
    """`calc_inverse_dynamics` without its derivative rule."""
    topology, position = motion.model.topology, motion.position
    driven = ca.scale(motion.velocity.Sdot_T, over_directions(topology, motion.v))
    if vdot is not None:
        driven = ca.scale(position.S_T, over_directions(topology, vdot)) + driven
    F_T = calc_net_forces(topology, position, motion.inertia_W, driven, motion.velocity, F_applied_T)
    return torques_of(topology, position, F_T)


def calc_motion_and_forces(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    F_applied_W: Float[Array, "6 nm"] | None,
    weights: bool,
) -> tuple[TreeMotion, Float[Array, "6 nm"] | None]:
    """Motion, and applied forces about T, from model and state: `F_applied_W` at each Mo, else gravity if `weights`."""
    position = calc_position_kinematics(model, q)
    motion = calc_tree_motion(model, position, q, v)
    if F_applied_W is not None:
        return motion, moved_to_mobods(position, F_applied_W, 1.0)
    return motion, calc_gravity_on_mobods(model, position) if weights else None


def moved_to_mobods(position: PositionKinematics, F: Float[Array, "6 nm"], sign: float) -> Float[Array, "6 nm"]:
    """Moves forces on mobods from the tree's origin T to each Mo with a sign of -1, from each Mo to T with 1."""
    return ca.concatenate([F[:3] + sign * ca.cross(position.p_TM_W, F[3:]), F[3:]], 0)


def calc_mass_matrix_product(
    topology: TreeTopology, position: PositionKinematics, inertia_W: MobodInertia, x: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """M(q) x without reflected inertia: inverse dynamics of the tree at rest."""
    driven = ca.scale(position.S_T, over_directions(topology, x))
    return torques_of(topology, position, calc_net_forces(topology, position, inertia_W, driven, None, None))


def torques_of(topology: TreeTopology, position: PositionKinematics, F_T: Float[Array, "6 nm"]) -> Float[Array, " nv"]:
    """Torques S · (sum of F_T over the mobods that each velocity moves)."""
    return sum_directions(topology, ca.dot(position.S_T, sum_moved_mobods(topology, F_T)))


def calc_net_forces(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    driven: Float[Array, "6 nd"],
    velocity: VelocityKinematics | None,
    F_applied_T: Float[Array, "6 nm"] | None,
) -> Float[Array, "6 nm"]:
    """Spatial force that each mobod's motion takes less `F_applied_T`, about T in W; at rest where `velocity` is None.

    `driven` are the accelerations of the directions, S vdot + dS/dt v. Per mobod about its origin Mo, with first moment
    s = m p_MoMcm:
        f = m a_Mo + alpha x s + w x (w x s)
        t = I alpha + w x I w + s x a_Mo                    (Featherstone 2008, eq. 2.72; Jain 2010, ch. 2)
    It is written component by component: XLA's CPU backend vectorizes a kernel that ends in a stack, but none with
    stacks inside.
    """
    A_T, r = ca.unstack_many(sum_velocities_over_path(topology, driven)), jnp.unstack(position.p_TM_W)
    alpha, s, I_rows = A_T[:3], jnp.unstack(inertia_W.moment), [jnp.unstack(row) for row in inertia_W.rotational]
    a_Mo = wo.add(A_T[3:], wo.cross(alpha, r))
    if velocity is not None:
        w = jnp.unstack(velocity.V_WM_T[:3])
        a_Mo = wo.add(a_Mo, wo.cross(w, jnp.unstack(velocity.v_WMo)))
    f = wo.add(wo.scale(a_Mo, inertia_W.mass), wo.cross(alpha, s))
    t = wo.add([wo.dot(row, alpha) for row in I_rows], wo.cross(s, a_Mo))
    if velocity is not None:
        f = wo.add(f, wo.cross(w, wo.cross(w, s)))
        t = wo.add(t, wo.cross(w, [wo.dot(row, w) for row in I_rows]))
    F_T = [*wo.add(t, wo.cross(r, f)), *f]
    if F_applied_T is not None:
        F_T = wo.subtract(F_T, jnp.unstack(F_applied_T))
    return jnp.stack(jnp.broadcast_arrays(*F_T))
