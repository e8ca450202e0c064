"""Newton–Euler over the tree: the one formula behind inverse dynamics, bias term and mass-matrix products."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.forces import calc_gravity_on_mobods
from mbjax.kinematics import MobodInertia, PositionKinematics, VelocityKinematics, calc_position_kinematics
from mbjax.model import MultibodyModel
from mbjax.one_kernel import on_cpu
from mbjax.spatial import component_algebra as ca
from mbjax.tangents import fit_tangent, with_zeros
from mbjax.topology import (
    TreeTopology,
    over_directions,
    sum_directions,
    sum_moved_mobods,
    sum_velocities_over_path,
)

from .inertia_about_origin import calc_inertia_change
from .recursive_newton_euler import calc_motion, calc_torques
from .torque_change import Change, calc_torque_change
from .tree_motion import TreeMotion, calc_tree_motion


@eqx.filter_custom_jvp
def calc_inverse_dynamics(
    motion: TreeMotion,
    vdot: Float[Array, " nv"] | None,
    F_applied_T: Float[Array, "6 nm"] | None,
    by_recursion: bool = False,
    only_weights: bool = False,
) -> Float[Array, " nv"]:
    """tau = S · (sum over the mobods each velocity moves of M A + bias - F_applied); vdot None means zero.

    Derivatives are in closed form (`torque_change`): of those of the kinematics in `motion` only the displacement, the
    shift and the placement are asked for. `by_recursion` is faster on a CPU where nothing else reads `motion`, and
    still faster where `F_applied_T` are `only_weights` of all bodies that feel gravity.
    """
    topology = motion.model.topology
    if by_recursion and vdot is not None and topology.num_velocities and not topology.followers:
        return newton_euler_by_recursion(motion, vdot, F_applied_T, only_weights)
    return newton_euler(motion, vdot, F_applied_T)


@calc_inverse_dynamics.def_jvp
def _calc_inverse_dynamics_jvp(primals: tuple, tangents: tuple) -> tuple[Array, Array]:
    motion, vdot, F_applied_T, *flags = primals
    dmotion, dvdot, dF_applied_T, *_ = tangents
    tau = calc_inverse_dynamics(motion, vdot, F_applied_T, *flags)
    dposition = dmotion.position
    shift = with_zeros(dposition.shift, motion.position.shift)
    dinertia_T = calc_inertia_change(motion.model, dmotion.model, motion.position, dposition.placement)
    change = Change(dmotion.q, dposition.displacement, dmotion.v, dvdot, dF_applied_T, shift, dinertia_T)
    change = calc_torque_change(motion, vdot, F_applied_T, change)
    return tau, fit_tangent(change, tau)


def newton_euler(
    motion: TreeMotion, vdot: Float[Array, " nv"] | None, F_applied_T: Float[Array, "6 nm"] | None
) -> Float[Array, " nv"]:
    """`calc_inverse_dynamics` without its rule."""
    topology, position = motion.model.topology, motion.position
    driven = ca.scale(motion.velocity.Sdot_T, over_directions(topology, motion.v))
    if vdot is not None:
        driven = ca.scale(position.S_T, over_directions(topology, vdot)) + driven
    F_T = calc_net_forces(topology, position, motion.inertia_W, driven, motion.velocity, F_applied_T)
    return torques_of(topology, position, F_T)


def newton_euler_by_recursion(
    motion: TreeMotion, vdot: Float[Array, " nv"], F_applied_T: Float[Array, "6 nm"] | None, only_weights: bool
) -> Float[Array, " nv"]:
    """The same by the recursions outward and inward on a CPU, and from model and state alone."""
    weights, F = only_weights and F_applied_T is not None, None
    if F_applied_T is not None and not weights:
        F = moved_to_mobods(motion.position, F_applied_T, -1.0)

    def by_recursion(model: MultibodyModel, q: Array, v: Array, vdot: Array, F: Array | None) -> Array:
        return calc_torques(model.topology, calc_motion(model, q, v, vdot, weights, F))

    def by_sums(model: MultibodyModel, q: Array, v: Array, vdot: Array, F: Array | None) -> Array:
        position = calc_position_kinematics(model, q)
        F_T = calc_gravity_on_mobods(model, position) if weights else None
        F_T = F_T if F is None else moved_to_mobods(position, F, 1.0)
        return newton_euler(calc_tree_motion(model, position, q, v), vdot, F_T)

    return on_cpu(by_recursion, by_sums, motion.model, motion.q, motion.v, vdot, F)


def moved_to_mobods(position: PositionKinematics, F: Float[Array, "6 nm"], sign: float) -> Float[Array, "6 nm"]:
    """Forces about the trees' origins T as forces at each Mo; the other way with a sign of 1."""
    return ca.concatenate([F[:3] + sign * ca.cross(position.p_TM_W, F[3:]), F[3:]], 0)


