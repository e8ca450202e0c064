"""How the torques of inverse dynamics change along one change of q, v, vdot and the applied forces.

What `inverse_dynamics_columns` tells column by column, of one change: linear in it and O(n), so in reverse mode the
gradient. With dq in the terms of velocities, mobod i moves rigidly by phi_i = sum S_j dq_j over its path, and

    dtau_k = dS_k · F_k + S_k · sum_i (phi_i x* F_i + I_i eps_i + [K_i b_i; 2 b_i x hf_i] - dF_applied_i)
    b_i    = sum_j of the rotations of B_j dq_j + S_j dv_j
    eps_i  = sum_j E_j dq_j + (B_j + dS_j/dt) dv_j + S_j dvdot_j

about T held fixed in the world; B and E as in `motion_derivatives`, K and hf as in `composite_terms`, F_i what the
motion of i takes and F_k what k's joint transmits. dS_k is the rate of S_k at the velocities dq.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.kinematics import calc_direction_rates, calc_hinge_rates, qdot_to_velocity, velocities_of_origins
from mbjax.model import all_joint_positions
from mbjax.spatial import component_algebra as ca
from mbjax.topology import over_directions, sum_directions, sum_moved_mobods, sum_velocities_over_path, take

from .composite_terms import calc_momentum_and_force, calc_turning_of_momentum, times_inertia
from .inertia_about_origin import shift_inertia_to_T
from .motion_derivatives import calc_motion_derivatives
from .spatial_cross import force_cross
from .tree_motion import TreeMotion


class StateChange(NamedTuple):
    """What changes; None is known not to. Forces are about T, which moves: theirs is the change of the numbers."""

    q: Float[Array, " nq"] | None
    displacement: Float[Array, "6 nm"] | None  # phi, of the same q
    v: Float[Array, " nv"] | None
    vdot: Float[Array, " nv"] | None
    F_applied_T: Float[Array, "6 nm"] | None


def calc_torque_change(
    motion: TreeMotion, vdot: Float[Array, " nv"] | None, F_applied_T: Float[Array, "6 nm"] | None, change: StateChange
) -> Float[Array, " nv"] | None:
    """dtau, or None where nothing changes. `vdot` and `F_applied_T` as in `calc_inverse_dynamics`."""
    if all(x is None for x in change):
        return None
    model, position, velocity = motion.model, motion.position, motion.velocity
    topology, S = model.topology, position.S_T
    vdot = jnp.zeros_like(motion.v) if vdot is None else vdot
    of_state = calc_motion_derivatives(model, position, velocity, motion.q, motion.v, vdot)
    inertia_T = shift_inertia_to_T(position, motion.inertia_W)
    momentum, F_T = calc_momentum_and_force(inertia_T, velocity.V_WM_T, of_state.A_WM_T)

    dq = None if change.q is None else over_directions(topology, qdot_to_velocity(model, motion.q, change.q))
    dv, dvdot = (None if x is None else over_directions(topology, x) for x in (change.v, change.vdot))
    b, eps = sum_over_paths(
        motion,
        [
            products([(of_state.B[:3], dq), (S[:3], dv)]),
            products([(of_state.E, dq), (of_state.B + velocity.Sdot_T, dv), (S, dvdot)]),
        ],
    )

    dF_T, dS = [], None
    if change.F_applied_T is not None:
        dF_T.append(-change.F_applied_T)
    if b is not None:
        turned = ca.matvec(calc_turning_of_momentum(inertia_T, velocity.V_WM_T), b)
        dF_T.append(ca.concatenate([turned, 2.0 * ca.cross(b, momentum[3:])], 0))
    if eps is not None:
        dF_T.append(times_inertia(inertia_T, eps))
    phi = change.displacement
    if phi is not None and dq is not None:
        w, v_WMo = velocities_of_origins(position, phi)
        dF_T.append(force_cross(phi, F_T))
        dH = calc_hinge_rates(model, position, all_joint_positions(model, motion.q), dq, w)
        dS = calc_direction_rates(topology, position, dH, v_WMo)
        if F_applied_T is not None:
            moment = ca.cross(F_applied_T[3:], take(v_WMo, topology.mobod_roots, 1))  # T itself moves
            dF_T.append(ca.concatenate([moment, jnp.zeros_like(moment)], 0))
    dtau = ca.dot(S, sum_moved_mobods(topology, sum(dF_T[1:], dF_T[0])))
    if dS is not None:
        transmitted = sum_moved_mobods(topology, F_T if F_applied_T is None else F_T - F_applied_T)
        dtau = dtau + ca.dot(dS, transmitted)
    return sum_directions(topology, dtau)


def products(terms: list[tuple[Array, Array | None]]) -> Float[Array, "k nd"] | None:
    """The sum of directions times numbers, without those that are None."""
    parts = [ca.scale(direction, x) for direction, x in terms if x is not None]
    return sum(parts[1:], parts[0]) if parts else None


def sum_over_paths(motion: TreeMotion, parts: list[Array | None]) -> list[Array | None]:
    """Each part summed over the paths of the mobods, in one sum of all their rows."""
    rows = [x for x in parts if x is not None]
    if not rows:
        return parts
    summed = sum_velocities_over_path(motion.model.topology, ca.concatenate(rows, 0))
    ends = [sum(x.shape[0] for x in rows[: k + 1]) for k in range(len(rows) - 1)]
    found = iter(jnp.split(summed, ends))
    return [None if x is None else next(found) for x in parts]
