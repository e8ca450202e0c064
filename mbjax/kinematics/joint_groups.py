"""The joints of a model by kind, so that each kind's formulas run once for all its joints."""

from typing import NamedTuple

from jaxtyping import Array

from mbjax.execution.arrays import take
from mbjax.joints import JOINT_KINDS
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca


class JointGroup(NamedTuple):
    """Mobods of one kind of joint, and the (size, k) indices of their coordinates among those of all joints."""

    kind: str
    mobods: list[int]
    q_indices: list[list[int]]
    v_indices: list[list[int]]


def joint_groups(model: MultibodyModel) -> list[JointGroup]:
    """One group per kind of joint, with indices of coordinates among those of all joints."""
    topology = model.topology
    groups = []
    for kind, mobods in topology.mobods_by_kind:
        q = [[topology.mobod_q_starts[m] + k for m in mobods] for k in range(JOINT_KINDS[kind].num_positions)]
        v = [[topology.mobod_v_starts[m] + k for m in mobods] for k in range(JOINT_KINDS[kind].num_velocities)]
        groups.append(JointGroup(kind, list(mobods), q, v))
    return groups


def groups_with_coordinates(model: MultibodyModel) -> list[JointGroup]:
    """Groups without the joints that mimic others, with indices of coordinates in q and v."""
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
    """Gathers the (size, k) coordinates of a group."""
    return take(x, [i for row in indices for i in row], 0).reshape(len(indices), -1, *x.shape[1:])


def in_mobod_order(parts: list[Array], groups: list[JointGroup], axis: int) -> Array:
    """Joins per-mobod results of all groups in the order of mobods, without the world."""
    order = [m for group in groups for m in group.mobods]
    return take(ca.concatenate(parts, axis), sorted(range(len(order)), key=order.__getitem__), axis)


def in_coordinate_order(parts: list[Array], indices: list[list[list[int]]]) -> Array:
    """Joins (6, size, k) arrays of all groups in the order of coordinates."""
    order = [i for rows in indices for row in rows for i in row]
    flat = [part.reshape(part.shape[0], -1, *part.shape[3:]) for part in parts]
    return take(ca.concatenate(flat, 1), sorted(range(len(order)), key=order.__getitem__), 1)
