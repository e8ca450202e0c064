"""Poses of mobilized bodies at q and the directions their joints move in, outward along the tree."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel, all_joint_positions, direction_ratios
from mbjax.spatial import component_algebra as ca
from mbjax.topology import compose_outward, sum_over_path

from .body_placement import calc_body_placement, identity_poses
from .joint_groups import gather, in_coordinate_order, in_mobod_order, joint_groups
from .placement_records import BodyPlacement


class JointShift(eqx.Module):
    """Zeros, whose tangents say how a change of the model moves the frames of joints, with q and T held fixed."""

    inboard: Float[Array, "6 nm"]  # motion of the inboard frame F, parent body held, about T
    outboard: Float[Array, "6 nm"]  # motion of the outboard frame M, F held, about T
    hinge: Float[Array, "6 nd"]  # change of the hinge map in W at Mo, F held


class PositionKinematics(eqx.Module):
    """All kinematics that depend on q alone. Mobods (world first) or directions are on the last axis.

    The direction of a joint that mimics another is scaled by its multiplier: along it the child moves as the leader's
    coordinate does.

    T is the origin of the tree a mobod belongs to, its root's Mo. Spatial vectors "about T" are taken at the point of
    the world where T is now, so they add up along paths without shifts, and their numbers stay of the robot's size
    however far from the world's origin it stands.
    """

    placement: BodyPlacement
    R_WM: Float[Array, "3 3 nm"]
    p_WM: Float[Array, "3 nm"]
    R_WF: Float[Array, "3 3 nm"]  # inboard frame F
    p_PM_W: Float[Array, "3 nm"]  # from the parent's Mo to Mo
    p_TM_W: Float[Array, "3 nm"]
    H_W: Float[Array, "6 nd"]  # hinge map: V_FM_W = H v, at Mo
    S_T: Float[Array, "6 nd"]  # hinge map about T
    displacement: Float[Array, "6 nm"]  # zero; its tangent is how mobods move with q and the model, T held fixed
    shift: JointShift


def calc_tree_poses(model: MultibodyModel, q: Float[Array, " nq"]) -> PositionKinematics:
    """Computes X_WM = X_WP X_PF X_FM(q) outward, and the directions S of joints."""
    topology = model.topology
    placement = calc_body_placement(model)
    R_FM, p_FM, H_F = calc_joint_kinematics(model, placement, q)
    R_PM = ca.matmul(placement.R_PF, R_FM)
    p_PM_P = placement.p_PF + ca.matvec(placement.R_PF, p_FM)
    R_WM = compose_outward(topology, R_PM)
    R_WP = take(R_WM, topology.parents, 2)
    p_PM_W = ca.matvec(R_WP, p_PM_P)
    within_tree = topology.within_tree.reshape(-1, *(1 for _ in p_PM_W.shape[2:]))
    p_WM, p_TM_W = jnp.split(
        sum_over_path(topology, ca.concatenate([p_PM_W, jnp.where(within_tree, p_PM_W, 0.0)], 0)), 2
    )
    R_WF = ca.matmul(R_WP, placement.R_PF)

    owner = topology.velocity_mobods
    R_of_velocity, r = take(R_WF, owner, 2), take(p_TM_W, owner, 1)
    h_rotation, h_translation = ca.matvec(R_of_velocity, H_F[:3]), ca.matvec(R_of_velocity, H_F[3:])
    H_W = ca.concatenate([h_rotation, h_translation], 0)
    S_T = ca.concatenate([h_rotation, h_translation + ca.cross(r, h_rotation)], 0)
    still = jnp.zeros((6, *p_WM.shape[1:]), p_WM.dtype)
    shift = JointShift(still, still, jnp.zeros_like(S_T))
    return PositionKinematics(placement, R_WM, p_WM, R_WF, p_PM_W, p_TM_W, H_W, S_T, still, shift)


def calc_body_poses(
    model: MultibodyModel, position: PositionKinematics
) -> tuple[Float[Array, "3 3 nb"], Float[Array, "3 nb"]]:
    """Poses X_WB = X_WM X_MB of all bodies."""
    mobods, placement = model.topology.body_mobods, position.placement
    R_WM = take(position.R_WM, mobods, 2)
    return ca.matmul(R_WM, placement.R_MB), take(position.p_WM, mobods, 1) + ca.matvec(R_WM, placement.p_MB)


def calc_joint_kinematics(
    model: MultibodyModel, placement: BodyPlacement, q: Float[Array, " nq"]
) -> tuple[Float[Array, "3 3 nm"], Float[Array, "3 nm"], Float[Array, "6 nd"]]:
    """R_FM and p_FM of every mobod (identity for the world), and hinge maps in F, computed kind by kind."""
    R_world, p_world = identity_poses(1, q.dtype, q.ndim - 1)
    q, groups = all_joint_positions(model, q), joint_groups(model)
    if not groups:
        return R_world, p_world, jnp.zeros((6, *q.shape), q.dtype)
    R_parts, p_parts = [], []
    for group in groups:
        joint = JOINT_KINDS[group.kind]
        q_group = gather(q, group.q_indices)
        axis, pitch = take(placement.axis, group.mobods, 1), take(placement.pitch, group.mobods, 0)
        R_FM, p_FM = joint.pose(q_group, axis, pitch)
        R_parts.append(R_FM)
        p_parts.append(p_FM)
    R_FM = ca.concatenate([R_world, in_mobod_order(R_parts, groups, 2)], 2)
    p_FM = ca.concatenate([p_world, in_mobod_order(p_parts, groups, 1)], 1)
    return R_FM, p_FM, calc_hinge_maps(model, placement, q)


def calc_hinge_maps(model: MultibodyModel, placement: BodyPlacement, q: Float[Array, " njq"]) -> Float[Array, "6 nd"]:
    """Hinge maps in F; those of joints that mimic others are scaled by their multipliers."""
    groups, parts = joint_groups(model), []
    for group in groups:
        axis, pitch = take(placement.axis, group.mobods, 1), take(placement.pitch, group.mobods, 0)
        parts.append(JOINT_KINDS[group.kind].hinge_map(gather(q, group.q_indices), axis, pitch))
    H_F = in_coordinate_order(parts, [g.v_indices for g in groups])
    return ca.scale(H_F, direction_ratios(model)) if model.topology.followers else H_F
