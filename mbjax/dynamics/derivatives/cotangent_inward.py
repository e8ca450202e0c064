"""The cotangent of inverse dynamics, the gradient of λ · tau, as a recursion with one direction per step.

It is the transpose of `tangent.py`, with the same letters, for trees of joints whose hinge maps are constant in F.
Gravity acts on every body or on none. About T, the tree's origin, in W, with Λ = the sum of S_k λ_k over the path, m
the mobod of j's joint and p its parent, and sums over what j moves of

    F = I A + V x* I V,    G = I Λ,    Y = Kᵀ Λ_w + 2 hf x Λ_v,    P = -Λ x* F,  and  Λ^J x* F  of the joints beyond m

    gradient by q_j    S_j · P + E_j · G + B_j · Y + s_j · (Λ^J x f)
    gradient by v_j    (B_j + dS_j/dt) · G + S_j · Y
    gradient by v̇_j    S_j · G

where in B · Y only the rotation of B counts, and X^J is X of m less X of p: for a joint of one direction, S_j times a
number. The gradient by the model's frames and inertias stands in `cotangent_by_model.py`, the outward pass in
`cotangent_outward.py`.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
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
    row_of,
    scan_inward,
    walk_plan,
)
from mbjax.joints import JOINT_KINDS, AbstractJoint
from mbjax.kinematics import all_feel_gravity
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import direction_parents

from ..records.direction_rows import PlacedRows
from .cotangent_by_model import RowsOfModel, gradient_by_model, rows_of_model
from .cotangent_outward import (
    Lasting,
    PathRow,
    PathRows,
    calc_own_rows,
    calc_weighted_motion,
    ends_of_mobods,
    point_and_parent,
    relative_motion,
)


class TorqueCotangent(NamedTuple):
    """Gradient of a number that is linear in the torques of inverse dynamics; that by q is in terms of velocities."""

    q: Float[Array, " nv"]
    v: Float[Array, " nv"]
    vdot: Float[Array, " nv"]
    by_model: Float[Array, "nv k"] | None  # by what the model moves: `calc_model_change`
    by_gravity: Float[Array, "3"]


def has_torque_cotangent(model: MultibodyModel) -> bool:
    """Whether the recursion applies: hinge maps constant in F, no mimicking joints, and gravity on all bodies."""
    kinds = (JOINT_KINDS[kind] for kind, _ in model.topology.mobods_by_kind)
    constant = all(kind.hinge_map_rate is AbstractJoint.hinge_map_rate for kind in kinds)
    simple = model.topology.num_velocities > 0 and not model.topology.followers
    return constant and simple and all_feel_gravity(model)


def calc_torque_cotangent(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
    weight: Float[Array, " nv"],
    gravity: bool,
    of_model: bool = False,
    placed: PlacedRows | None = None,
) -> TorqueCotangent:
    """Gradient of `weight` · inverse_dynamics, with or without `gravity`; with `of_model` by what the model moves too.

    Rows that are already `placed` are reused, except with `of_model`, which needs frames that they do not hold.
    """
    plan = walk_plan(tuple(parent or ON_BASE for parent in direction_parents(model.topology)))
    own = calc_own_rows(model.topology, v, vdot, weight)

    def inward(rows: PathRows, given: RowsOfModel | None, weight: Array, is_first: Array | None) -> tuple[tuple, Array]:
        ends = jax.tree.map(jnp.asarray, ends_of_mobods(model.topology))
        elements, tables = ((rows.S, rows.inertia, weight, is_first), given, ends), (rows.lasting, rows.p_TF)
        zero = jnp.zeros((21, *rows.S.shape[2:]), rows.S.dtype)
        return scan_inward(plan, gather_inward, elements, zero, staged=True, tables=tables)

    outward = partial(calc_weighted_motion, gravity=gravity, of_model=of_model)
    rows = in_one_kernel(outward, model, q, v, vdot, weight, None if of_model else placed)
    given = rows_of_model(model, q, v, vdot) if of_model else None
    (by_state, by_model), sums = in_one_kernel(inward, rows, given, own.weight, own.is_first)
    by_gravity = -sums[9:12] if gravity else jnp.zeros_like(sums[9:12])
    by_q, by_v, by_vdot = jnp.unstack(by_state, axis=1)
    return TorqueCotangent(by_q, by_v, by_vdot, by_model, by_gravity)


def gather_inward(outboard: ScannedRow, element: tuple, lasting: Lasting, p_TF: Any) -> tuple[Array, tuple]:
    """One step inward: sums over what is outboard, and this direction's gradient by the state and by the model."""
    own, given, ends = element
    row, given = looked_up(own, given, ends, lasting, p_TF)
    F, G, Y, hf_part = computed_once(of_mobod, row.motion, row.inertia)
    sums = computed_once(add_mobod_sums, outboard, row.motion, F, G, Y, hf_part)
    B, E, dS = computed_once(rates_of_direction, row)
    if row.is_first is not None:
        B, E, dS = computed_once(rates_within_joint, row, B, E)
    by_state = wo.parts(computed_where_kept(gradient_of_direction, row, sums, B, E, dS))
    handed_on = wo.parts(*sums[:3], computed_where_kept(hand_on, row, sums))
    return handed_on, (by_state, None if given is None else gradient_by_model(row, given, sums))


