"""How velocities and accelerations of bodies change with q, column by column.

A change of velocity coordinate j's position, dq_j along q̇ = N v, moves everything outboard rigidly by S_j. What
moves along besides is, for every mobod i that j moves (Singh, Russell and Wensing 2022, with joints whose directions
S depend on their own position):

    dV_i / dq_j = S_j x V_i + B_j           dV_i / dv_j = S_j
    dA_i / dq_j = S_j x A_i + B_j x V_i + E_j     dA_i / dv_j = S_j x V_i + B_j + dS_j/dt

About T held fixed in the world, as everywhere. B and E belong to the velocity, not to the mobod.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.joints import JOINT_KINDS
from mbjax.kinematics import PositionKinematics, VelocityKinematics, joint_groups
from mbjax.kinematics.position_kinematics import gather, in_coordinate_order
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology, dot_with_mask, sum_velocities_over_path, take

from .spatial_cross import motion_cross


class OwnJointRates(NamedTuple):
    """How the directions of a joint change with its own positions, its inboard frame F held.

    `dS` holds dS_k/dq_l for every velocity k and the l-th velocity of its joint; `d_rate` how sum_k dS_k/dt v_k
    changes with q_j, dS/dt relative to F.
    """

    dS: list[Float[Array, "6 nv"]]
    d_rate: Float[Array, "6 nv"] | None


class MotionDerivatives(NamedTuple):
    """B and E of the module's equations, and what they were made of."""

    B: Float[Array, "6 nv"]
    E: Float[Array, "6 nv"]
    own: OwnJointRates | None
    A_WM_T: Float[Array, "6 nm"]


def calc_motion_derivatives(
    model: MultibodyModel,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
) -> MotionDerivatives:
    """B_j = V_m x S_j + P_j and E_j = A_m x S_j + V_m x B_j + Q_j + V_p x P_j + U_j.

    m is the mobod of j's joint, p its parent; P_j = sum_k dS_k/dq_j v_k and Q_j = sum_k dS_k/dq_j vdot_k over the
    velocities of the same joint, U_j the derivative of the part of sum_k dS_k/dt v_k that the joint makes itself.
    P, Q and U are zero for joints with one degree of freedom.
    """
    topology, S = model.topology, position.S_T
    owner = topology.velocity_mobods
    A_WM_T = sum_velocities_over_path(topology, ca.scale(S, vdot) + ca.scale(velocity.Sdot_T, v))
    V_m, A_m = take(velocity.V_WM_T, owner, 1), take(A_WM_T, owner, 1)
    B = motion_cross(V_m, S)
    own = calc_own_joint_rates(model, position, q, v)
    if own is None:
        return MotionDerivatives(B, motion_cross(A_m, S) + motion_cross(V_m, B), None, A_WM_T)
    P, Q = (sum_own_velocities(topology, own, x) for x in (v, vdot))
    B = B + P
    E = motion_cross(A_m, S) + motion_cross(V_m, B) + Q
    E = E + motion_cross(take(velocity.V_WM_T, topology.parents[owner], 1), P)
    return MotionDerivatives(B, E if own.d_rate is None else E + own.d_rate, own, A_WM_T)


def places_in_joints(topology: TreeTopology) -> np.ndarray:
    """(nv,) of each velocity, which one of its joint it is."""
    return np.arange(topology.num_velocities) - np.array(topology.mobod_v_starts)[topology.velocity_mobods]


def of_same_joint(topology: TreeTopology) -> np.ndarray:
    """(nv, nv) whether two velocities belong to one joint."""
    return topology.velocity_mobods[:, None] == topology.velocity_mobods


def select_columns(chosen: np.ndarray, x: Float[Array, "... nv"], worlds: int) -> Float[Array, "... nv"]:
    """x, with zeros in the columns that are not chosen."""
    return jnp.where(chosen.reshape(-1, *(1,) * worlds), x, 0.0)


def sum_own_velocities(topology: TreeTopology, own: OwnJointRates, v: Float[Array, " nv"]) -> Float[Array, "6 nv"]:
    """sum_k dS_k/dq_j v_k over the velocities k of j's joint."""
    places, same = places_in_joints(topology), of_same_joint(topology)
    total = jnp.zeros_like(own.dS[0])
    for place, dS in enumerate(own.dS):
        total = total + select_columns(places == place, dot_with_mask(ca.scale(dS, v), same, 1), v.ndim - 1)
    return total


