"""Poses of joints as the steps of recursions read them: of a joint about an axis a few numbers.

Twelve numbers of every joint and world would take longer to put together than a step takes for everything else.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.joints import JOINT_KINDS, AxisJoint
from mbjax.model import MultibodyModel, all_joint_positions
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.spatial.cosine_and_sine import cosine_and_sine
from mbjax.stages import Row, computed_once, read, row_of
from mbjax.topology import take

from .body_placement import BodyPlacement
from .joint_groups import JointGroup, gather, joint_groups


class JointRows(NamedTuple):
    """Of each step. It crosses a joint, or one direction of it: the first translates, the last rotates."""

    axis: Float[Array, "n 3 ..."]  # zero where the joint has none
    cosine: Float[Array, "n 1 ..."]
    sine: Float[Array, "n 1 ..."]
    slide: Float[Array, "n 1 ..."] | None  # along the axis; None where no joint does
    other: Int[Array, " n"] | None  # which of `other_poses` adds to that; None where all joints have an axis


OtherPoses = Float[Array, "k 12 ..."]  # R_FM and p_FM of joints without an axis, or of one of their directions


def calc_joint_rows(
    model: MultibodyModel,
    placement: BodyPlacement,
    q: Float[Array, " nq"],
    mobods: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
) -> tuple[JointRows, OtherPoses | None]:
    """The rows of steps that cross the joints of these mobods, each alone or between the first and the last of one."""
    topology, groups = model.topology, joint_groups(model)
    q, kind_of = all_joint_positions(model, q), {m: JOINT_KINDS[g.kind] for g in groups for m in g.mobods}
    axis_joints = [kind if issubclass(kind, AxisJoint) else None for kind in (kind_of[m] for m in mobods)]
    has_axis = np.array([kind is not None for kind in axis_joints])
    turns = np.array([kind is not None and kind.turns for kind in axis_joints])
    own = q_indices(topology.mobod_q_starts, mobods, q.shape[0])
    q_own = take(q, own, 0)

    axis = jnp.swapaxes(take(placement.axis, mobods, 1), 0, 1)
    if not has_axis.all():
        axis = jnp.where(has_axis.reshape(-1, *(1 for _ in axis.shape[1:])), axis, 0.0)
    cosine, sine = cosines_and_sines(q_own, turns, ~has_axis & last)
    rows = JointRows(axis, cosine, sine, slides(placement, q_own, mobods, axis_joints), None)
    others = [g for g in groups if not issubclass(JOINT_KINDS[g.kind], AxisJoint)]
    if not others:
        return rows, None
    number = {m: k for k, m in enumerate(m for g in others for m in g.mobods)}
    return rows._replace(other=other_numbers(number, mobods, first, last)), other_poses(placement, q, others)


def q_indices(starts: Sequence[int], mobods: np.ndarray, size: int) -> list[int]:
    """The position of each step; where a joint has several, any of them, so that the indices run."""
    before = np.flatnonzero(np.diff(mobods, prepend=-1))  # the first step of each joint
    places = np.arange(mobods.size) - np.repeat(before, np.diff(before, append=mobods.size))
    return np.minimum(np.array(starts)[mobods] + places, size - 1).tolist()


def cosines_and_sines(
    q_own: Float[Array, "n ..."], turns: np.ndarray, elsewhere: np.ndarray
) -> tuple[Float[Array, "n 1 ..."], Float[Array, "n 1 ..."]]:
    """One and zero of steps that do not turn; both zero of those whose rotation is `elsewhere`."""

    def each(x: np.ndarray) -> Array:
        return jnp.asarray(x, q_own.dtype).reshape(-1, *(1 for _ in q_own.shape[1:]))

    still = each(~turns & ~elsewhere)
    if not turns.any():
        return still[:, None], jnp.zeros_like(still)[:, None]
    c, s = computed_once(cosine_and_sine, q_own)
    if not turns.all():
        c, s = c * each(turns) + still, s * each(turns)
    return c[:, None], s[:, None]


def slides(
    placement: BodyPlacement, q_own: Float[Array, "n ..."], mobods: np.ndarray, kinds: Sequence[type[AxisJoint] | None]
) -> Float[Array, "n 1 ..."] | None:
    """How far each step goes along its axis."""
    pitch, parts = take(placement.pitch, mobods, 0), []
    for kind in {kind for kind in kinds if kind is not None}:
        advance = kind.advance(pitch)
        if advance is not None:
            is_kind = np.array([x is kind for x in kinds]).reshape(-1, *(1 for _ in pitch.shape[1:]))
            parts.append(jnp.where(is_kind, advance, 0.0))
    return (sum(parts[1:], parts[0]) * q_own)[:, None] if parts else None


def other_poses(
    placement: BodyPlacement, q: Float[Array, " njq"], groups: Sequence[JointGroup]
) -> Float[Array, "1+3k 12 ..."]:
    """None at all, the translations of the k joints, their rotations, and both."""
    translations, rotations = [], []
    for group in groups:
        axis, pitch = take(placement.axis, group.mobods, 1), take(placement.pitch, group.mobods, 0)
        R_FM, p_FM = JOINT_KINDS[group.kind].pose(gather(q, group.q_indices), axis, pitch)
        R_FM = R_FM.reshape(9, *R_FM.shape[2:])
        translations.append(ca.concatenate([jnp.zeros_like(R_FM), p_FM], 0))
        rotations.append(ca.concatenate([R_FM, jnp.zeros_like(p_FM)], 0))
    p, R = ca.concatenate(translations, 1), ca.concatenate(rotations, 1)
    return jnp.swapaxes(ca.concatenate([jnp.zeros_like(p[:, :1]), p, R, p + R], 1), 0, 1)


def other_numbers(number: dict[int, int], mobods: np.ndarray, first: np.ndarray, last: np.ndarray) -> Int[Array, " n"]:
    """Which of `other_poses` belongs to each step; `number` counts the joints without an axis by their mobods."""
    k = np.array([number.get(m, -1) for m in mobods.tolist()])
    part = np.where(first & last, 2, np.where(first, 0, 1))
    return jnp.asarray(np.where((k >= 0) & (first | last), 1 + part * len(number) + k, 0), jnp.int32)


def pose_across(row: JointRows, others: OtherPoses | None) -> tuple[wo.Matrix, wo.Vector | None]:
    """R_FM and p_FM of one step; None where it is zero in all."""
    if others is None:
        return computed_once(pose_of_row, row, None)
    assert row.other is not None
    other = row_of(others, read(row.other), late=isinstance(row.other, Row))
    return computed_once(pose_of_row, row._replace(other=None), other)


def pose_of_row(row: JointRows, other: Float[Array, "12 ..."] | None) -> tuple[wo.Matrix, wo.Vector | None]:
    """R_FM = c 1 + (1 - c) n nᵀ + s [n]x, p_FM, and the other pose."""
    n, c, s = list(row.axis), row.cosine[0], row.sine[0]
    turned = wo.scale(n, s)
    across = wo.scale(n, 1.0 - c)
    R = [[a * b for b in n] for a in across]
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R
    x, y, z = turned
    R = [[xx + c, xy - z, xz + y], [yx + z, yy + c, yz - x], [zx - y, zy + x, zz + c]]
    p = None if row.slide is None else wo.scale(n, row.slide[0])
    if other is not None:
        R_other, p_other = wo.take_apart(other, (3, 3), 3)
        R = [wo.add(a, b) for a, b in zip(R, R_other, strict=True)]
        p = p_other if p is None else wo.add(p, p_other)
    return R, p
