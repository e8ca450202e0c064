"""Derivatives of the bodies' velocities and accelerations by q and v, column by column.

A change of the position that belongs to velocity j, along q̇ = N v, moves everything outboard rigidly by S_j. For every
mobod i that j moves (Singh, Russell and Wensing 2022, here with joints whose S depend on their own position):

    dV_i / dq_j = S_j x V_i + B_j                  dV_i / dv_j = S_j
    dA_i / dq_j = S_j x A_i + B_j x V_i + E_j      dA_i / dv_j = S_j x V_i + B_j + dS_j/dt

about T held fixed in the world. B and E belong to the velocity, not to the mobod.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.kinematics import PositionKinematics, VelocityKinematics
from mbjax.model import MultibodyModel, all_joint_positions
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, over_directions, sum_velocities_over_path

from .hinge_maps import HingeMapDerivatives, calc_hinge_map_derivatives


class MotionDerivatives(NamedTuple):
    """B and E of the module's equations, and the accelerations A_WM_T that they belong to."""

    B: Float[Array, "6 nd"]
    E: Float[Array, "6 nd"]
    A_WM_T: Float[Array, "6 nm"]
    hinge: HingeMapDerivatives | None


def calc_motion_derivatives(
    model: MultibodyModel,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
) -> MotionDerivatives:
    """Computes B_j = V_m x S_j + P_j and E_j = A_m x S_j + V_m x B_j + Q_j + V_p x P_j + U_j.

    m is the mobod of j's joint, p its parent; P_j = sum_k dS_k/dq_j v_k and Q_j = sum_k dS_k/dq_j vdot_k over the
    velocities k of the same joint, U_j the derivative of that part of sum_k dS_k/dt v_k which is the joint's own.
    They are zero for joints with one degree of freedom, whose direction is fixed in both bodies.

    A joint's hinge map (h, s) in W at Mo, with p_TMo = r, gives S_k = [h; s + r x h]. It moves with q_j by
    [dh; ds + r x dh + s_j x h], and with time, its inboard frame held, by the same with v_FM in place of s_j.
    """
    topology, S = model.topology, position.S_T
    owner = topology.velocity_mobods
    q, v, vdot = all_joint_positions(model, q), over_directions(topology, v), over_directions(topology, vdot)
    A_WM_T = sum_velocities_over_path(topology, ca.scale(S, vdot) + ca.scale(velocity.Sdot_T, v))
    V_m, A_m = take(velocity.V_WM_T, owner, 1), take(A_WM_T, owner, 1)
    B, E = ca.motion_cross(V_m, S), ca.motion_cross(A_m, S)
    if max(topology.mobod_num_velocities) <= 1:
        return MotionDerivatives(B, E + ca.motion_cross(V_m, B), A_WM_T, None)

    r, s, same = take(position.p_TM_W, owner, 1), position.H_W[3:], of_same_joint(topology)
    driven = ca.concatenate([ca.scale(position.H_W, v), ca.scale(position.H_W[:3], vdot)], 0)
    V_FM, alpha_FM = jnp.split(dot_with_mask(driven, same, 1), [6])
    P_translation, Q_translation = ca.cross(s, V_FM[:3]), ca.cross(s, alpha_FM)
    P, Q = (ca.concatenate([jnp.zeros_like(x), x], 0) for x in (P_translation, Q_translation))
    hinge = calc_hinge_map_derivatives(model, position, q, v, vdot)
    if hinge is not None:
        P, Q = P + rates_about_T(r, hinge.of_velocity), Q + rates_about_T(r, hinge.of_acceleration)
        dw, dv = hinge.of_velocity[:3], hinge.of_velocity[3:]
        U_translation = ca.cross(dv, V_FM[:3]) + ca.cross(V_FM[3:], dw) + ca.cross(s, hinge.rate[:3])
        U = rates_about_T(r, hinge.of_rate)
        E = E + ca.concatenate([U[:3], U[3:] + U_translation], 0)
    B = B + P
    E = E + ca.motion_cross(V_m, B) + Q + ca.motion_cross(take(velocity.V_WM_T, topology.parents[owner], 1), P)
    return MotionDerivatives(B, E, A_WM_T, hinge)


def rates_about_T(r: Float[Array, "3 n"], X_Mo: Float[Array, "6 n"]) -> Float[Array, "6 n"]:
    """Shifts motions from Mo to T, with r = p_TMo."""
    return ca.concatenate([X_Mo[:3], X_Mo[3:] + ca.cross(r, X_Mo[:3])], 0)


def of_same_joint(topology: TreeTopology) -> np.ndarray:
    """(nd, nd) whether two directions belong to one joint."""
    return topology.velocity_mobods[:, None] == topology.velocity_mobods


def calc_forces_of_hinge_changes(
    topology: TreeTopology, position: PositionKinematics, motion: MotionDerivatives, F_T: Float[Array, "6 nd"]
) -> Float[Array, "nd nd"] | None:
    """Part of dS_k/dq_j · F_j from hinge maps that vary in F, with F_j the force that j's joint transmits; else None.

    The other part, where k and j are of one joint, is h_k · (f_j x H_j).
    """
    if motion.hinge is None:
        return None
    t, f = F_T[:3], F_T[3:]
    r = take(position.p_TM_W, topology.velocity_mobods, 1)
    F_Mo = ca.concatenate([t - ca.cross(r, f), f], 0)
    by_place = jnp.stack([ca.dot(dH, F_Mo) for dH in motion.hinge.by_place])
    places = np.arange(topology.num_directions) - np.array(topology.mobod_v_starts)[topology.velocity_mobods]
    products = ca.transpose(take(by_place, places, 0))
    same = of_same_joint(topology)
    return jnp.where(same.reshape(*same.shape, *(1 for _ in F_T.shape[2:])), products, 0.0)