def calc_own_joint_rates(
    model: MultibodyModel, position: PositionKinematics, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> OwnJointRates | None:
    """S_k = [h; s + r x h] of a hinge map (h, s) in W at Mo, r = p_TMo, moves with q_l by [dh; ds + r x dh + s_l x h].

    None where every joint has one degree of freedom: its direction is fixed in both bodies.
    """
    topology = model.topology
    most = max(topology.mobod_num_velocities)
    if most <= 1:
        return None
    owner, worlds = topology.velocity_mobods, v.ndim - 1
    starts, counts = (np.array(x)[owner] for x in (topology.mobod_v_starts, topology.mobod_num_velocities))
    r, h, s = take(position.p_TM_W, owner, 1), position.H_W[:3], position.H_W[3:]
    dH = calc_hinge_map_derivatives(model, position, q, v, most)
    dS = []
    for place in range(most):
        s_l = select_columns(place < counts, take(s, starts + np.minimum(place, counts - 1), 1), worlds)
        rotation, translation = jnp.zeros_like(h), ca.cross(s_l, h)
        if dH is not None:
            rotation, translation = (
                dH.by_q[place][:3],
                translation + dH.by_q[place][3:] + ca.cross(r, dH.by_q[place][:3]),
            )
        dS.append(ca.concatenate([rotation, translation], 0))
    if dH is None:
        return OwnJointRates(dS, None)
    w_FM, v_FM = (dot_with_mask(ca.scale(x, v), of_same_joint(topology), 1) for x in (h, s))
    dw, dv = (sum_own_velocities(topology, OwnJointRates([x[part] for x in dH.by_q], None), v) for part in HALVES)
    dw_rate = dH.d_rate[:3]
    dv_rate = dH.d_rate[3:] + ca.cross(r, dw_rate) + ca.cross(dv, w_FM) + ca.cross(v_FM, dw)
    return OwnJointRates(dS, ca.concatenate([dw_rate, dv_rate + ca.cross(s, dH.rate[:3])], 0))


HALVES = (slice(0, 3), slice(3, 6))


def unit_velocity(place: int, like: Float[Array, "nv *n"]) -> Float[Array, "nv *n"]:
    """1 at one place, else 0."""
    unit = np.arange(like.shape[0]) == place
    return jnp.broadcast_to(jnp.asarray(unit.reshape(-1, *(1,) * (like.ndim - 1)), like.dtype), like.shape)


class HingeMapDerivatives(NamedTuple):
    """Of H in F, expressed in W."""

    by_q: list[Float[Array, "6 nv"]]  # dH_k/dq_l, l-th velocity of k's joint
    rate: Float[Array, "6 nv"]  # dH/dt v of the joint each velocity belongs to
    d_rate: Float[Array, "6 nv"]  # its derivative with respect to q_j


def calc_hinge_map_derivatives(
    model: MultibodyModel, position: PositionKinematics, q: Float[Array, " nq"], v: Float[Array, " nv"], most: int
) -> HingeMapDerivatives | None:
    """None where every joint's hinge map is constant in F."""
    groups = joint_groups(model)
    by_q: list[list[Array]] = [[] for _ in range(most)]
    rates, d_rates, any_rate = [], [], False
    for group in groups:
        kind = JOINT_KINDS[group.kind]
        q_group, v_group = ca.with_equal_columns(gather(q, group.q_indices), gather(v, group.v_indices))
        zero = jnp.zeros((6, *v_group.shape), v.dtype)
        along = [unit_velocity(place, v_group) for place in range(v_group.shape[0])]

        def rate(q: Array, v_group: Array = v_group, kind: type = kind, zero: Array = zero) -> Array:
            dH = kind.hinge_map_rate(q, v_group)
            return zero[:, 0] if dH is None else ca.sum_products(jnp.unstack(dH, axis=1), jnp.unstack(v_group))

        dH = [kind.hinge_map_rate(q_group, e) for e in along]
        any_rate |= any(x is not None for x in dH)
        for place in range(most):
            x = dH[place] if place < len(dH) else None
            by_q[place].append(zero if x is None else x)
        moved = [jax.jvp(rate, (q_group,), (kind.velocity_to_qdot(q_group, e),))[1] for e in along]
        rates.append(jnp.stack([rate(q_group)] * len(along), 1))
        d_rates.append(jnp.stack(moved, 1))
    if not any_rate:
        return None
    R_WF, rows = take(position.R_WF, model.topology.velocity_mobods, 2), [g.v_indices for g in groups]

    def in_world(parts: list[Array]) -> Array:
        H_F = in_coordinate_order(parts, rows)
        return ca.concatenate([ca.matvec(R_WF, H_F[:3]), ca.matvec(R_WF, H_F[3:])], 0)

    return HingeMapDerivatives([in_world(x) for x in by_q], in_world(rates), in_world(d_rates))
