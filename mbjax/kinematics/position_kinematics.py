"""q → poses of mobilized bodies and the directions their joints move in."""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel, all_joint_positions, direction_ratios
from mbjax.model import as_coordinates as as_coordinates
from mbjax.outside_jit import compiled_outside_jit
from mbjax.spatial import component_algebra as ca
from mbjax.topology import compose_outward, sum_over_path, take

from .body_placement import BodyPlacement, calc_body_placement, identity_poses


class PositionKinematics(eqx.Module):
    """Everything that depends on q alone. Mobods (world first) or directions on the last axis.

    A joint that mimics another has its direction times its multiplier: along it the child moves as the leader's
    coordinate does.

    T is the origin of the tree a mobod belongs to, its root's Mo: spatial vectors "about T" are taken at
    the point of the world where T is now, so they add up along paths without shifts, and numbers stay of
    the robot's size however far from the world's origin it stands.
    """

    placement: BodyPlacement
    R_WM: Float[Array, "3 3 nm"]
    p_WM: Float[Array, "3 nm"]
    R_WF: Float[Array, "3 3 nm"]  # inboard frame F
    p_PM_W: Float[Array, "3 nm"]  # from the parent's Mo to Mo
    p_TM_W: Float[Array, "3 nm"]
    H_W: Float[Array, "6 nd"]  # hinge map: V_FM_W = H v, at Mo
    S_T: Float[Array, "6 nd"]  # the same about T


class JointGroup(NamedTuple):
    """The mobods of one kind of joint, and where their coordinates are among those of all joints: (size, k) indices."""

    kind: str
    mobods: list[int]
    q_indices: list[list[int]]
    v_indices: list[list[int]]


def joint_groups(model: MultibodyModel) -> list[JointGroup]:
    """One group per kind, so that each kind's formulas run once for all its joints."""
    topology = model.topology
    groups = []
    for kind, mobods in topology.mobods_by_kind:
        q = [[topology.mobod_q_starts[m] + k for m in mobods] for k in range(JOINT_KINDS[kind].num_positions)]
        v = [[topology.mobod_v_starts[m] + k for m in mobods] for k in range(JOINT_KINDS[kind].num_velocities)]
        groups.append(JointGroup(kind, list(mobods), q, v))
    return groups


def groups_with_coordinates(model: MultibodyModel) -> list[JointGroup]:
    """The groups without the joints that mimic others, and where their coordinates are in q and v."""
    topology, groups = model.topology, joint_groups(model)
    if not topology.followers:
        return groups
    result = []
    for kind, mobods, q, v in groups:
        kept = [i for i, mobod in enumerate(mobods) if topology.leaders[mobod] == mobod]
        if kept:
            own_q = [[int(topology.positions_of_joints[row[i]]) for i in kept] for row in q]
            own_v = [[int(topology.velocities_of_directions[row[i]]) for i in kept] for row in v]
            result.append(JointGroup(kind, [mobods[i] for i in kept], own_q, own_v))
    return result


def gather(x: Array, indices: list[list[int]]) -> Array:
    """(size, k) coordinates of a group."""
    return take(x, [i for row in indices for i in row], 0).reshape(len(indices), -1, *x.shape[1:])


def in_mobod_order(parts: list[Array], groups: list[JointGroup], axis: int) -> Array:
    """Joins what each group computed per mobod, in the order of mobods, without the world."""
    order = [m for group in groups for m in group.mobods]
    return take(ca.concatenate(parts, axis), sorted(range(len(order)), key=order.__getitem__), axis)


def in_coordinate_order(parts: list[Array], indices: list[list[list[int]]]) -> Array:
    """Joins (6, size, k) arrays of each group in the order of coordinates."""
    order = [i for rows in indices for row in rows for i in row]
    flat = [part.reshape(part.shape[0], -1, *part.shape[3:]) for part in parts]
    return take(ca.concatenate(flat, 1), sorted(range(len(order)), key=order.__getitem__), 1)


@compiled_outside_jit
def calc_position_kinematics(model: MultibodyModel, q: Positions) -> PositionKinematics:
    """X_WM = X_WP X_PF X_FM(q), outward."""
    topology = model.topology
    q = as_coordinates("q", q, topology.num_positions, model.dtype, model.num_world_axes)
    placement = calc_body_placement(model)
    R_FM, p_FM, H_F = calc_joint_kinematics(model, placement, all_joint_positions(model, q))
    if topology.followers:
        H_F = ca.scale(H_F, direction_ratios(model))
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
    return PositionKinematics(placement, R_WM, p_WM, R_WF, p_PM_W, p_TM_W, H_W, S_T)


def calc_joint_kinematics(
    model: MultibodyModel, placement: BodyPlacement, q: Float[Array, " njq"]
) -> tuple[Float[Array, "3 3 nm"], Float[Array, "3 nm"], Float[Array, "6 nd"]]:
    """R_FM, p_FM of every mobod (identity for the world) and the hinge map in F, kind by kind."""
    R_world, p_world = identity_poses(1, q.dtype, q.ndim - 1)
    groups = joint_groups(model)
    if not groups:
        return R_world, p_world, jnp.zeros((6, *q.shape), q.dtype)
    R_parts, p_parts, H_parts = [], [], []
    for group in groups:
        joint = JOINT_KINDS[group.kind]
        q_group = gather(q, group.q_indices)
        axis, pitch = take(placement.axis, group.mobods, 1), take(placement.pitch, group.mobods, 0)
        R_FM, p_FM = joint.pose(q_group, axis, pitch)
        R_parts.append(R_FM)
        p_parts.append(p_FM)
        H_parts.append(joint.hinge_map(q_group, axis, pitch))
    R_FM = ca.concatenate([R_world, in_mobod_order(R_parts, groups, 2)], 2)
    p_FM = ca.concatenate([p_world, in_mobod_order(p_parts, groups, 1)], 1)
    return R_FM, p_FM, in_coordinate_order(H_parts, [g.v_indices for g in groups])
