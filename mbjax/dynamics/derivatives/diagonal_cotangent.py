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
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    ON_BASE,
    Row,
    array_of,
    in_one_kernel,
    kept_stage,
    read,
    row_of,
    rows_of,
    scan_inward,
    scan_paths,
    stage,
    walk_plan,
    zeros_of,
)
from mbjax.kinematics import OtherPoses, Pose, pose_across
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import direction_parents

from ..records.direction_rows import DirectionRows, calc_direction_rows, worlds_of
from ..records.placing_stages import shifted_inertia, turned_inertia
from ..records.spatial_records import RigidInertia
from .cotangent_by_model import RowsOfModel, by_axis_and_advance, by_turned_mobod, rows_of_model
from .cotangent_outward import (
    OwnRows,
    across_joint,
    calc_own_rows,
    ends_of_mobods,
    inboard_origin,
    screw_of_hinge,
)


class DiagonalCotangent(NamedTuple):
    """Gradient of a weighted sum of the M_jj; that by q is in terms of velocities."""

    q: Float[Array, " nv"]
    by_model: Float[Array, "nv k"] | None  # by what the model moves: `calc_model_change`


class Squares(NamedTuple):
    """Sums C of h hᵀ, h x v and v · v over a path, each direction weighted."""

    hh: wo.Vector
    hv: wo.Vector
    vv: Array
    shapes = 6, 3, 1


class Placed(NamedTuple):
    """Values along a direction's path."""

    pose: Pose  # R_WM and p_TM
    squares: Squares  # C


class PlacedDirections(NamedTuple):
    """Rows for the inward pass, one for each direction; `lasting` has the world's row first."""

    lasting: Placed
    S: wo.Vector
    inertia: RigidInertia  # of the mobod, at the last direction of a joint: moments, m p_TMcm, m
    moment: wo.Vector  # of C and this inertia
    p_TF: wo.Vector | None  # for the gradient by the model


class CompositeSums(NamedTuple):
    """Composite inertia, and K, of what is outboard."""

    composite: RigidInertia
    K: wo.Vector
    shapes = RigidInertia, 6


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
        S = array_of(rows.S)
        zero = zeros_of(CompositeSums, S.shape[2:], S.dtype)
        tables = rows.lasting, rows.p_TF
        return scan_inward(plan, sum_inward, elements, zero, staged=True, tables=tables)[0]

    rows = in_one_kernel(partial(place_outward, of_model=of_model), model, q, weight)
    given = rows_of_model(model, q, still, still) if of_model else None
    by_q, by_model = in_one_kernel(inward, rows, given, own.weight, own.is_first)
    return DiagonalCotangent(array_of(by_q)[:, 0], None if by_model is None else array_of(by_model))


def place_outward(
    model: MultibodyModel, q: Float[Array, " nq"], weight: Float[Array, " nv"], of_model: bool
) -> PlacedDirections:
    """The outward pass: poses, directions, inertias and C."""
    topology, still = model.topology, jnp.zeros_like(weight)
    rows, others = calc_direction_rows(model, q, still, None, False, None)
    own = calc_own_rows(topology, still, still, weight)
    worlds = worlds_of(rows, weight)
    identity = np.eye(4, 3, dtype=weight.dtype).reshape(12, *(1 for _ in worlds))
    pose = rows_of(Pose, jnp.broadcast_to(identity, (12, *worlds)))
    world = Placed(pose, zeros_of(Squares, worlds, weight.dtype))
    step = partial(place_direction, of_model=of_model)
    plan = walk_plan(direction_parents(topology))
    lasting, kept = scan_paths(plan, step, (rows, own), (), world, staged=True, tables=(others,))
    return PlacedDirections(lasting, *kept)


