"""Poses across joints as rows that the steps of recursions read: constants of the model, and few numbers of each world.

Putting together twelve numbers for every joint and world would take longer than all the rest of a step.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float, Int

from mbjax.execution.arrays import take
from mbjax.execution.recursions import Row, computed_once, read, read_all, read_stage, row_of, rows_of
from mbjax.joints import JOINT_KINDS, AxisJoint
from mbjax.model import MultibodyModel, all_joint_positions
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.spatial.cosine_and_sine import cosine_and_sine, nearest_quarter, of_quarter, turned

from .joint_groups import JointGroup, gather, joint_groups
from .joint_turns import calc_joint_turns
from .placement_records import BodyPlacement, JointSteps


class JointStepRows(NamedTuple):
    """Rows of steps that cross a joint each, or one of its directions: the first translates, the last rotates."""

    turns: "JointTurns"  # of the first direction; the identity of F for others
    point: wo.Vector  # p_PF of the first direction; zero for others
    cosine: Array
    sine: Array
    slide: "Slide | None"  # None where no joint slides along its axis
    other: Int[Array, " n"] | None  # which of `OtherPoses` is added; None where all joints have an axis


class JointTurns(NamedTuple):
    """Factors of 1, cosine and sine in R_PM, each row by row: `calc_joint_turns`."""

    of_one: wo.Vector
    of_cosine: wo.Vector
    of_sine: wo.Vector
    shapes = 9, 9, 9


class Slide(NamedTuple):
    """Translation along the axis, which is given in P."""

    axis: wo.Vector
    distance: Array


class OtherPose(NamedTuple):
    """Rotation, row by row, and translation of a joint without an axis, as a step adds them."""

    R: wo.Vector
    p: wo.Vector
    shapes = 9, 3


OtherPoses = OtherPose  # rows of them


class Pose(NamedTuple):
    """Rotation R_AB and translation p_AB."""

    R: wo.Matrix
    p: wo.Vector
    shapes = (3, 3), 3


def calc_joint_steps(
    model: MultibodyModel, placement: BodyPlacement, mobods: np.ndarray, first: np.ndarray
) -> JointSteps:
    """Constant rows of steps that cross the joints of these mobods; `first` says which steps begin a joint."""
    turns = calc_joint_turns(placement.R_PF, placement.axis)
    rows = jnp.swapaxes(take(ca.concatenate([turns, placement.p_PF], 0), mobods, 1), 0, 1)
    if not first.all():
        ones = (1,) * (rows.ndim - 2)
        still = np.zeros(33)
        still[9:18] = np.eye(3).reshape(9)  # the identity as factor of the cosine, which is one
        rows = jnp.where(first.reshape(-1, 1, *ones), rows, jnp.asarray(still, rows.dtype).reshape(1, -1, *ones))
    return JointSteps(
        rows[:, :27], rows[:, 30:], rows[:, 27:30], calc_advances(placement, mobods, axis_kinds(model, mobods))
    )


def calc_joint_rows(
    model: MultibodyModel,
    placement: BodyPlacement,
    steps: JointSteps,
    q: Float[Array, " nq"],
    mobods: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
) -> tuple[JointStepRows, OtherPoses | None]:
    """Rows of steps that cross the joints of these mobods; `first` and `last` say which steps begin and end a joint."""
    topology, groups = model.topology, joint_groups(model)
    q, axis_joints = all_joint_positions(model, q), axis_kinds(model, mobods)
    has_axis = np.array([kind is not None for kind in axis_joints])
    have_angle = np.array([kind is not None and kind.turns for kind in axis_joints])
    own = q_indices(topology.mobod_q_starts, mobods, q.shape[0])
    q_own = take(q, own, 0)

    cosine, sine = cosines_and_sines(q_own, have_angle, ~has_axis & last)
    slide = None
    if steps.advance is not None:
        slide = Slide(rows_of(3, steps.axis), rows_of(1, (steps.advance * q_own)[:, None]))
    turns, point = rows_of(JointTurns, steps.turns), rows_of(3, steps.point)
    rows = JointStepRows(turns, point, rows_of(1, cosine), rows_of(1, sine), slide, None)
    others = [g for g in groups if not issubclass(JOINT_KINDS[g.kind], AxisJoint)]
    if not others:
        return rows, None
    alone, number = bool((first & last).all()), {m: k for k, m in enumerate(m for g in others for m in g.mobods)}
    assert alone or has_axis[first & last].all(), "a joint without an axis and with a single direction"
    poses = rows_of(OtherPose, other_poses(placement, q, others, alone))
    return rows._replace(other=other_numbers(number, mobods, first, last)), poses


def q_indices(starts: Sequence[int], mobods: np.ndarray, size: int) -> list[int]:
    """Index in q of each step's position; for a joint with several any valid one, so that indices run consecutively."""
    before = np.flatnonzero(np.diff(mobods, prepend=-1))  # the first step of each joint
    places = np.arange(mobods.size) - np.repeat(before, np.diff(before, append=mobods.size))
    return np.minimum(np.array(starts)[mobods] + places, size - 1).tolist()


