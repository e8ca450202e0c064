"""The cotangent of the mass matrix's diagonal, the gradient of the sum of w_j M_jj, as recursions out and in.

M_jj = S_j · I_j S_j, with I_j the inertia of everything outboard of direction j. Letters are those of
`cotangent_inward.py`: quantities are about T, the tree's origin, in W; m is the mobod of j's joint, p its parent, r the
point Mo. S · I S of a motion S = [h; v] is linear in h hᵀ, h x v and v · v, ten numbers. With C their sum over a path,
each direction weighted by its w, and C^J that over the directions of a joint alone,

    moment(C, I)   = the sum of w_j S_j x* I S_j
    K              = the sums outboard of -2 moment(C, I_own) of mobods, and of 2 moment(C^J, I) of the joints beyond m

    gradient by q_j                  S_j · K + s_j · (force of 2 moment(C^J, I))
    by the direction S_j             2 w_j I S_j
    by a motion of m, with j held    K; by one of F in P  K + 2 moment(C^J, I)
    by the inertia of m              C

The gradient by the model's frames follows from these as in `cotangent_by_model.py`.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    ON_BASE,
    Row,
    RowEntries,
    ScannedRow,
    computed_once,
    computed_where_kept,
    in_one_kernel,
    read,
    read_all,
    row_of,
    scan_inward,
    scan_paths,
    unpacked,
    walk_plan,
)
from mbjax.kinematics import OtherPoses, pose_across
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import direction_parents

from ..records.direction_rows import DirectionRows, calc_direction_rows, worlds_of
from .cotangent_by_model import RowsOfModel, by_axis_and_advance, by_turned_mobod, rows_of_model
from .cotangent_outward import (
    OwnRows,
    across_joint,
    calc_own_rows,
    ends_of_mobods,
    inboard_origin,
    inertia_about_T,
    matrix,
    screw_about_T,
    turned_inertia,
)


class DiagonalCotangent(NamedTuple):
    """Gradient of a weighted sum of the M_jj; that by q is in terms of velocities."""

    q: Float[Array, " nv"]
    by_model: Float[Array, "nv k"] | None  # by what the model moves: `calc_model_change`


class Placed(NamedTuple):
    """Values along a direction's path."""

    pose: Float[Array, "n 12 ..."]  # R_WM and p_TM
    squares: Float[Array, "n 10 ..."]  # C: h hᵀ, h x v and v · v


class PlacedDirections(NamedTuple):
    """Rows for the inward pass, one for each direction; `lasting` has the world's row first."""

    lasting: Placed
    S: Float[Array, "nd 6 ..."]
    inertia: Float[Array, "nd 10 ..."]  # of the mobod, at the last direction of a joint: moments, m p_TMcm, m
    moment: Float[Array, "nd 6 ..."]  # of C and this inertia
    p_TF: Float[Array, "nd 3 ..."] | None  # for the gradient by the model


def calc_diagonal_cotangent(
    model: MultibodyModel, q: Float[Array, " nq"], weight: Float[Array, " nv"], of_model: bool
) -> DiagonalCotangent:
    """Gradient of `weight` · diag(M) by q, and with `of_model` by what the model moves; for trees without mimics."""
    plan = walk_plan(tuple(parent or ON_BASE for parent in direction_parents(model.topology)))
    still = jnp.zeros_like(weight)
    own = calc_own_rows(model.topology, still, still, weight)

    def inward(rows: PlacedDirections, given: RowsOfModel | None, weight: Array, is_first: Array | None) -> tuple:
        ends = jax.tree.map(jnp.asarray, ends_of_mobods(model.topology))
        elements = (rows.S, rows.inertia, rows.moment, weight, is_first), given, ends
        zero = jnp.zeros((16, *rows.S.shape[2:]), rows.S.dtype)
        tables = rows.lasting, rows.p_TF
        return scan_inward(plan, gather_inward, elements, zero, staged=True, tables=tables)[0]

    rows = in_one_kernel(partial(place_outward, of_model=of_model), model, q, weight)
    given = rows_of_model(model, q, still, still) if of_model else None
    by_q, by_model = in_one_kernel(inward, rows, given, own.weight, own.is_first)
    return DiagonalCotangent(by_q[:, 0], by_model)


def place_outward(
    model: MultibodyModel, q: Float[Array, " nq"], weight: Float[Array, " nv"], of_model: bool
) -> PlacedDirections:
    """The outward pass: poses, directions, inertias and C."""
    topology, still = model.topology, jnp.zeros_like(weight)
    rows, others = calc_direction_rows(model, q, still, None, False, None)
    own = calc_own_rows(topology, still, still, weight)
    worlds = worlds_of(rows, weight)
    identity = np.eye(4, 3, dtype=weight.dtype).reshape(12, *(1 for _ in worlds))
    world = Placed(jnp.broadcast_to(identity, (12, *worlds)), jnp.zeros((10, *worlds), weight.dtype))
    step = partial(place_direction, of_model=of_model)
    plan = walk_plan(direction_parents(topology))
    lasting, kept = scan_paths(plan, step, (rows, own), (), world, staged=True, tables=(others,))
    return PlacedDirections(lasting, *kept)


