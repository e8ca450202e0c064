"""Constraints between frames of two bodies: their rows, the Jacobian, and the forces on the bodies."""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import PositionKinematics, VelocityKinematics
from mbjax.linear_algebra import products_of_columns
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import dot_with_mask, take

from .pair_kind import PairKind
from .relative_motion import RelativePose, calc_relative_motion, calc_relative_pose


class PairRows(eqx.Module):
    """r rows, each of one of n pairs of frames. (torque, force) at So is what λ = 1 does to body B."""

    pose: RelativePose
    error: Float[Array, " r"]
    torque_W: Float[Array, "3 r"]
    force_W: Float[Array, "3 r"]
    rate: Float[Array, " r"] | None
    bias: Float[Array, " r"] | None  # second rate at vdot = 0
    pairs: tuple[int, ...] = eqx.field(static=True)  # of each row


def calc_pair_rows(
    model: MultibodyModel,
    constraints: Sequence[Any],
    kinds: Sequence[PairKind],
    position: PositionKinematics,
    velocity: VelocityKinematics | None,
    v: Float[Array, " nv"] | None,
) -> PairRows:
    """The rows of one constraint after the other; those of one kind and variant are computed together."""
    pairs = [kind.frames(constraint) for kind, constraint in zip(kinds, constraints, strict=True)]
    pose = calc_relative_pose(model, pairs, position)
    motion = None
    if velocity is not None:
        assert v is not None
        motion = calc_relative_motion(model, pose, position, velocity, v)
    groups: dict[Any, list[int]] = {}
    for i, (kind, constraint) in enumerate(zip(kinds, constraints, strict=True)):
        groups.setdefault((kind, kind.variant(constraint)), []).append(i)
    parts, owners = [], []
    for (kind, _), members in groups.items():
        motion_of_group = jax.tree.map(lambda x, members=members: take(x, members, 1), motion)
        rows = kind.rows(
            [constraints[i] for i in members],
            take(pose.R_PS, members, 2),
            take(pose.p_PS_P, members, 1),
            motion_of_group,
        )
        owners += [i for i in members for _ in range(rows.error.shape[0])]
        parts.append(rows)
    order = np.argsort(np.array(owners), kind="stable")
    pair_of_row = [owners[i] for i in order]
    error = in_order([x.error for x in parts], order, 0)
    torque_P, force_P = (in_order(x, order, 1) for x in ([x.torque_P for x in parts], [x.force_P for x in parts]))
    rate = bias = None
    if motion is not None:
        w_PS, v_PS = take(motion.w_PS, pair_of_row, 1), take(motion.v_PS, pair_of_row, 1)
        rate = ca.dot(torque_P, w_PS) + ca.dot(force_P, v_PS)
        bias = in_order([x.bias for x in parts if x.bias is not None], order, 0)
    R_WP = take(pose.R_WP, pair_of_row, 2)
    torque_W, force_W = ca.matvec(R_WP, torque_P), ca.matvec(R_WP, force_P)
    return PairRows(pose, error, torque_W, force_W, rate, bias, tuple(pair_of_row))


def in_order(parts: Sequence[Float[Array, "*c k n"]], order: np.ndarray, axis: int) -> Float[Array, "*c r"]:
    """What the groups computed, one row after the other and in the order of the constraints."""
    flat = [jnp.swapaxes(x, axis, axis + 1) for x in parts]
    flat = [x.reshape(*x.shape[:axis], -1, *x.shape[axis + 2 :]) for x in flat]
    return take(ca.concatenate(flat, axis), order, axis)


def calc_pair_jacobian(model: MultibodyModel, position: PositionKinematics, rows: PairRows) -> Float[Array, "r nv"]:
    """G with rate = G v: what each velocity moves of S, less what it moves of P.

    A velocity that moves both bodies together changes nothing: exactly zero.
    """
    topology, pose = model.topology, rows.pose
    mobods_A, mobods_B = (np.array(x)[list(rows.pairs)] for x in (pose.mobods_A, pose.mobods_B))
    moves_A, moves_B = topology.moves[:, mobods_A].T, topology.moves[:, mobods_B].T
    G = only_where(moves_B & ~moves_A, row_products(rows, position, mobods_B, pose.p_MbSo_W))
    if np.any(moves_A & ~moves_B):
        G = G - only_where(moves_A & ~moves_B, row_products(rows, position, mobods_A, pose.p_MaSo_W))
    return G


def row_products(
    rows: PairRows, position: PositionKinematics, mobods: np.ndarray, p_MSo_W: Float[Array, "3 n"]
) -> Float[Array, "r nv"]:
    """The rows' forces about T of the mobods' trees, times the directions S of all velocities."""
    p_TSo_W = take(position.p_TM_W, mobods, 1) + take(p_MSo_W, rows.pairs, 1)
    F_T = ca.concatenate([rows.torque_W + ca.cross(p_TSo_W, rows.force_W), rows.force_W], 0)
    return products_of_columns(F_T, position.S_T)


def only_where(mask: np.ndarray, x: Array) -> Array:
    """x where a static mask of its first axes is true, else 0."""
    return jnp.where(mask.reshape(*mask.shape, *(1,) * (x.ndim - mask.ndim)), x, 0.0)


def calc_pair_forces(model: MultibodyModel, rows: PairRows, multipliers: Float[Array, " r"]) -> Float[Array, "6 nb"]:
    """Spatial forces of λ on all bodies at their origins, expressed in W: on B at So, the opposite on A there."""
    pose, pair_of_row = rows.pose, np.array(rows.pairs)
    to_pairs = pair_of_row[:, None] == np.arange(len(pose.bodies_A))
    t, f = (dot_with_mask(ca.scale(x, multipliers), to_pairs, 1) for x in (rows.torque_W, rows.force_W))
    on_B = ca.concatenate([t + ca.cross(pose.p_BoSo_W, f), f], 0)
    on_A = ca.concatenate([t + ca.cross(pose.p_AoSo_W, f), f], 0)
    to_A, to_B = (np.array(x)[:, None] == np.arange(model.num_bodies) for x in (pose.bodies_A, pose.bodies_B))
    return dot_with_mask(on_B, to_B, 1) - dot_with_mask(on_A, to_A, 1)
