"""The gradient of λ · inverse_dynamics by what the model moves, as steps of `recursive_torque_gradient`.

With its letters, and Λ^J and Y of the joint and of all beyond it, about T in W

    N(V, A) = V x* (V x* G - [Y; 0]) - A x* G           D = V x Λ
    σ_j     = λ_j F + v_j [Y; 0] + v̇_j G - v_j (V_p + V_m) x* G

    by a motion of F in P             P + Λ^J x* F + N(V_p, A_p)
    by a motion of M in F             P + N(V_m, A_m), and of a translation h_j x σ_j
    by the hinge map of j             σ_j
    by the inertia I of m             X · I Y of (X, Y) = (Λ, A), less that of (D, V)
"""

from typing import Any, NamedTuple

import equinox as eqx
from jaxtyping import Array, Float

from mbjax.kinematics import calc_body_placement, calc_joint_kinematics, turning
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.tangents import with_zeros
from mbjax.topology import take

from .direction_rows import calc_inertias
from .weighted_motion import PathRows, RowsOfModel, point_and_parent


class ModelChange(NamedTuple):
    """What a change of the model moves at the same q, of each direction; and the gradient by that.

    A motion is a rotation and the velocity of the moving frame's origin. None where nothing moves.
    """

    inboard: Float[Array, "6 nd ..."] | None  # a motion of F in P, in F
    outboard: Float[Array, "6 nd ..."] | None  # a motion of M in F, in F
    hinge_map: Float[Array, "6 nd ..."] | None  # in F
    inertia: Float[Array, "10 nd ..."] | None  # of the mobod about Mo, in M: moments, m p_MoMcm, m
    gravity: Float[Array, "3 ..."] | None


def calc_model_change(model: MultibodyModel, dmodel: Any, q: Float[Array, " nq"]) -> ModelChange:
    """What `dmodel` moves, linear in it. The gradient has what belongs to a joint at its first or last direction."""

    def at(model: MultibodyModel) -> tuple:
        placement = calc_body_placement(model)
        joints = calc_joint_kinematics(model, placement, q)
        return (
            (placement.R_PF, placement.p_PF),
            joints[:2],
            joints[2],
            calc_inertias(model)[0],
            model.parameters.gravity,
        )

    (F, M, *_), (dF, dM, dH_F, dinertia, dgravity) = eqx.filter_jvp(at, (model,), (dmodel,))
    back, owner = ca.transpose(F[0]), model.topology.velocity_mobods
    inboard, outboard, inertia = with_zeros(dF, F), with_zeros(dM, M), dinertia
    if inboard is not None:
        parts = turning(F[0], inboard[0]), inboard[1]
        inboard = take(ca.concatenate([ca.matvec(back, x) for x in parts], 0), owner, 1)
    if outboard is not None:
        outboard = take(ca.concatenate([turning(M[0], outboard[0]), outboard[1]], 0), owner, 1)
    return ModelChange(inboard, outboard, dH_F, None if inertia is None else take(inertia, owner, 1), dgravity)


Sums = tuple[wo.Vector, wo.Vector, wo.Vector, wo.Vector]  # F, G, Y and P of what a direction moves


def by_inboard_motion(row: PathRows, given: RowsOfModel, sums: Sums) -> wo.Vector:
    """P + Λ^J x* F + N(V_p, A_p), at Fo in F."""
    (F, *_), (_, V_p, A_p, weighted_p) = sums, point_and_parent(row)
    R_WF, p_TF, _ = wo.take_apart(given.frames, (3, 3), 3, (3, 3))
    joint = wo.subtract(list(row.motion[12:]), weighted_p)
    found = at_point_in_frame(R_WF, p_TF, wo.add(by_moved_frame(sums, V_p, A_p), wo.force_cross(joint, F)))
    return found if row.is_first is None else wo.scale(found, row.is_first[0])


def by_outboard_motion(row: PathRows, given: RowsOfModel, sums: Sums) -> wo.Vector:
    """P + N(V, A), at Mo in F, of the last direction."""
    (V, A, _), (r, *_) = wo.take_apart(row.motion, 6, 6, 6), point_and_parent(row)
    R_WF, *_ = wo.take_apart(given.frames, (3, 3), 3, (3, 3))
    return wo.scale(at_point_in_frame(R_WF, r, by_moved_frame(sums, V, A)), given.rates[2])


def by_moved_frame(sums: Sums, V: wo.Vector, A: wo.Vector) -> wo.Vector:
    """P + V x* (V x* G - [Y; 0]) - A x* G."""
    _, G, Y, P = sums
    within = wo.force_cross(V, G)
    within = [*wo.subtract(within[:3], Y), *within[3:]]
    return wo.subtract(wo.add(P, wo.force_cross(V, within)), wo.force_cross(A, G))


def by_hinge_map(row: PathRows, given: RowsOfModel, sums: Sums) -> tuple[wo.Vector, wo.Vector]:
    """σ at Mo, and h x σ as a force, in F."""
    (F, G, Y, _), (v, vdot, _), (r, V_p, *_) = sums, given.rates, point_and_parent(row)
    R_WF, *_ = wo.take_apart(given.frames, (3, 3), 3, (3, 3))
    carried = wo.force_cross(wo.add(V_p, list(row.motion[:6])), G)
    sigma = wo.add(wo.scale(F, row.own[0]), wo.scale(G, vdot), wo.scale(carried, -v))
    sigma = [*wo.add(sigma[:3], wo.scale(Y, v)), *sigma[3:]]
    turned = wo.matvec(wo.transpose(R_WF), wo.cross(list(row.S[:3]), sigma[3:]))
    return at_point_in_frame(R_WF, r, sigma), turned


def by_inertia(row: PathRows, given: RowsOfModel) -> wo.Vector:
    """By six moments, c and m, of X · I Y = x · (J y + c x y') + x' · (m y' + y x c), motions taken at Mo in M."""
    (V, A, weighted), (r, *_) = wo.take_apart(row.motion, 6, 6, 6), point_and_parent(row)
    *_, R = wo.take_apart(given.frames, (3, 3), 3, (3, 3))

    def in_mobod(X: wo.Vector) -> wo.Vector:
        back = wo.transpose(R)
        return [*wo.matvec(back, X[:3]), *wo.matvec(back, wo.add(X[3:], wo.cross(X[:3], r)))]

    def of_product(X: wo.Vector, Y: wo.Vector) -> wo.Vector:
        (x, x_), (y, y_) = (X[:3], X[3:]), (Y[:3], Y[3:])
        moments = [x[i] * y[i] if i == j else x[i] * y[j] + x[j] * y[i] for i, j in wo.SYMMETRIC_PAIRS]
        return [*moments, *wo.add(wo.cross(y_, x), wo.cross(x_, y)), wo.dot(x_, y_)]

    V, A, weighted = in_mobod(V), in_mobod(A), in_mobod(weighted)
    found = wo.subtract(of_product(weighted, A), of_product(wo.motion_cross(V, weighted), V))
    return wo.scale(found, given.rates[2])


def at_point_in_frame(R: wo.Matrix, r: wo.Vector, F: wo.Vector) -> wo.Vector:
    """A force F about T as one about the point at r, in the frame of R."""
    back = wo.transpose(R)
    return [*wo.matvec(back, wo.add(F[:3], wo.cross(F[3:], r))), *wo.matvec(back, F[3:])]