def place_direction(
    inboard: tuple[tuple, Placed], given: tuple[DirectionRows, OwnRows], others: OtherPoses | None, of_model: bool
) -> tuple[tuple[tuple, Placed], tuple]:
    """One step outward: pose and C up to this direction, with its S, inertia and their moment."""
    (_, (X_TP, squares)), (row, own) = inboard, given
    X_PM = pose_across(row.joint, others)
    (R, r), hinge = across_joint(X_TP.R, X_TP.p, X_PM, row.hinge_map, own.flags)
    S = screw_of_hinge(r, hinge)
    squares = add_squares(squares, S, own.weight)
    RJ, c = turned_inertia(R, row.inertia)
    inertia = placed_inertia(R, RJ, c, r, row.inertia.m)
    p_TF = inboard_origin(X_TP.R, X_PM, row.joint.point, r) if of_model else None
    return ((), Placed(Pose(R, r), squares)), (S, inertia, moment_of_mobod(squares, inertia), p_TF)


@stage
def placed_inertia(R: wo.Matrix, RJ: wo.Matrix, c: wo.Vector, r: wo.Vector, m: Array) -> RigidInertia:
    """The mobod's inertia about T in W."""
    return shifted_inertia(RigidInertia(wo.symmetric_product(RJ, R), c, m), r)


@stage
def add_squares(inboard: Squares, S: wo.Vector, weight: Array) -> Squares:
    """Adds the direction's own products, with its weight, to C."""
    h, v = S[:3], S[3:]
    weighted = wo.scale(h, weight)
    hh, hv = wo.add(inboard.hh, wo.symmetric_outer(weighted, h)), wo.add(inboard.hv, wo.cross(weighted, v))
    return Squares(hh, hv, inboard.vv + wo.dot(v, v) * weight)


@kept_stage
def moment_of_mobod(squares: Squares, inertia: RigidInertia) -> wo.Vector:
    """moment(C, I) of the mobod alone."""
    return moment_of(squares, inertia)


def moment_of(squares: Squares, inertia: RigidInertia) -> wo.Vector:
    """The sum of w_j S_j x* I S_j, from C of these directions and I."""
    (W, u, _), (J, c, m) = squares, inertia
    JW = wo.matmul(wo.symmetric(J), wo.symmetric(W))
    turning = [JW[2][1] - JW[1][2], JW[0][2] - JW[2][0], JW[1][0] - JW[0][1]]
    trace = W[0] + W[1] + W[2]
    force = wo.add(wo.scale(u, m), wo.subtract(wo.matvec(wo.symmetric(W), c), wo.scale(c, trace)))
    return [*wo.add(turning, wo.cross(c, u)), *force]


class DiagonalRow(NamedTuple):
    """One direction as the inward pass reads it, about T in W."""

    S: wo.Vector
    inertia: RigidInertia
    moment: wo.Vector
    weight: Array
    is_first: Array | None  # where joints have several directions
    pose: Pose  # of m
    squares: tuple[Squares, Squares]  # C of m, and of its parent


def sum_inward(
    outboard: CompositeSums, element: tuple, lasting: Placed, p_TF: wo.Vector | None
) -> tuple[CompositeSums, tuple]:
    """One step inward: sums over what is outboard, and this direction's gradient by q and by the model."""
    (S, inertia, moment, weight, is_first), given, ends = element
    (first, last, parent), late = (read(x) for x in ends), isinstance(ends[0], Row)
    at = partial(row_of, late=late)
    squares = at(lasting.squares, last), at(lasting.squares, parent)
    row = DiagonalRow(S, inertia, moment, weight, is_first, at(lasting.pose, last), squares)
    composite, K = add_outboard(outboard, inertia, moment)
    joint = moment_of_joint(squares, composite)
    by_q = gradient_by_q(row, K, joint)
    K_inboard = with_moment_of_joint(K, joint, is_first)
    handed_on = CompositeSums(composite, K_inboard)
    if given is None or p_TF is None:
        return handed_on, (by_q, None)
    given = given._replace(frames=(at(lasting.pose, parent).R, row.pose.R, at(p_TF, first)))
    return handed_on, (by_q, gradient_by_model(row, given, composite, K, K_inboard))


@stage
def add_outboard(outboard: CompositeSums, inertia: RigidInertia, moment: wo.Vector) -> CompositeSums:
    """The composite inertia, and K."""
    (J, c, m), own = outboard.composite, inertia
    composite = RigidInertia(wo.add(J, own.J), wo.add(c, own.c), m + own.m)
    return CompositeSums(composite, wo.subtract(outboard.K, wo.scale(moment, 2.0)))