def place_direction(
    inboard: tuple[tuple, Placed], given: tuple[DirectionRows, OwnRows], others: OtherPoses | None, of_model: bool
) -> tuple[tuple[tuple, Placed], tuple]:
    """One step outward: pose and C up to this direction, with its S, inertia and their moment."""
    (_, lasting), (row, own) = inboard, given
    X_PM = pose_across(row.joint, others)
    R, r, h, s = computed_once(across_pose, lasting.pose, X_PM, row.hinge_map, own.flags)
    S = computed_once(screw_about_T, r, h, s)
    squares = computed_once(add_squares, lasting.squares, S, own.weight)
    RJ, c = computed_once(turned_inertia, R, row.inertia)
    about_T = computed_once(inertia_about_T, R, RJ, c, r, row.inertia.m)
    inertia = *about_T, unpacked(read_all(row.inertia.m))
    moment = computed_where_kept(moment_of, squares, inertia)
    p_TF = wo.parts(computed_once(origin_of_frame, lasting.pose, X_PM, row.joint.point, r)) if of_model else None
    placed = Placed(wo.parts(R, r), wo.parts(*squares))
    return ((), placed), (wo.parts(S), wo.parts(*inertia), wo.parts(moment), p_TF)


def across_pose(pose: Array, X_PM: Any, hinge_map: Array, flags: Array) -> tuple:
    """`across_joint` from a pose of twelve numbers."""
    R_P, p_TP = wo.take_apart(pose, 9, 3)
    return across_joint(R_P, p_TP, X_PM, hinge_map, flags)


def origin_of_frame(pose: Array, X_PM: Any, p_PF: Array, r: wo.Vector) -> wo.Vector:
    """`inboard_origin` from a pose of twelve numbers."""
    R_P, _ = wo.take_apart(pose, 9, 3)
    return inboard_origin(R_P, X_PM, p_PF, r)


def add_squares(inboard: Array, S: wo.Vector, weight: Array) -> tuple[wo.Vector, wo.Vector, wo.Vector]:
    """Adds the direction's own products, with its weight, to C."""
    (W, u, z), (h, v) = wo.take_apart(inboard, 6, 3, 1), (S[:3], S[3:])
    weighted = wo.scale(h, weight[0])
    u = wo.add(u, wo.cross(weighted, v))
    return wo.add(W, wo.symmetric_outer(weighted, h)), u, wo.add([z], [wo.dot(v, v) * weight[0]])


def moment_of(squares: tuple, inertia: tuple) -> wo.Vector:
    """The sum of w_j S_j x* I S_j, from C of these directions and I: six moments, m p_TMcm and m."""
    (W, u, _), (J, c, m) = squares, inertia
    JW = wo.matmul(wo.symmetric(J), wo.symmetric(W))
    turning = [JW[2][1] - JW[1][2], JW[0][2] - JW[2][0], JW[1][0] - JW[0][1]]
    trace = W[0] + W[1] + W[2]
    force = wo.add(wo.scale(u, m), wo.subtract(wo.matvec(wo.symmetric(W), c), wo.scale(c, trace)))
    return [*wo.add(turning, wo.cross(c, u)), *force]


class DiagonalRow(NamedTuple):
    """One direction as the inward pass reads it, about T in W."""

    S: Float[Array, "6 ..."]
    inertia: Float[Array, "10 ..."]
    moment: Float[Array, "6 ..."]
    weight: Float[Array, "1 ..."]
    is_first: Float[Array, "1 ..."] | None  # where joints have several directions
    pose: Float[Array, "12 ..."]  # of m
    squares: tuple[Float[Array, "10 ..."], Float[Array, "10 ..."]]  # C of m, and of its parent


def gather_inward(outboard: ScannedRow, element: tuple, lasting: Placed, p_TF: Array | None) -> tuple[Array, tuple]:
    """One step inward: sums over what is outboard, and this direction's gradient by q and by the model."""
    (S, inertia, moment, weight, is_first), given, ends = element
    (first, last, parent), late = (read(x) for x in ends), isinstance(ends[0], Row)
    at = partial(row_of, late=late)
    squares = at(lasting.squares, last), at(lasting.squares, parent)
    row = DiagonalRow(S, inertia, moment, weight, is_first, at(lasting.pose, last), squares)
    composite, held = computed_once(add_outboard, outboard, row)
    joint = computed_once(moment_of_joint, row, composite)
    by_q = wo.parts(computed_where_kept(gradient_by_q, row, held, joint))
    passed = computed_once(hand_on, held, joint, is_first)
    handed_on = wo.parts(composite, passed)
    if given is None or p_TF is None:
        return handed_on, (by_q, None)
    frames = at(lasting.pose, parent), row.pose, at(p_TF, first)
    return handed_on, (by_q, gradient_by_model(row, given, frames, composite, held, passed))