def calc_mass_matrix_product(
    topology: TreeTopology, position: PositionKinematics, inertia_W: MobodInertia, x: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """M(q) x without reflected inertia: inverse dynamics of the tree at rest."""
    driven = ca.scale(position.S_T, over_directions(topology, x))
    return torques_of(topology, position, calc_net_forces(topology, position, inertia_W, driven, None, None))


def torques_of(topology: TreeTopology, position: PositionKinematics, F_T: Float[Array, "6 nm"]) -> Float[Array, " nv"]:
    """S · sum over the mobods each velocity moves."""
    return sum_directions(topology, ca.dot(position.S_T, sum_moved_mobods(topology, F_T)))


def calc_net_forces(
    topology: TreeTopology,
    position: PositionKinematics,
    inertia_W: MobodInertia,
    driven: Float[Array, "6 nd"],
    velocity: VelocityKinematics | None,
    F_applied_T: Float[Array, "6 nm"] | None,
) -> Float[Array, "6 nm"]:
    """The spatial force each mobod's motion takes beside F_applied_T, about T in W; without `velocity` at rest.

    `driven` are the accelerations of the directions, S vdot + dS/dt v. Per mobod about its origin Mo, with first moment
    s = m p_MoMcm:
        f = m a_Mo + alpha x s + w x (w x s)
        t = I alpha + w x I w + s x a_Mo                    (Featherstone 2008, eq. 2.72; Jain 2010, ch. 2)
    Component by component: XLA's CPU backend vectorizes a kernel that ends in a stack, and none with stacks inside.
    """
    A_T, r = ca.unstack_many(sum_velocities_over_path(topology, driven)), jnp.unstack(position.p_TM_W)
    alpha, s, I_rows = A_T[:3], jnp.unstack(inertia_W.moment), [jnp.unstack(row) for row in inertia_W.rotational]
    a_Mo = plus(A_T[3:], ca.cross_components(alpha, r))
    if velocity is not None:
        w = jnp.unstack(velocity.V_WM_T[:3])
        a_Mo = plus(a_Mo, ca.cross_components(w, jnp.unstack(velocity.v_WMo)))
    f = plus([inertia_W.mass * a for a in a_Mo], ca.cross_components(alpha, s))
    t = plus([ca.sum_products(row, alpha) for row in I_rows], ca.cross_components(s, a_Mo))
    if velocity is not None:
        f = plus(f, ca.cross_components(w, ca.cross_components(w, s)))
        t = plus(t, ca.cross_components(w, [ca.sum_products(row, w) for row in I_rows]))
    F_T = [*plus(t, ca.cross_components(r, f)), *f]
    if F_applied_T is not None:
        F_T = [F - applied for F, applied in zip(F_T, jnp.unstack(F_applied_T), strict=True)]
    return jnp.stack(jnp.broadcast_arrays(*F_T))


def plus(a: list[Array], b: list[Array]) -> list[Array]:
    """The sum of vectors of components already apart."""
    return [x + y for x, y in zip(a, b, strict=True)]