def cosines_and_sines(
    q_own: Float[Array, "n ..."], turns: np.ndarray, elsewhere: np.ndarray
) -> tuple[Float[Array, "n 1 ..."], Float[Array, "n 1 ..."]]:
    """Cosine and sine of each step: 1 and 0 where it turns about no axis, 0 and 0 where its rotation is `elsewhere`."""

    def each(x: np.ndarray) -> Array:
        return jnp.asarray(x, q_own.dtype).reshape(-1, *(1 for _ in q_own.shape[1:]))

    still = each(~turns & ~elsewhere)
    if not turns.any():
        return still[:, None], jnp.zeros_like(still)[:, None]
    mask = None if turns.all() else (each(turns), still)
    if q_own.ndim > 1:
        c, s = computed_once(cosine_and_sine, q_own)
        c, s = unless_still(c, s, mask)
    else:  # a loop: see `one_by_one`
        _, (c, s) = lax.scan(lambda _, x: (None, in_stages(*x)), None, (q_own, mask))
    return c[:, None], s[:, None]


def in_stages(angle: Float[Array, ""], still: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Cosine and sine of one step's angle, computed in stages."""
    r, quarter = computed_once(nearest_quarter, angle)
    cosine, sine = computed_once(of_quarter, r)

    def last(cosine: Array, sine: Array, quarter: Array, still: tuple[Array, Array] | None) -> tuple[Array, Array]:
        return unless_still(*turned(cosine, sine, quarter), still)

    return read_all(computed_once(last, cosine, sine, quarter, still))


def unless_still(cosine: Array, sine: Array, still: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """Keeps cosine and sine where the first of `still` is 1; where it is 0 the sine is 0, the cosine the second."""
    return (cosine, sine) if still is None else (cosine * still[0] + still[1], sine * still[0])


def calc_advances(
    placement: BodyPlacement, mobods: np.ndarray, kinds: Sequence[type[AxisJoint] | None]
) -> Float[Array, "n ..."] | None:
    """Advance of each step's joint along its axis per unit of q; None where no joint advances."""
    pitch, parts = take(placement.pitch, mobods, 0), []
    for kind in dict.fromkeys(kind for kind in kinds if kind is not None):
        advance = kind.advance(pitch)
        if advance is not None:
            is_kind = np.array([x is kind for x in kinds]).reshape(-1, *(1 for _ in pitch.shape[1:]))
            parts.append(jnp.where(is_kind, advance, 0.0))
    return sum(parts[1:], parts[0]) if parts else None


def axis_kinds(model: MultibodyModel, mobods: np.ndarray) -> list[type[AxisJoint] | None]:
    """Kind of each step's joint; None where it has no axis."""
    kind_of = {m: JOINT_KINDS[g.kind] for g in joint_groups(model) for m in g.mobods}
    return [kind if issubclass(kind, AxisJoint) else None for kind in (kind_of[m] for m in mobods)]


def other_poses(
    placement: BodyPlacement, q: Float[Array, " njq"], groups: Sequence[JointGroup], alone: bool
) -> Float[Array, "k 12 ..."]:
    """A row of zeros, then poses of joints without an axis: X_PM if `alone`, else p_FM in P of each, then R_FM."""
    rotations, translations = [], []
    for group in groups:
        axis, pitch = take(placement.axis, group.mobods, 1), take(placement.pitch, group.mobods, 0)
        R_FM, p_FM = JOINT_KINDS[group.kind].pose(gather(q, group.q_indices), axis, pitch)
        R_PF = take(placement.R_PF, group.mobods, 2)
        R = ca.matmul(R_PF, R_FM) if alone else R_FM
        rotations.append(R.reshape(9, *R.shape[2:]))
        translations.append(ca.matvec(R_PF, p_FM))
    R, p = ca.concatenate(rotations, 1), ca.concatenate(translations, 1)
    no_R, no_p = jnp.zeros_like(R), jnp.zeros_like(p)
    none = ca.concatenate([no_R[:, :1], no_p[:, :1]], 0)
    given = [(R, p)] if alone else [(no_R, p), (R, no_p)]
    return jnp.swapaxes(ca.concatenate([none, *(ca.concatenate(x, 0) for x in given)], 1), 0, 1)


def other_numbers(number: dict[int, int], mobods: np.ndarray, first: np.ndarray, last: np.ndarray) -> Int[Array, " n"]:
    """Row of `other_poses` for each step; `number` counts the joints without an axis by their mobods."""
    k = np.array([number.get(m, -1) for m in mobods.tolist()])
    after = np.where(first, 1, 1 + len(number))  # after the row of zeros, and the rows of first steps
    return jnp.asarray(np.where((k >= 0) & (first | last), after + k, 0), jnp.int32)


def pose_across(row: JointStepRows, others: OtherPoses | None) -> Any:
    """Pose R_PM and p_PM across one step."""
    if others is None:
        return pose_of_row(row, None)
    assert row.other is not None
    other = row_of(others, read(row.other), late=isinstance(row.other, Row))
    return pose_of_row(row._replace(other=None), other)


@read_stage
def pose_of_row(row: JointStepRows, other: OtherPose | None) -> Pose:
    """R_PM as factors of 1, c and s, and p_PF; plus the slide along the axis, and the pose of a joint without one."""
    of_one, of_cosine, of_sine = row.turns
    R, p = wo.add(of_one, wo.scale(of_cosine, row.cosine), wo.scale(of_sine, row.sine)), row.point
    if row.slide is not None:
        p = wo.add(p, wo.scale(row.slide.axis, row.slide.distance))
    if other is not None:
        R, p = wo.add(R, other.R), wo.add(p, other.p)
    return Pose([R[:3], R[3:6], R[6:]], p)
