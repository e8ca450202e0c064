"""The gradient of λ · inverse_dynamics by what the model moves, as steps of the recursion in `cotangent_inward.py`.

Letters are those of `cotangent_inward.py`; Y counts as a pure moment, r is the point Mo, and a the joint's axis, which
is the same in F and in M. About T in W:

    K      = P + V x* (V x* G - Y) - A x* G                   by a motion of m, the directions of its joint held
    σ_j    = λ_j F + v_j Y + v̇_j G - v_j (V_p + V_m) x* G     by the direction S_j
    y, l   = (moment of K about Mo) x h,  σ_v + q (force of K + h x σ_v)

    by a motion of F in P      K + the sum of S_j x* σ_j over the joint's directions + the moment (v^J x w^J) x G_v
    by the axis as P has it    σ_w about Mo where the joint turns, + y + l times its advance
    by the axis as M has it    -y
    by the advance             a · l
    by the inertia I of m      X · I Z of (X, Z) = (Λ, A), less that of (V x Λ, V)

A change of F carries the joint's directions along, and a change of the axis turns M, by the turn of F less its own.
The advance is how far the joint goes along its axis as q grows by one.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.arrays import take
from mbjax.execution.derivative_rules import with_zeros
from mbjax.execution.recursions import rows_of, stage
from mbjax.kinematics import (
    axis_kinds,
    calc_advances,
    calc_body_placement,
    calc_model_placement,
    inertia_rows_of_mobods,
    placement_of,
    q_indices,
    turning,
)
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.topology import ends_of_joints

from ..records.direction_rows import directions_first
from .cotangent_outward import PathRow, parent_of, relative_motion


class AxisFlags(NamedTuple):
    """Whether a direction is the last of its joint, and turns about an axis: 1 or 0."""

    is_last: Array
    turns: Array
    shapes = 1, 1


class SlideRows(NamedTuple):
    """How far each direction goes along its axis as q grows by one, and q."""

    advance: Array
    q: Array


class RowsOfModel(NamedTuple):
    """Further rows, one for each direction, that the gradient by the model reads."""

    frames: tuple[wo.Matrix, wo.Matrix, wo.Vector] | None  # R_WP, R_WM, p_TF
    rates: tuple[Array, Array]  # v, v̇
    flags: AxisFlags
    slide: SlideRows | None  # None where no joint slides


class CotangentSums(NamedTuple):
    """F, G, Y and P of what a direction moves."""

    F: wo.Vector
    G: wo.Vector
    Y: wo.Vector
    P: wo.Vector
    shapes = 6, 6, 3, 6


def calc_model_change(
    model: MultibodyModel, dmodel: Any
) -> tuple[Float[Array, "nd k ..."], Float[Array, "3 ..."] | None]:
    """Tangents along `dmodel` of each direction's joint and mobod, and of gravity (None if fixed), linear in `dmodel`.

    A row holds the motion of F in P, as a rotation and the velocity of Fo, in P; the axis, in P and in M; the inertia
    about Mo, in M: moments, m p_MoMcm, m; and the advance, where a joint slides.
    """
    owner = model.topology.velocity_mobods
    kinds = axis_kinds(model, owner)

    def at(model: MultibodyModel) -> tuple:
        placement = placement_of(model) or calc_model_placement(model)
        bodies = placement.bodies
        advance = calc_advances(bodies, owner, kinds)
        moved = [bodies.R_PF, bodies.p_PF, bodies.axis, inertia_rows_of_mobods(placement.inertia)]
        return moved if advance is None else [*moved, advance], model.parameters.gravity

    (moved, _), (changes, dgravity) = eqx.filter_jvp(at, (model,), (dmodel,))
    dR_PF, dp_PF, daxis, dinertia, *dadvance = with_zeros(changes, moved) or jax.tree.map(jnp.zeros_like, moved)
    R_PF, *_ = moved
    of_mobods = ca.concatenate([turning(R_PF, dR_PF), dp_PF, ca.matvec(R_PF, daxis), daxis, dinertia], 0)
    change = ca.concatenate([take(of_mobods, owner, 1), *(x[None] for x in dadvance)], 0)
    return directions_first(change), dgravity


def rows_of_model(
    model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"], vdot: Float[Array, " nv"]
) -> RowsOfModel:
    """`RowsOfModel` of all directions, without the frames, which only the outward pass finds."""
    topology = model.topology
    owner = topology.velocity_mobods
    kinds = axis_kinds(model, owner)
    flags = np.stack([ends_of_joints(topology)[1], [kind is not None and kind.turns for kind in kinds]], 1)
    advance, slide = calc_advances(calc_body_placement(model), owner, kinds), None
    if advance is not None:
        q_own = take(q, q_indices(topology.mobod_q_starts, owner, q.shape[0]), 0)
        slide = SlideRows(rows_of(1, advance[:, None]), rows_of(1, q_own[:, None]))
    flags = jnp.asarray(flags, v.dtype).reshape(-1, 2, *(1 for _ in v.shape[1:]))
    rates = rows_of(1, v[:, None]), rows_of(1, vdot[:, None])
    return RowsOfModel(None, rates, rows_of(AxisFlags, flags), slide)


def gradient_by_model(row: PathRow, given: RowsOfModel, sums: CotangentSums) -> wo.Vector:
    """Gradient by the numbers of a direction's row of `calc_model_change`."""
    held = by_held_motion(row, sums)
    sigma = by_direction(row, given, sums)
    by_frame = by_inboard_motion(row, given, held, sigma, sums.G)
    across, along_axis = by_turned_mobod(row.S, row.p_TM, given, held, sigma)
    by_axis, by_advance = by_axis_and_advance(row.S, row.p_TM, given, across, along_axis, sigma)
    return [*by_frame, *by_axis, *by_inertia(row, given), *by_advance]