def add_outboard(outboard: RowEntries, row: DiagonalRow) -> tuple[wo.Vector, wo.Vector]:
    """The composite inertia, and K."""
    inertia, held = wo.take_apart(outboard, 10, 6)
    return wo.add(inertia, list(row.inertia)), wo.subtract(held, wo.scale(list(row.moment), 2.0))


def moment_of_joint(row: DiagonalRow, composite: wo.Vector) -> wo.Vector:
    """2 moment(C^J, I) of the joint's directions and everything outboard."""
    of_mobod, of_parent = row.squares
    own = [x - y for x, y in zip(of_mobod, of_parent, strict=True)]
    J, c, m = composite[:6], composite[6:9], composite[9]
    return wo.scale(moment_of((own[:6], own[6:9], own[9]), (J, c, m)), 2.0)


def gradient_by_q(row: DiagonalRow, held: wo.Vector, joint: wo.Vector) -> wo.Vector:
    """Gradient by the direction's own q."""
    S = list(row.S)
    by_q = wo.dot(S, held)
    if row.is_first is None:
        return [by_q]
    s = wo.subtract(S[3:], wo.cross(list(row.pose[9:]), S[:3]))
    return [by_q + wo.dot(s, joint[3:])]


def hand_on(held: wo.Vector, joint: wo.Vector, is_first: Array | None) -> wo.Vector:
    """K with the joint's moment, which its first direction adds: the gradient by a motion of F in P there."""
    return wo.add(held, joint if is_first is None else wo.scale(joint, is_first[0]))


def gradient_by_model(
    row: DiagonalRow, given: RowsOfModel, frames: tuple, composite: wo.Vector, held: wo.Vector, passed: wo.Vector
) -> Any:
    """Gradient by the numbers of a direction's row of `calc_model_change`."""
    (R_WP, _), (R_WM, r) = (computed_once(rotation_and_point, x) for x in frames[:2])
    given = given._replace(frames=(R_WP, R_WM, frames[2]))
    sigma = computed_once(by_direction, row, composite)
    moved = computed_once(motion_of_frame, given, passed, row.is_first)
    by_frame = computed_once(in_inboard_body, given, moved)
    across, along = computed_once(by_turned_mobod, row.S, r, given, held, sigma)
    by_axis, by_advance = computed_once(by_axis_and_advance, row.S, r, given, across, along, sigma)
    by_inertia = computed_once(squares_in_mobod, given, r, row.squares[0])
    return wo.parts(by_frame, by_axis, by_inertia, by_advance)


def rotation_and_point(pose: Array) -> tuple[wo.Vector, wo.Vector]:
    """Nine numbers of the rotation and three of the point."""
    R, p = wo.take_apart(pose, 9, 3)
    return R, p


def by_direction(row: DiagonalRow, composite: wo.Vector) -> wo.Vector:
    """2 w_j I S_j, the gradient by the direction S_j."""
    inertia = composite[:6], composite[6:9], composite[9]
    return wo.scale(wo.times_inertia(inertia, list(row.S)), 2.0 * row.weight[0])


def motion_of_frame(given: RowsOfModel, passed: wo.Vector, is_first: Array | None) -> wo.Vector:
    """Gradient by a motion of F, at Fo in W, at the joint's first direction."""
    assert given.frames is not None
    force = passed if is_first is None else wo.scale(passed, is_first[0])
    return [*wo.add(force[:3], wo.cross(force[3:], list(given.frames[2]))), *force[3:]]


def in_inboard_body(given: RowsOfModel, moved: wo.Vector) -> wo.Vector:
    """The gradient by a motion of F, in P."""
    assert given.frames is not None
    back = wo.transpose(matrix(given.frames[0]))
    return [*wo.matvec(back, moved[:3]), *wo.matvec(back, moved[3:])]


def squares_in_mobod(given: RowsOfModel, r: wo.Vector, squares: Array) -> wo.Vector:
    """Gradient by the six moments, m p_MoMcm and m: C about Mo in M."""
    assert given.frames is not None
    W, u, z = wo.take_apart(squares, 6, 3, 1)
    back = wo.transpose(matrix(given.frames[1]))
    trace = W[0] + W[1] + W[2]
    at_Mo = wo.add(u, wo.subtract(wo.matvec(wo.symmetric(W), r), wo.scale(r, trace)))
    z = z - wo.dot(r, u) - wo.dot(r, at_Mo)
    turned = wo.symmetric_product(wo.matmul(back, wo.symmetric(W)), back)
    moments = [x if i == j else 2.0 * x for x, (i, j) in zip(turned, wo.SYMMETRIC_PAIRS, strict=True)]
    return wo.scale([*moments, *wo.scale(wo.matvec(back, at_Mo), -2.0), z], given.flags[0])
