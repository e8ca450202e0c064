"""Constraints between frames of two bodies: their rows, their Jacobian, and their forces on the bodies."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import dot_with_mask, take
from mbjax.kinematics import PositionKinematics, VelocityKinematics
from mbjax.linear_algebra import sum_of_outer
from mbjax.model import (
    AbstractConstraint,
    BallConstraint,
    ContactConstraint,
    DistanceConstraint,
    LoopConstraint,
    MultibodyModel,
    WeldConstraint,
)
from mbjax.spatial import component_algebra as ca
from mbjax.topology import sum_directions

from .axis_rows import AxisKind, RowsInP, calc_axis_rows
from .contact import CONTACT
from .distance import distance_frames, distance_rows
from .loop import BALL, LOOP, WELD
from .relative_motion import (
    FramePair,
    RelativeMotion,
    RelativePose,
    calc_pair_motion,
    calc_relative_pose,
)

AXIS_KINDS: dict[type, AxisKind] = {
    ContactConstraint: CONTACT,
    LoopConstraint: LOOP,
    BallConstraint: BALL,
    WeldConstraint: WELD,
}
PAIR_KINDS = (*AXIS_KINDS, DistanceConstraint)


class PairRows(eqx.Module):
    """r rows, each of one of n pairs of frames; (torque, force) at So is the spatial force of λ = 1 on body B."""

    pose: RelativePose
    error: Float[Array, " r"]
    torque_W: Float[Array, "3 r"]
    force_W: Float[Array, "3 r"]
    rate: Float[Array, " r"] | None
    bias: Float[Array, " r"] | None  # second rate at vdot = 0
    pairs: tuple[int, ...] = eqx.field(static=True)  # the pair of each row


def calc_pair_rows(
    model: MultibodyModel,
    constraints: Sequence[AbstractConstraint],
    position: PositionKinematics,
    velocity: VelocityKinematics | None,
    v: Float[Array, " nv"] | None,
) -> PairRows:
    """Rows of the constraints, one constraint after another."""
    along_axes = [i for i, c in enumerate(constraints) if type(c) in AXIS_KINDS]
    distances = [i for i, c in enumerate(constraints) if type(c) is DistanceConstraint]
    pose = calc_relative_pose(model, [frames_of(c) for c in constraints], position)
    motion = None
    if velocity is not None:
        assert v is not None
        motion = calc_pair_motion(model, pose, position, velocity, v)
    parts: list[RowsInP] = []
    owners: list[int] = []
    if along_axes:
        chosen = [constraints[i] for i in along_axes]
        R_PS, p_PS_P, motion_of_group = choose(along_axes, pose, motion)
        kinds = [AXIS_KINDS[type(c)] for c in chosen]
        parts.append(calc_axis_rows(kinds, chosen, R_PS, p_PS_P, motion_of_group))
        owners += [i for i in along_axes for _ in range(constraints[i].num_rows)]
    if distances:
        _, p_PS_P, motion_of_group = choose(distances, pose, motion)
        parts.append(distance_rows([constraints[i] for i in distances], p_PS_P, motion_of_group))
        owners += distances
    order = np.argsort(np.array(owners), kind="stable")
    pair_of_row = [owners[i] for i in order]
    error = take(ca.concatenate([x.error for x in parts], 0), order, 0)
    torque_P = take(ca.concatenate([x.torque_P for x in parts], 1), order, 1)
    force_P = take(ca.concatenate([x.force_P for x in parts], 1), order, 1)
    rate = bias = None
    if motion is not None:
        w_PS, v_PS = take(motion.w_PS, pair_of_row, 1), take(motion.v_PS, pair_of_row, 1)
        rate = ca.dot(torque_P, w_PS) + ca.dot(force_P, v_PS)
        bias = take(ca.concatenate([x.bias for x in parts if x.bias is not None], 0), order, 0)
    R_WP = take(pose.R_WP, pair_of_row, 2)
    torque_W, force_W = ca.matvec(R_WP, torque_P), ca.matvec(R_WP, force_P)
    return PairRows(pose, error, torque_W, force_W, rate, bias, tuple(pair_of_row))


def frames_of(constraint: Any) -> FramePair:
    """The two frames that a constraint relates."""
    if isinstance(constraint, DistanceConstraint):
        return distance_frames(constraint)
    return AXIS_KINDS[type(constraint)].frames(constraint)


def choose(
    pairs: Sequence[int], pose: RelativePose, motion: RelativeMotion | None
) -> tuple[Array, Array, RelativeMotion | None]:
    """Selects R_PS, p_PS_P and the motion of some of the pairs."""
    return (
        take(pose.R_PS, pairs, 2),
        take(pose.p_PS_P, pairs, 1),
        jax.tree.map(lambda x: take(x, pairs, 1), motion),
    )


def calc_pair_jacobian(model: MultibodyModel, position: PositionKinematics, rows: PairRows) -> Float[Array, "r nv"]:
    """Jacobian G with rate = G v: how each velocity moves S, less how it moves P.

    A velocity that moves both bodies together has a column of exactly zero.
    """
    topology, pose = model.topology, rows.pose
    mobods_A, mobods_B = (np.array(x)[list(rows.pairs)] for x in (pose.mobods_A, pose.mobods_B))
    moves_A, moves_B = topology.moves[:, mobods_A].T, topology.moves[:, mobods_B].T
    G = only_where(moves_B & ~moves_A, row_products(rows, position, mobods_B, pose.p_MbSo_W))
    if np.any(moves_A & ~moves_B):
        G = G - only_where(moves_A & ~moves_B, row_products(rows, position, mobods_A, pose.p_MaSo_W))
    return sum_directions(topology, G, 1)


def row_products(
    rows: PairRows, position: PositionKinematics, mobods: np.ndarray, p_MSo_W: Float[Array, "3 n"]
) -> Float[Array, "r nd"]:
    """Products of the rows' spatial forces, about the origins T of the mobods' trees, with all directions S."""
    p_TSo_W = take(position.p_TM_W, mobods, 1) + take(p_MSo_W, rows.pairs, 1)
    F_T = ca.concatenate([rows.torque_W + ca.cross(p_TSo_W, rows.force_W), rows.force_W], 0)
    return sum_of_outer(F_T, position.S_T)


def only_where(mask: np.ndarray, x: Array) -> Array:
    """x where a static mask over its first axes is true, else 0."""
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (x.ndim - mask.ndim)), x, 0.0)


def calc_pair_forces(model: MultibodyModel, rows: PairRows, multipliers: Float[Array, " r"]) -> Float[Array, "6 nb"]:
    """Spatial forces of λ on all bodies at their origins, in W: each acts on B at So, and its opposite on A there."""
    pose, pair_of_row = rows.pose, np.array(rows.pairs)
    to_pairs = pair_of_row[:, None] == np.arange(len(pose.bodies_A))
    t, f = (dot_with_mask(ca.scale(x, multipliers), to_pairs, 1) for x in (rows.torque_W, rows.force_W))
    on_B = ca.concatenate([t + ca.cross(pose.p_BoSo_W, f), f], 0)
    on_A = ca.concatenate([t + ca.cross(pose.p_AoSo_W, f), f], 0)
    to_A, to_B = (np.array(x)[:, None] == np.arange(model.num_bodies) for x in (pose.bodies_A, pose.bodies_B))
    return dot_with_mask(on_B, to_B, 1) - dot_with_mask(on_A, to_A, 1)
