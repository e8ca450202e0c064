"""Rates at which the directions of joints turn and move with the mobods that carry them."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel, all_joint_positions
from mbjax.spatial import component_algebra as ca
from mbjax.topology import TreeTopology

from .joint_groups import gather, in_coordinate_order, joint_groups
from .tree_poses import JointShift, PositionKinematics


def velocities_of_origins(
    position: PositionKinematics, V_WM_T: Float[Array, "6 nm"]
) -> tuple[Float[Array, "3 nm"], Float[Array, "3 nm"]]:
    """Angular velocities of mobods, and velocities of their Mo, from spatial velocities about T."""
    w_WM, v = jnp.split(V_WM_T, 2)
    return w_WM, v + ca.cross(w_WM, position.p_TM_W)


def motions_within_tree(
    topology: TreeTopology, position: PositionKinematics, V_WM_T: Float[Array, "6 nm"]
) -> tuple[Float[Array, "3 nm"], Float[Array, "3 nm"]]:
    """Angular velocities of mobods, and rates of p_TM_W, where T moves with its tree's root."""
    w_WM, v_WMo = velocities_of_origins(position, V_WM_T)
    return w_WM, v_WMo - take(v_WMo, topology.mobod_roots, 1)


def calc_hinge_rates(
    model: MultibodyModel,
    position: PositionKinematics,
    q: Float[Array, " njq"],
    v: Float[Array, " nd"],
    w_WM: Float[Array, "3 nm"],
) -> Float[Array, "6 nd"]:
    """Rates dH_W/dt of hinge maps at the directions' v and the mobods' w_WM that follow, linear in the two."""
    owner = model.topology.velocity_mobods
    w_WF = take(w_WM, model.topology.parents[owner], 1)
    rate = ca.concatenate([ca.cross(w_WF, position.H_W[:3]), ca.cross(w_WF, position.H_W[3:])], 0)
    rate_in_F = calc_hinge_map_rate(model, position, q, v)
    return rate if rate_in_F is None else rate + rate_in_F


def calc_hinge_changes(
    model: MultibodyModel,
    position: PositionKinematics,
    q: Float[Array, " nq"],
    along: Float[Array, " nd"],
    w_WM: Float[Array, "3 nm"],
    shift: JointShift | None,
) -> Float[Array, "6 nd"]:
    """Changes dH_W of hinge maps as joints move `along`, frames shift and mobods turn by w_WM, linear in all three."""
    dH = calc_hinge_rates(model, position, all_joint_positions(model, q), along, w_WM)
    if shift is None:
        return dH
    w = take(shift.inboard[:3], model.topology.velocity_mobods, 1)
    turned = [ca.cross(w, part) for part in (position.H_W[:3], position.H_W[3:])]
    return dH + ca.concatenate(turned, 0) + shift.hinge


def calc_direction_rates(
    topology: TreeTopology,
    position: PositionKinematics,
    hinge_rates: Float[Array, "6 nd"],
    v_WMo: Float[Array, "3 nm"],
) -> Float[Array, "6 nd"]:
    """Rates dS_T/dt, T held fixed, from dH_W/dt and the velocities of Mo that follow from the same v."""
    owner = topology.velocity_mobods
    v_point, r = take(v_WMo, owner, 1), take(position.p_TM_W, owner, 1)
    rotation, translation = hinge_rates[:3], hinge_rates[3:]
    rate_about_T = translation + ca.cross(v_point, position.H_W[:3]) + ca.cross(r, rotation)
    return ca.concatenate([rotation, rate_about_T], 0)


def calc_hinge_map_rate(
    model: MultibodyModel, position: PositionKinematics, q: Float[Array, " njq"], v: Float[Array, " nd"]
) -> Float[Array, "6 nd"] | None:
    """Rates of hinge maps in F, expressed in W; None where every map is constant, as are those of joints that mimic."""
    H_F = calc_hinge_map_rate_in_F(model, q, v)
    if H_F is None:
        return None
    R_WF = take(position.R_WF, model.topology.velocity_mobods, 2)
    return ca.concatenate([ca.matvec(R_WF, H_F[:3]), ca.matvec(R_WF, H_F[3:])], 0)


def calc_hinge_map_rate_in_F(
    model: MultibodyModel, q: Float[Array, " njq"], v: Float[Array, " nd"]
) -> Float[Array, "6 nd"] | None:
    """Rates of hinge maps in F, expressed in F; None where every map is constant."""
    groups = joint_groups(model)
    asked = [ca.with_equal_columns(gather(q, g.q_indices), gather(v, g.v_indices)) for g in groups]
    rates = [JOINT_KINDS[g.kind].hinge_map_rate(*x) for g, x in zip(groups, asked, strict=True)]
    if all(rate is None for rate in rates):
        return None
    parts = [
        jnp.zeros((6, len(g.v_indices), len(g.mobods), *v.shape[1:]), v.dtype) if rate is None else rate
        for g, rate in zip(groups, rates, strict=True)
    ]
    return in_coordinate_order(parts, [g.v_indices for g in groups])
