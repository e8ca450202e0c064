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
from mbjax.execution.recursions import computed_once
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
from .cotangent_outward import PathRow, matrix, point_and_parent, relative_motion


class RowsOfModel(NamedTuple):
    """Further rows, one for each direction, that the gradient by the model reads."""

    frames: tuple[Array, Array, Array] | None  # R_WP, R_WM, p_TF, of 9, 9 and 3 numbers
    rates: tuple[Float[Array, "nd 1 ..."], Float[Array, "nd 1 ..."]]  # v, v̇
    flags: Float[Array, "nd 2 ..."]  # whether it is the last of its joint, and turns about an axis
    slide: tuple[Float[Array, "nd 1 ..."], Float[Array, "nd 1 ..."]] | None  # advance, q; None where no joint slides


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
        slide = advance[:, None], take(q, q_indices(topology.mobod_q_starts, owner, q.shape[0]), 0)[:, None]
    flags = jnp.asarray(flags, v.dtype).reshape(-1, 2, *(1 for _ in v.shape[1:]))
    return RowsOfModel(None, (v[:, None], vdot[:, None]), flags, slide)


CotangentSums = tuple[wo.Vector, wo.Vector, wo.Vector, wo.Vector]  # F, G, Y and P of what a direction moves


def gradient_by_model(row: PathRow, given: RowsOfModel, sums: CotangentSums) -> Any:
    """Gradient by the numbers of a direction's row of `calc_model_change`."""
    held = computed_once(by_held_motion, row, sums)
    sigma = computed_once(by_direction, row, given, sums)
    by_frame = computed_once(by_inboard_motion, row, given, held, sigma, sums[1])
    across, along = computed_once(by_turned_mobod, row.S, row.p_TM, given, held, sigma)
    by_axis, by_advance = computed_once(by_axis_and_advance, row.S, row.p_TM, given, across, along, sigma)
    return wo.parts(by_frame, by_axis, computed_once(by_inertia, row, given), by_advance)


def by_held_motion(row: PathRow, sums: CotangentSums) -> wo.Vector:
    """K = P + V x* (V x* G - Y) - A x* G: the gradient by a motion of m, the directions of its joint held."""
    (_, G, Y, P), (V, A, _) = sums, wo.take_apart(row.motion, 6, 6, 6)
    within = wo.force_cross(V, G)
    within = [*wo.subtract(within[:3], Y), *within[3:]]
    return wo.subtract(wo.add(P, wo.force_cross(V, within)), wo.force_cross(A, G))


def by_direction(row: PathRow, given: RowsOfModel, sums: CotangentSums) -> wo.Vector:
    """σ = λ F + v Y + v̇ G - v (V_p + V_m) x* G: the gradient by the direction S."""
    (F, G, Y, _), (v, vdot), (_, V_p, *_) = sums, given.rates, point_and_parent(row)
    carried = wo.force_cross(wo.add(V_p, list(row.motion[:6])), G)
    sigma = wo.add(wo.scale(F, row.weight[0]), wo.scale(G, vdot[0]), wo.scale(carried, -v[0]))
    return [*wo.add(sigma[:3], wo.scale(Y, v[0])), *sigma[3:]]


def by_inboard_motion(row: PathRow, given: RowsOfModel, held: wo.Vector, sigma: wo.Vector, G: wo.Vector) -> wo.Vector:
    """This direction's part of the gradient by a motion of F, at Fo in P."""
    assert given.frames is not None
    is_last, (R_WP, _, p_TF) = given.flags[0], given.frames
    if row.is_first is not None:
        r, V_p, _, _ = point_and_parent(row)
        w, v = relative_motion(list(row.motion[:6]), V_p, r)
        held = [*wo.add(held[:3], wo.cross(wo.cross(v, w), G[3:])), *held[3:]]
    force = wo.add(wo.scale(held, is_last), wo.force_cross(list(row.S), sigma))
    back, moment = wo.transpose(matrix(R_WP)), wo.add(force[:3], wo.cross(force[3:], list(p_TF)))
    return [*wo.matvec(back, moment), *wo.matvec(back, force[3:])]


def by_turned_mobod(
    S: Array, p_TM: Array | wo.Vector, given: RowsOfModel, held: wo.Vector, sigma: wo.Vector
) -> tuple[wo.Vector, wo.Vector | None]:
    """y = (moment of K about Mo) x h, and where a joint slides l = σ_v + q (force of K + h x σ_v)."""
    y = wo.cross(wo.add(held[:3], wo.cross(held[3:], list(p_TM))), list(S[:3]))
    if given.slide is None:
        return y, None
    moved = wo.add(held[3:], wo.cross(list(S[:3]), sigma[3:]))
    return y, wo.add(sigma[3:], wo.scale(moved, given.slide[1][0]))


def by_axis_and_advance(
    S: Array, p_TM: Array | wo.Vector, given: RowsOfModel, across: wo.Vector, along: wo.Vector | None, sigma: wo.Vector
) -> tuple[wo.Vector, wo.Vector]:
    """Gradient by the axis in P and in M, and by the advance; arbitrary for joints without an axis."""
    assert given.frames is not None
    R_WP, R_WM, _ = given.frames
    turned = wo.add(sigma[:3], wo.cross(sigma[3:], list(p_TM)))
    in_P, by_advance = wo.add(wo.scale(turned, given.flags[1]), across), []
    if along is not None and given.slide is not None:
        in_P, by_advance = wo.add(in_P, wo.scale(along, given.slide[0][0])), [wo.dot(list(S[:3]), along)]
    in_M = wo.scale(wo.matvec(wo.transpose(matrix(R_WM)), across), -1.0)
    return [*wo.matvec(wo.transpose(matrix(R_WP)), in_P), *in_M], by_advance


def by_inertia(row: PathRow, given: RowsOfModel) -> wo.Vector:
    """Gradient by the six moments, c and m, from X · I Z = x · (J z + c x z') + x' · (m z' + z x c), at Mo in M."""
    assert given.frames is not None
    (V, A, weighted), (r, *_) = wo.take_apart(row.motion, 6, 6, 6), point_and_parent(row)
    back = wo.transpose(matrix(given.frames[1]))

    def in_mobod(X: wo.Vector) -> wo.Vector:
        return [*wo.matvec(back, X[:3]), *wo.matvec(back, wo.add(X[3:], wo.cross(X[:3], r)))]

    def of_product(X: wo.Vector, Z: wo.Vector) -> wo.Vector:
        (x, x_), (z, z_) = (X[:3], X[3:]), (Z[:3], Z[3:])
        moments = [x[i] * z[i] if i == j else x[i] * z[j] + x[j] * z[i] for i, j in wo.SYMMETRIC_PAIRS]
        return [*moments, *wo.add(wo.cross(z_, x), wo.cross(x_, z)), wo.dot(x_, z_)]

    V, A, weighted = in_mobod(V), in_mobod(A), in_mobod(weighted)
    found = wo.subtract(of_product(weighted, A), of_product(wo.motion_cross(V, weighted), V))
    return wo.scale(found, given.flags[0])