def looked_up(
    own: tuple, given: RowsOfModel | None, ends: tuple, lasting: Lasting, p_TF: Array | None
) -> tuple[PathRow, RowsOfModel | None]:
    """Rows of a direction, with those looked up at other directions: at the last of m, and of p or the world."""
    (S, inertia, weight, is_first), (first, last, parent) = own, (read(x) for x in ends)
    at = partial(row_of, late=isinstance(ends[0], Row))
    of_parent = None if is_first is None and given is None else at(lasting.motion, parent)
    row = PathRow(S, at(lasting.motion, last), inertia, weight, at(lasting.p_TM, last), of_parent, is_first)
    if given is not None:
        assert lasting.R_WM is not None
        assert p_TF is not None
        given = given._replace(frames=(at(lasting.R_WM, parent), at(lasting.R_WM, last), at(p_TF, first)))
    return row, given


def of_mobod(motion: RowEntries, inertia: RowEntries) -> tuple:
    """F, G, and Y in two parts, of the mobod; zero except at the last direction of a joint."""
    (V, A, weighted), (J, c, m) = wo.take_apart(motion, 6, 6, 6), wo.take_apart(inertia, 6, 3, 1)
    w, v, x = V[:3], V[3:], weighted[:3]
    momentum, by_A, G = (wo.times_inertia((J, c, m), X) for X in (V, A, weighted))
    F = wo.add(by_A, wo.force_cross(V, momentum))
    turned = wo.cross(w, x)
    trace = J[0] + J[1] + J[2]
    Y = wo.subtract(wo.scale(turned, trace), wo.scale(wo.matvec(wo.symmetric(J), turned), 2.0))
    Y = wo.add(Y, wo.scale(wo.subtract(wo.scale(x, wo.dot(c, v)), wo.scale(c, wo.dot(v, x))), 2.0))
    return F, G, Y, momentum[3:]


def add_mobod_sums(
    outboard: RowEntries, motion: RowEntries, F: wo.Vector, G: wo.Vector, Y: wo.Vector, hf: wo.Vector
) -> tuple:
    """Adds the mobod's own terms to the sums F, G, Y and P."""
    F_sum, G_sum, Y_sum, P_sum = wo.take_apart(outboard, 6, 6, 3, 6)
    weighted = list(motion[12:])
    Y = wo.add(Y_sum, Y, wo.scale(wo.cross(hf, weighted[3:]), 2.0))
    return wo.add(F_sum, F), wo.add(G_sum, G), Y, wo.subtract(P_sum, wo.force_cross(weighted, F))


def rates_of_direction(row: PathRow) -> tuple:
    """B, E and dS/dt of a joint with one direction."""
    (V, A, _), S = wo.take_apart(row.motion, 6, 6, 6), list(row.S)
    B = wo.motion_cross(V, S)
    return B, wo.add(wo.motion_cross(A, S), wo.motion_cross(V, B)), B


def rates_within_joint(row: PathRow, B: wo.Vector, E: wo.Vector) -> tuple:
    """B, E and dS/dt of one of a joint's several directions.

    With P = [0; s x w^J], Q = [0; s x alpha^J] and dS/dt = V_p x S + [0; v^J x h].
    """
    (V, A, _), S = wo.take_apart(row.motion, 6, 6, 6), list(row.S)
    r, V_p, A_p, _ = point_and_parent(row)
    h, (w, v) = S[:3], relative_motion(V, V_p, r)
    s = wo.subtract(S[3:], wo.cross(r, h))
    alpha = wo.subtract(wo.subtract(A[:3], A_p[:3]), wo.cross(V_p[:3], w))
    P, Q = wo.cross(s, w), wo.cross(s, alpha)
    dS = wo.motion_cross(V_p, S)
    moved = wo.add(Q, wo.cross(V[:3], P), wo.cross(V_p[:3], P))
    return (
        [*B[:3], *wo.add(B[3:], P)],
        [*E[:3], *wo.add(E[3:], moved)],
        [*dS[:3], *wo.add(dS[3:], wo.cross(v, h))],
    )


def gradient_of_direction(row: PathRow, sums: tuple, B: wo.Vector, E: wo.Vector, dS: wo.Vector) -> wo.Vector:
    """Gradient by q, v and v̇ of one direction."""
    (F, G, Y, P), S = sums, list(row.S)
    by_q = wo.dot(S, P) + wo.dot(E, G) + wo.dot(B[:3], Y)
    if row.is_first is not None:
        r, _, _, weighted_p = point_and_parent(row)
        s, turned = wo.subtract(S[3:], wo.cross(r, S[:3])), wo.subtract(list(row.motion[12:15]), weighted_p[:3])
        by_q = by_q + wo.dot(s, wo.cross(turned, F[3:]))
    by_v = wo.dot(wo.add(B, dS), G) + wo.dot(S[:3], Y)
    return [by_q, by_v, wo.dot(S, G)]


def hand_on(row: PathRow, sums: tuple) -> wo.Vector:
    """P to hand inward; a joint's first direction adds Λ^J x* F, which directions inboard of the joint read."""
    F, _, _, P = sums
    if row.is_first is None:
        return wo.add(P, wo.force_cross(wo.scale(list(row.S), row.weight[0]), F))
    assert row.of_parent is not None
    joint = wo.subtract(list(row.motion[12:]), list(row.of_parent[12:]))
    return wo.add(P, wo.scale(wo.force_cross(joint, F), row.is_first[0]))