@stage
def by_held_motion(row: PathRow, sums: CotangentSums) -> wo.Vector:
    """K = P + V x* (V x* G - Y) - A x* G: the gradient by a motion of m, the directions of its joint held."""
    (_, G, Y, P), (V, A, _) = sums, row.motion
    within = wo.force_cross(V, G)
    within = [*wo.subtract(within[:3], Y), *within[3:]]
    return wo.subtract(wo.add(P, wo.force_cross(V, within)), wo.force_cross(A, G))


@stage
def by_direction(row: PathRow, given: RowsOfModel, sums: CotangentSums) -> wo.Vector:
    """σ = λ F + v Y + v̇ G - v (V_p + V_m) x* G: the gradient by the direction S."""
    (F, G, Y, _), (v, vdot) = sums, given.rates
    carried = wo.force_cross(wo.add(parent_of(row).V, row.motion.V), G)
    sigma = wo.add(wo.scale(F, row.weight), wo.scale(G, vdot), wo.scale(carried, -v))
    return [*wo.add(sigma[:3], wo.scale(Y, v)), *sigma[3:]]


@stage
def by_inboard_motion(row: PathRow, given: RowsOfModel, held: wo.Vector, sigma: wo.Vector, G: wo.Vector) -> wo.Vector:
    """This direction's part of the gradient by a motion of F, at Fo in P."""
    assert given.frames is not None
    R_WP, _, p_TF = given.frames
    if row.is_first is not None:
        w, v = relative_motion(row.motion.V, parent_of(row).V, row.p_TM)
        held = [*wo.add(held[:3], wo.cross(wo.cross(v, w), G[3:])), *held[3:]]
    force = wo.add(wo.scale(held, given.flags.is_last), wo.force_cross(row.S, sigma))
    back, moment = wo.transpose(R_WP), wo.add(force[:3], wo.cross(force[3:], p_TF))
    return [*wo.matvec(back, moment), *wo.matvec(back, force[3:])]


@stage
def by_turned_mobod(
    S: wo.Vector, p_TM: wo.Vector, given: RowsOfModel, held: wo.Vector, sigma: wo.Vector
) -> tuple[wo.Vector, wo.Vector | None]:
    """y = (moment of K about Mo) x h, and where a joint slides l = σ_v + q (force of K + h x σ_v)."""
    y = wo.cross(wo.add(held[:3], wo.cross(held[3:], p_TM)), S[:3])
    if given.slide is None:
        return y, None
    moved = wo.add(held[3:], wo.cross(S[:3], sigma[3:]))
    return y, wo.add(sigma[3:], wo.scale(moved, given.slide.q))


@stage
def by_axis_and_advance(
    S: wo.Vector, p_TM: wo.Vector, given: RowsOfModel, y: wo.Vector, along_axis: wo.Vector | None, sigma: wo.Vector
) -> tuple[wo.Vector, wo.Vector]:
    """Gradient by the axis in P and in M, and by the advance; arbitrary for joints without an axis."""
    assert given.frames is not None
    R_WP, R_WM, _ = given.frames
    turned = wo.add(sigma[:3], wo.cross(sigma[3:], p_TM))
    in_P, by_advance = wo.add(wo.scale(turned, given.flags.turns), y), []
    if along_axis is not None and given.slide is not None:
        in_P, by_advance = wo.add(in_P, wo.scale(along_axis, given.slide.advance)), [wo.dot(S[:3], along_axis)]
    in_M = wo.scale(wo.matvec(wo.transpose(R_WM), y), -1.0)
    return [*wo.matvec(wo.transpose(R_WP), in_P), *in_M], by_advance


@stage
def by_inertia(row: PathRow, given: RowsOfModel) -> wo.Vector:
    """Gradient by the six moments, c and m, from X · I Z = x · (J z + c x z') + x' · (m z' + z x c), at Mo in M."""
    assert given.frames is not None
    back = wo.transpose(given.frames[1])

    def in_mobod(X: wo.Vector) -> wo.Vector:
        return [*wo.matvec(back, X[:3]), *wo.matvec(back, wo.add(X[3:], wo.cross(X[:3], row.p_TM)))]

    def of_product(X: wo.Vector, Z: wo.Vector) -> wo.Vector:
        (x, x_), (z, z_) = (X[:3], X[3:]), (Z[:3], Z[3:])
        moments = [x[i] * z[i] if i == j else x[i] * z[j] + x[j] * z[i] for i, j in wo.SYMMETRIC_PAIRS]
        return [*moments, *wo.add(wo.cross(z_, x), wo.cross(x_, z)), wo.dot(x_, z_)]

    V, A, Lambda = map(in_mobod, row.motion)
    found = wo.subtract(of_product(Lambda, A), of_product(wo.motion_cross(V, Lambda), V))
    return wo.scale(found, given.flags.is_last)
