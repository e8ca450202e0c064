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
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    ON_BASE,
    Row,
    array_of,
    in_one_kernel,
    kept_stage,
    read,
    row_of,
    scan_inward,
    stage,
    walk_plan,
    zeros_of,
)
from mbjax.joints import JOINT_KINDS, AbstractJoint
from mbjax.kinematics import all_feel_gravity
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import direction_parents

from ..records.direction_rows import PlacedRows
from ..records.spatial_records import RigidInertia
from .cotangent_by_model import CotangentSums, RowsOfModel, gradient_by_model, rows_of_model
from .cotangent_outward import (
    Lasting,
    PathMotion,
    PathRow,
    PathRows,
    calc_own_rows,
    calc_weighted_motion,
    ends_of_mobods,
    parent_of,
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
        elements, tables = ((rows.inertia, rows.S, weight, is_first), given, ends), (rows.lasting, rows.p_TF)
        S = array_of(rows.S)
        zero = zeros_of(CotangentSums, S.shape[2:], S.dtype)
        return scan_inward(plan, gather_inward, elements, zero, staged=True, tables=tables)

    outward = partial(calc_weighted_motion, gravity=gravity, of_model=of_model)
    rows = in_one_kernel(outward, model, q, v, vdot, weight, None if of_model else placed)
    given = rows_of_model(model, q, v, vdot) if of_model else None
    (by_state, by_model), sums = in_one_kernel(inward, rows, given, own.weight, own.is_first)
    force = array_of(sums)[9:12]  # of `sums.G`
    by_q, by_v, by_vdot = jnp.unstack(array_of(by_state), axis=1)
    by_model = None if by_model is None else array_of(by_model)
    return TorqueCotangent(by_q, by_v, by_vdot, by_model, -force if gravity else jnp.zeros_like(force))


def gather_inward(
    outboard: CotangentSums, element: tuple, lasting: Lasting, p_TF: wo.Vector | None
) -> tuple[CotangentSums, tuple]:
    """One step inward: sums over what is outboard, and this direction's gradient by the state and by the model."""
    (inertia, *own), given, ends = element
    row, given = looked_up(own, given, ends, lasting, p_TF)
    sums = add_mobod(outboard, row.motion.Lambda, of_mobod(row.motion, inertia))
    rates = rates_of_direction(row.motion, row.S)
    if row.is_first is not None:
        rates = rates_within_joint(row, rates)
    by_state, P = gradient_of_direction(row, sums, rates), moment_inboard(row, sums)
    return sums._replace(P=P), (by_state, None if given is None else gradient_by_model(row, given, sums))


def looked_up(
    own: list, given: RowsOfModel | None, ends: tuple, lasting: Lasting, p_TF: wo.Vector | None
) -> tuple[PathRow, RowsOfModel | None]:
    """Rows of a direction, with those looked up at other directions: at the last of m, and of p or the world."""
    (S, weight, is_first), (first, last, parent) = own, (read(x) for x in ends)
    at = partial(row_of, late=isinstance(ends[0], Row))
    of_parent = None if is_first is None and given is None else at(lasting.motion, parent)
    row = PathRow(S, at(lasting.motion, last), weight, at(lasting.p_TM, last), of_parent, is_first)
    if given is not None:
        assert lasting.R_WM is not None
        assert p_TF is not None
        given = given._replace(frames=(at(lasting.R_WM, parent), at(lasting.R_WM, last), at(p_TF, first)))
    return row, given


class MobodTerms(NamedTuple):
    """F and G of a mobod, its Y without 2 hf x Λ_v, and its translational momentum hf."""

    F: wo.Vector
    G: wo.Vector
    Y: wo.Vector
    hf: wo.Vector


@stage
def of_mobod(motion: PathMotion, inertia: RigidInertia) -> MobodTerms:
    """F = I A + V x* I V, G = I Λ, and Kᵀ Λ_w; zero except at the last direction of a joint."""
    (V, A, Lambda), (J, c, _) = motion, inertia
    w, v, x = V[:3], V[3:], Lambda[:3]
    momentum, by_A, G = (wo.times_inertia(inertia, X) for X in (V, A, Lambda))
    F = wo.add(by_A, wo.force_cross(V, momentum))
    turned = wo.cross(w, x)
    trace = J[0] + J[1] + J[2]
    Y = wo.subtract(wo.scale(turned, trace), wo.scale(wo.matvec(wo.symmetric(J), turned), 2.0))
    Y = wo.add(Y, wo.scale(wo.subtract(wo.scale(x, wo.dot(c, v)), wo.scale(c, wo.dot(v, x))), 2.0))
    return MobodTerms(F, G, Y, momentum[3:])


@stage
def add_mobod(outboard: CotangentSums, Lambda: wo.Vector, own: MobodTerms) -> CotangentSums:
    """Adds the mobod's own terms to the sums F, G, Y and P."""
    Y = wo.add(outboard.Y, own.Y, wo.scale(wo.cross(own.hf, Lambda[3:]), 2.0))
    P = wo.subtract(outboard.P, wo.force_cross(Lambda, own.F))
    return CotangentSums(wo.add(outboard.F, own.F), wo.add(outboard.G, own.G), Y, P)


class DirectionRates(NamedTuple):
    """How S, B and V along a direction change: B, E and dS/dt."""

    B: wo.Vector
    E: wo.Vector
    dS: wo.Vector


@stage
def rates_of_direction(motion: PathMotion, S: wo.Vector) -> DirectionRates:
    """B = dS/dt = V x S and E = A x S + V x B, of a joint with one direction."""
    B = wo.motion_cross(motion.V, S)
    return DirectionRates(B, wo.add(wo.motion_cross(motion.A, S), wo.motion_cross(motion.V, B)), B)


@stage
def rates_within_joint(row: PathRow, rates: DirectionRates) -> DirectionRates:
    """B, E and dS/dt of one of a joint's several directions.

    With P = [0; s x w^J], Q = [0; s x alpha^J] and dS/dt = V_p x S + [0; v^J x h].
    """
    (V, A, _), (V_p, A_p, _), (B, E, _), S, r = row.motion, parent_of(row), rates, row.S, row.p_TM
    h, (w, v) = S[:3], relative_motion(V, V_p, r)
    s = wo.subtract(S[3:], wo.cross(r, h))
    alpha = wo.subtract(wo.subtract(A[:3], A_p[:3]), wo.cross(V_p[:3], w))
    P, Q = wo.cross(s, w), wo.cross(s, alpha)
    dS = wo.motion_cross(V_p, S)
    moved = wo.add(Q, wo.cross(V[:3], P), wo.cross(V_p[:3], P))
    return DirectionRates(
        [*B[:3], *wo.add(B[3:], P)],
        [*E[:3], *wo.add(E[3:], moved)],
        [*dS[:3], *wo.add(dS[3:], wo.cross(v, h))],
    )


@kept_stage
def gradient_of_direction(row: PathRow, sums: CotangentSums, rates: DirectionRates) -> wo.Vector:
    """Gradient by q, v and v̇ of one direction."""
    (F, G, Y, P), (B, E, dS), S = sums, rates, row.S
    by_q = wo.dot(S, P) + wo.dot(E, G) + wo.dot(B[:3], Y)
    if row.is_first is not None:
        s = wo.subtract(S[3:], wo.cross(row.p_TM, S[:3]))
        turned = wo.subtract(row.motion.Lambda[:3], parent_of(row).Lambda[:3])
        by_q = by_q + wo.dot(s, wo.cross(turned, F[3:]))
    by_v = wo.dot(wo.add(B, dS), G) + wo.dot(S[:3], Y)
    return [by_q, by_v, wo.dot(S, G)]


@kept_stage
def moment_inboard(row: PathRow, sums: CotangentSums) -> wo.Vector:
    """P to hand inward; a joint's first direction adds Λ^J x* F, which directions inboard of the joint read."""
    if row.is_first is None:
        return wo.add(sums.P, wo.force_cross(wo.scale(row.S, row.weight), sums.F))
    joint = wo.subtract(row.motion.Lambda, parent_of(row).Lambda)
    return wo.add(sums.P, wo.scale(wo.force_cross(joint, sums.F), row.is_first))