@stage
def moment_of_joint(squares: tuple[Squares, Squares], composite: RigidInertia) -> wo.Vector:
    """2 moment(C^J, I) of the joint's directions and everything outboard."""
    (W, u, z), (W_p, u_p, z_p) = squares
    of_joint = Squares(wo.subtract(W, W_p), wo.subtract(u, u_p), z - z_p)
    return wo.scale(moment_of(of_joint, composite), 2.0)


@kept_stage
def gradient_by_q(row: DiagonalRow, K: wo.Vector, joint: wo.Vector) -> wo.Vector:
    """Gradient by the direction's own q: S · K + s · (force of 2 moment(C^J, I))."""
    by_q = wo.dot(row.S, K)
    if row.is_first is None:
        return [by_q]
    s = wo.subtract(row.S[3:], wo.cross(row.pose.p, row.S[:3]))
    return [by_q + wo.dot(s, joint[3:])]


@stage
def with_moment_of_joint(K: wo.Vector, joint: wo.Vector, is_first: Array | None) -> wo.Vector:
    """K with the joint's moment, which its first direction adds: the gradient by a motion of F in P there."""
    return wo.add(K, joint if is_first is None else wo.scale(joint, is_first))


def gradient_by_model(
    row: DiagonalRow, given: RowsOfModel, composite: RigidInertia, K: wo.Vector, K_inboard: wo.Vector
) -> wo.Vector:
    """Gradient by the numbers of a direction's row of `calc_model_change`."""
    sigma = by_direction(row.S, row.weight, composite)
    by_frame = in_inboard_body(given, motion_of_frame(given, K_inboard, row.is_first))
    across, along_axis = by_turned_mobod(row.S, row.pose.p, given, K, sigma)
    by_axis, by_advance = by_axis_and_advance(row.S, row.pose.p, given, across, along_axis, sigma)
    return [*by_frame, *by_axis, *squares_in_mobod(given, row.pose.p, row.squares[0]), *by_advance]


@stage
def by_direction(S: wo.Vector, weight: Array, composite: RigidInertia) -> wo.Vector:
    """2 w_j I S_j, the gradient by the direction S_j."""
    return wo.scale(wo.times_inertia(composite, S), 2.0 * weight)


@stage
def motion_of_frame(given: RowsOfModel, K: wo.Vector, is_first: Array | None) -> wo.Vector:
    """Gradient by a motion of F, at Fo in W, at the joint's first direction."""
    assert given.frames is not None
    force = K if is_first is None else wo.scale(K, is_first)
    return [*wo.add(force[:3], wo.cross(force[3:], given.frames[2])), *force[3:]]


@stage
def in_inboard_body(given: RowsOfModel, moved: wo.Vector) -> wo.Vector:
    """The gradient by a motion of F, in P."""
    assert given.frames is not None
    back = wo.transpose(given.frames[0])
    return [*wo.matvec(back, moved[:3]), *wo.matvec(back, moved[3:])]


@stage
def squares_in_mobod(given: RowsOfModel, r: wo.Vector, squares: Squares) -> wo.Vector:
    """Gradient by the six moments, m p_MoMcm and m: C about Mo in M."""
    assert given.frames is not None
    W, u, z = squares
    back = wo.transpose(given.frames[1])
    trace = W[0] + W[1] + W[2]
    at_Mo = wo.add(u, wo.subtract(wo.matvec(wo.symmetric(W), r), wo.scale(r, trace)))
    z = z - wo.dot(r, u) - wo.dot(r, at_Mo)
    turned = wo.symmetric_product(wo.matmul(back, wo.symmetric(W)), back)
    moments = [x if i == j else 2.0 * x for x, (i, j) in zip(turned, wo.SYMMETRIC_PAIRS, strict=True)]
    return wo.scale([*moments, *wo.scale(wo.matvec(back, at_Mo), -2.0), z], given.flags.is_last)
