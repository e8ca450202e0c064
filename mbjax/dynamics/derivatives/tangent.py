"""The tangent of inverse dynamics along one change of q, v, vdot, the applied forces and the model.

It is linear in the change and O(n), and in reverse mode gives the gradient; `jacobian.py` finds all columns instead.
Where dq is in terms of velocities and the model shifts the frames of joint j, F by f_j with its parent body held and M
by m_j with F held, mobod i moves rigidly by phi_i = sum S_j dq_j + f_j + m_j over its path, and

    dtau_k = dS_k · F_k + S_k · sum_i (phi_i x* F_i + I_i eps_i + [K_i b_i; 2 b_i x hf_i] + dF_i)
    b_i    = sum_j of the rotations of B_j dq_j + S_j dv_j
             + V_p x f_j + V_j x m_j + s_j v_j
    eps_i  = sum_j E_j dq_j + (B_j + dS_j/dt) dv_j + S_j dvdot_j
             + A_p x f_j + V_p x (V_p x f_j) + A_j x m_j + V_j x (V_j x m_j) + s_j vdot_j + (V_p + V_j) x s_j v_j

about T held fixed in the world; B and E as in `motion.py`, K and hf as in `composite_terms.py`, p the parent of
j, F_i what the motion of i takes and F_k what k's joint transmits. dS_k is the rate of S_k along the whole change, s_j
that with F held, which only the model changes; dF_i is what a change of i's inertia takes, less that of the applied
force. b and eps are the first and second rates of phi, beside what belongs to dv and dvdot. Joints whose axis or pitch
may change have one direction, fixed in F and in M.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.kinematics import (
    JointShift,
    MobodInertia,
    calc_direction_rates,
    calc_hinge_changes,
    qdot_to_velocity,
    velocities_of_origins,
)
from mbjax.spatial import component_algebra as ca
from mbjax.topology import (
    over_directions,
    sum_directions,
    sum_moved_mobods,
    sum_over_path,
    sum_velocities_over_path,
)

from ..records.inertia_about_origin import shift_inertia_to_T
from ..records.tree_motion import TreeMotion
from .composite_terms import calc_momentum_and_force, calc_turning_of_momentum, times_inertia_at_T
from .motion import calc_motion_derivatives


class Change(NamedTuple):
    """Tangents, None where an input is fixed. T moves: the tangent of `F_applied_T` is that of its numbers."""

    q: Float[Array, " nq"] | None
    displacement: Float[Array, "6 nm"] | None  # phi, which follows from q and shift
    v: Float[Array, " nv"] | None
    vdot: Float[Array, " nv"] | None
    F_applied_T: Float[Array, "6 nm"] | None
    shift: JointShift | None  # of the model
    inertia_T: MobodInertia | None  # of the model, mobods held


def calc_torque_tangent(
    motion: TreeMotion, vdot: Float[Array, " nv"] | None, F_applied_T: Float[Array, "6 nm"] | None, change: Change
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
    if change.shift is not None:
        rates = calc_rates_of_shift(motion, vdot, of_state.A_WM_T, change.shift)
        b, eps = (x if total is None else total + x for total, x in zip((b, eps), rates, strict=True))

    dF_T, dS = [], None
    if change.F_applied_T is not None:
        dF_T.append(-change.F_applied_T)
    if change.inertia_T is not None:
        dF_T.append(calc_momentum_and_force(change.inertia_T, velocity.V_WM_T, of_state.A_WM_T)[1])
    if b is not None:
        turned = ca.matvec(calc_turning_of_momentum(inertia_T, velocity.V_WM_T), b)
        dF_T.append(ca.concatenate([turned, 2.0 * ca.cross(b, momentum[3:])], 0))
    if eps is not None:
        dF_T.append(times_inertia_at_T(inertia_T, eps))
    phi = change.displacement
    if phi is not None and (dq is not None or change.shift is not None):
        w, v_WMo = velocities_of_origins(position, phi)
        dF_T.append(ca.force_cross(phi, F_T))
        along = jnp.zeros_like(position.H_W[0]) if dq is None else dq
        dH = calc_hinge_changes(model, position, motion.q, along, w, change.shift)
        dS = calc_direction_rates(topology, position, dH, v_WMo)
        if F_applied_T is not None:
            moment = ca.cross(F_applied_T[3:], take(v_WMo, topology.mobod_roots, 1))  # T itself moves
            dF_T.append(ca.concatenate([moment, jnp.zeros_like(moment)], 0))
    dtau = ca.dot(S, sum_moved_mobods(topology, sum(dF_T[1:], dF_T[0])))
    if dS is not None:
        transmitted = sum_moved_mobods(topology, F_T if F_applied_T is None else F_T - F_applied_T)
        dtau = dtau + ca.dot(dS, transmitted)
    return sum_directions(topology, dtau)


def calc_rates_of_shift(
    motion: TreeMotion, vdot: Float[Array, " nv"], A_WM_T: Float[Array, "6 nm"], shift: JointShift
) -> tuple[Float[Array, "3 nm"], Float[Array, "6 nm"]]:
    """Terms that a shift of joints adds to b and eps."""
    topology, position, V = motion.model.topology, motion.position, motion.velocity.V_WM_T
    V_p, A_p = take(V, topology.parents, 1), take(A_WM_T, topology.parents, 1)
    b, eps = [], []
    for V_of, A_of, moved in ((V_p, A_p, shift.inboard), (V, A_WM_T, shift.outboard)):
        rate = ca.motion_cross(V_of, moved)
        b.append(rate[:3])
        eps.append(ca.motion_cross(A_of, moved) + ca.motion_cross(V_of, rate))
    _, v_of_M = velocities_of_origins(position, shift.outboard)
    s = calc_direction_rates(topology, position, shift.hinge, v_of_M)
    driven = ca.scale(s, over_directions(topology, motion.v))
    carried = ca.motion_cross(take(V_p + V, topology.velocity_mobods, 1), driven)
    along = ca.concatenate([driven[:3], ca.scale(s, over_directions(topology, vdot)) + carried], 0)
    of_frames = ca.concatenate([b[0] + b[1], eps[0] + eps[1]], 0)
    b, eps = jnp.split(sum_over_path(topology, of_frames) + sum_velocities_over_path(topology, along), [3])
    return b, eps


def products(terms: list[tuple[Array, Array | None]]) -> Float[Array, "k nd"] | None:
    """Sum of directions times numbers, skipping numbers that are None; None where all are."""
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
