"""The gradient of λ · inverse_dynamics by q and v as a recursion, one direction a step: of one world, on a CPU of many.

The transpose of `torque_change`, whose letters these are, for trees of joints whose hinge maps are constant in F. Every
body falls freely or has no weight. About T, the tree's origin, in W, with Λ = the sum of S_k λ_k over the path, m the
mobod of j's joint and p its parent, and sums over what j moves of

    F = I A + V x* I V,    G = I Λ,    Y = Kᵀ Λ_w + 2 hf x Λ_v,    P = -Λ x* F,  and  Λ^J x* F  of the joints beyond m

    gradient by q_j    S_j · P + E_j · G + B_j · Y + s_j · (Λ^J x f)
    gradient by v_j    (B_j + dS_j/dt) · G + S_j · Y
    gradient by v̇_j    S_j · G

where B and Y are rotations, and X^J what m has of X beyond p: of one direction its S_j times a number.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.joints import JOINT_KINDS, AbstractJoint
from mbjax.kinematics import bodies_with_gravity
from mbjax.model import MultibodyModel
from mbjax.one_kernel import computed_once, in_one_kernel
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents, scan_inward, scan_outward, take, walk_plan

from .direction_rows import DirectionRows, calc_direction_rows, ends_of_joints, worlds_of

SHAPES = ((3, 3), 3, 6, 6, 6)  # R_WM, p_TM, V, A, Λ
SHAPES_OF_PARENT = (6, 3, 6)  # V_p, alpha_p, Λ_p


class PathRows(NamedTuple):
    """Of each direction, about T in W."""

    S: Float[Array, "nd 6 ..."]
    motion: Float[Array, "nd 18 ..."]  # V, A and Λ of its mobod
    inertia: Float[Array, "nd 10 ..."]  # of the mobod, of the last direction of a joint: moments, m p_TMcm, m
    own: Float[Array, "nd 1 ..."]  # λ
    beyond: Float[Array, "nd 18 ..."] | None  # p_TM, V_p, alpha_p, Λ_p; where joints have several directions
    is_first: Float[Array, "nd 1 ..."] | None


def has_torque_gradient(model: MultibodyModel) -> bool:
    """Whether this recursion is for the model's tree."""
    kinds = (JOINT_KINDS[kind] for kind, _ in model.topology.mobods_by_kind)
    constant = all(kind.hinge_map_rate is AbstractJoint.hinge_map_rate for kind in kinds)
    return constant and not model.topology.followers and bool(bodies_with_gravity(model)[1:].all())


def calc_torque_gradient(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
    weight: Float[Array, " nv"],
    gravity: bool,
) -> tuple[Float[Array, " nv"], Float[Array, " nv"], Float[Array, " nv"]]:
    """By q, in the terms of velocities, by v and by vdot, of `weight` · inverse_dynamics, with `gravity` or none."""
    topology = model.topology
    plan = walk_plan(direction_parents(topology))

    def outward(model: MultibodyModel, q: Array, v: Array, vdot: Array, weight: Array) -> PathRows:
        rows = calc_direction_rows(model, q, v, vdot, True, None)
        worlds = worlds_of(rows, weight, model.parameters.gravity)
        zeros = jnp.zeros((21, *worlds), v.dtype)
        identity = jnp.broadcast_to(jnp.eye(3, dtype=v.dtype).reshape(9, *(1 for _ in worlds)), zeros[:9].shape)
        g = jnp.broadcast_to(model.parameters.gravity if gravity else jnp.zeros_like(zeros[:3]), zeros[:3].shape)
        of_parent = [] if rows.is_first is None else [zeros[:6], zeros[:3], zeros[:6]]
        world = jnp.concatenate([identity, zeros[:3], zeros[:6], zeros[:3], -g, zeros[:6], *of_parent])
        _, last = ends_of_joints(topology)
        flags = np.stack([topology.within_tree[topology.velocity_mobods], last], 1)
        flags = jnp.asarray(flags, v.dtype).reshape(-1, 2, *(1 for _ in worlds))
        return scan_outward(plan, move_outward, (rows, weight[:, None], flags), world)

    rows = in_one_kernel(outward, model, q, v, vdot, weight)
    if rows.is_first is not None:
        rows = rows._replace(motion=take(rows.motion, lasts_of_joints(topology), 0))

    def inward(rows: PathRows) -> Array:
        zero = jnp.zeros((21, *rows.S.shape[2:]), rows.S.dtype)
        return scan_inward(plan, gather_inward, rows, zero)[0]

    by_q, by_v, by_vdot = jnp.unstack(in_one_kernel(inward, rows), axis=1)
    return by_q, by_v, by_vdot


def lasts_of_joints(topology: TreeTopology) -> np.ndarray:
    """(nd,) the last direction of the joint of each."""
    owner = topology.velocity_mobods
    return np.array(topology.mobod_v_starts)[owner] + np.array(topology.mobod_num_velocities)[owner] - 1


def times_inertia(J: wo.Vector, c: wo.Vector, m: Array, X: wo.Vector) -> wo.Vector:
    """I X."""
    x, y = X[:3], X[3:]
    return [*wo.add(wo.matvec(wo.symmetric(J), x), wo.cross(c, y)), *wo.add(wo.scale(y, m), wo.cross(x, c))]


def move_outward(inboard: Array, given: tuple[DirectionRows, Array, Array]) -> tuple[Array, PathRows]:
    """Poses, V, A and Λ up to this direction; dS/dt = V_p x S, and v^J x h of several."""
    row, weight, flags = given
    several = row.is_first is not None
    shapes = (*SHAPES, *(SHAPES_OF_PARENT if several else ()))
    R_WF, p, of_parent = computed_once(partial(to_inboard_frame, shapes), inboard, row)
    R, r, h, s = computed_once(partial(across_joint, shapes), inboard, R_WF, p, row, flags)
    S = computed_once(lambda r, h, s: [*h, *wo.add(s, wo.cross(r, h))], r, h, s)
    V, A, weighted = computed_once(partial(along_direction, shapes), inboard, of_parent, S, row, weight)
    if several:
        A = computed_once(with_turned_joint, V, A, of_parent, r, flags)
    RJ, c = computed_once(turned_inertia, R, row.inertia)
    inertia = computed_once(inertia_about_T, R, RJ, c, r, row.inertia)
    value = wo.put_together(R, r, V, A, weighted, *of_parent)
    beyond = wo.put_together(r, of_parent) if several else None
    motion = wo.put_together(V, A, weighted)
    own = jnp.broadcast_to(weight, value[:1].shape)
    return value, PathRows(wo.put_together(S), motion, inertia, own, beyond, row.is_first)


def to_inboard_frame(shapes: tuple, inboard: Array, row: DirectionRows) -> tuple:
    """R_WF, R_WP p_PF, and of the parent V, alpha and Λ where several directions ask for them."""
    R, _, V, A, weighted, *kept = wo.take_apart(inboard, *shapes)
    R_PF, p_PF = wo.take_apart(row.inboard, (3, 3), 3)
    if row.is_first is not None:
        is_first = row.is_first[0] > 0.0
        now = [V, A[:3], weighted]
        kept = [[jnp.where(is_first, x, y) for x, y in zip(a, b, strict=True)] for a, b in zip(now, kept, strict=True)]
    return wo.matmul(R, R_PF), wo.matvec(R, p_PF), kept


def across_joint(
    shapes: tuple, inboard: Array, R_WF: wo.Matrix, p: wo.Vector, row: DirectionRows, flags: Array
) -> tuple:
    """R_WM, p_TM, and the hinge map in W; T is the Mo of the tree's root."""
    _, r, *_ = wo.take_apart(inboard, *shapes)
    R_FM, p_FM = wo.take_apart(row.across, (3, 3), 3)
    h, s = (wo.matvec(R_WF, x) for x in wo.take_apart(row.hinge_map, 3, 3))
    p = wo.add(p, wo.matvec(R_WF, p_FM))
    return wo.matmul(R_WF, R_FM), wo.add(r, wo.scale(p, flags[0])), h, s


def along_direction(
    shapes: tuple, inboard: Array, of_parent: list, S: wo.Vector, row: DirectionRows, weight: Array
) -> tuple:
    """V, A and Λ with those of the direction."""
    _, _, V, A, weighted, *_ = wo.take_apart(inboard, *shapes)
    V_p = of_parent[0] if of_parent else V
    assert row.vdot is not None
    driven = wo.add(wo.scale(S, row.vdot[0]), wo.motion_cross(V_p, wo.scale(S, row.v[0])))
    return wo.add(V, wo.scale(S, row.v[0])), wo.add(A, driven), wo.add(weighted, wo.scale(S, weight[0]))


def relative_motion(V: wo.Vector, V_p: wo.Vector, r: wo.Vector) -> tuple[wo.Vector, wo.Vector]:
    """w^J, and v^J at Mo."""
    V_J = wo.subtract(V, V_p)
    return V_J[:3], wo.add(V_J[3:], wo.cross(V_J[:3], r))


def with_turned_joint(V: wo.Vector, A: wo.Vector, of_parent: list, r: wo.Vector, flags: Array) -> wo.Vector:
    """A with v^J x w^J, once a joint."""
    w, v = relative_motion(V, of_parent[0], r)
    return [*A[:3], *wo.add(A[3:], wo.scale(wo.cross(v, w), flags[1]))]


def turned_inertia(R: wo.Matrix, inertia: Array) -> tuple:
    """R J, and c about Mo in W."""
    J, c, _ = wo.take_apart(inertia, 6, 3, 1)
    return wo.matmul(R, wo.symmetric(J)), wo.matvec(R, c)


def inertia_about_T(R: wo.Matrix, RJ: wo.Matrix, c: wo.Vector, r: wo.Vector, inertia: Array) -> Array:
    """J + (r·(2 c + m r)) 1 - (c rᵀ + r cᵀ + m r rᵀ), c + m r and m."""
    m = inertia[9]
    at_T = wo.add(c, wo.scale(r, m))
    trace = wo.dot(r, wo.add(c, at_T))
    J = wo.symmetric_product(RJ, R)
    outer = [c[i] * r[j] + r[i] * at_T[j] for i, j in wo.SYMMETRIC_PAIRS]
    shifted = [x - y + trace if i == j else x - y for x, y, (i, j) in zip(J, outer, wo.SYMMETRIC_PAIRS, strict=True)]
    return wo.put_together(shifted, at_T, m)


def gather_inward(outboard: Array, row: PathRows) -> tuple[Array, Array]:
    """The sums over what is outboard, and the gradient of this direction."""
    several = row.beyond is not None
    F, G, Y, hf_part = computed_once(of_mobod, row.motion, row.inertia)
    sums = computed_once(add_mobod, outboard, row.motion, F, G, Y, hf_part)
    B, E, dS = computed_once(rates_of_direction, row)
    if several:
        B, E, dS = computed_once(rates_within_joint, row, B, E, dS)
    by = computed_once(gradient_of_direction, row, sums, B, E, dS)
    return computed_once(hand_on, row, sums), by


def of_mobod(motion: Array, inertia: Array) -> tuple:
    """F, G, and Y in two parts; of the last direction of a joint, else zero."""
    (V, A, weighted), (J, c, m) = wo.take_apart(motion, 6, 6, 6), wo.take_apart(inertia, 6, 3, 1)
    w, v, x = V[:3], V[3:], weighted[:3]
    momentum = times_inertia(J, c, m, V)
    F = wo.add(times_inertia(J, c, m, A), wo.force_cross(V, momentum))
    turned = wo.cross(w, x)
    trace = J[0] + J[1] + J[2]
    Y = wo.subtract(wo.scale(turned, trace), wo.scale(wo.matvec(wo.symmetric(J), turned), 2.0))
    Y = wo.add(Y, wo.scale(wo.subtract(wo.scale(x, wo.dot(c, v)), wo.scale(c, wo.dot(v, x))), 2.0))
    return F, times_inertia(J, c, m, weighted), Y, momentum[3:]


def add_mobod(outboard: Array, motion: Array, F: wo.Vector, G: wo.Vector, Y: wo.Vector, hf: wo.Vector) -> tuple:
    """The sums F, G, Y and P with the mobod's own."""
    F_sum, G_sum, Y_sum, P_sum = wo.take_apart(outboard, 6, 6, 3, 6)
    weighted = list(motion[12:])
    Y = wo.add(Y_sum, Y, wo.scale(wo.cross(hf, weighted[3:]), 2.0))
    return wo.add(F_sum, F), wo.add(G_sum, G), Y, wo.subtract(P_sum, wo.force_cross(weighted, F))


def rates_of_direction(row: PathRows) -> tuple:
    """B, E and dS/dt of a joint with one direction."""
    (V, A, _), S = wo.take_apart(row.motion, 6, 6, 6), list(row.S)
    B = wo.motion_cross(V, S)
    return B, wo.add(wo.motion_cross(A, S), wo.motion_cross(V, B)), B


def rates_within_joint(row: PathRows, B: wo.Vector, E: wo.Vector, dS: wo.Vector) -> tuple:
    """The same of one of several, with P = [0; s x w^J], Q = [0; s x alpha^J] and dS/dt = V_p x S + [0; v^J x h]."""
    del dS
    assert row.beyond is not None
    (V, A, _), S = wo.take_apart(row.motion, 6, 6, 6), list(row.S)
    r, V_p, alpha_p, _ = wo.take_apart(row.beyond, 3, 6, 3, 6)
    h, (w, v) = S[:3], relative_motion(V, V_p, r)
    s = wo.subtract(S[3:], wo.cross(r, h))
    alpha = wo.subtract(wo.subtract(A[:3], alpha_p), wo.cross(V_p[:3], w))
    P, Q = wo.cross(s, w), wo.cross(s, alpha)
    dS = wo.motion_cross(V_p, S)
    moved = wo.add(Q, wo.cross(V[:3], P), wo.cross(V_p[:3], P))
    return (
        [*B[:3], *wo.add(B[3:], P)],
        [*E[:3], *wo.add(E[3:], moved)],
        [*dS[:3], *wo.add(dS[3:], wo.cross(v, h))],
    )


def gradient_of_direction(row: PathRows, sums: tuple, B: wo.Vector, E: wo.Vector, dS: wo.Vector) -> Array:
    """By q, v and v̇."""
    (F, G, Y, P), S = sums, list(row.S)
    by_q = wo.dot(S, P) + wo.dot(E, G) + wo.dot(B[:3], Y)
    if row.beyond is not None:
        r, _, _, weighted_p = wo.take_apart(row.beyond, 3, 6, 3, 6)
        s, turned = wo.subtract(S[3:], wo.cross(r, S[:3])), wo.subtract(list(row.motion[12:15]), weighted_p[:3])
        by_q = by_q + wo.dot(s, wo.cross(turned, F[3:]))
    by_v = wo.dot(wo.add(B, dS), G) + wo.dot(S[:3], Y)
    return wo.put_together(by_q, by_v, wo.dot(S, G))


def hand_on(row: PathRows, sums: tuple) -> Array:
    """The sums, and from the first direction of a joint what its Λ^J adds for those inboard of it."""
    F, G, Y, P = sums
    if row.beyond is None:
        P = wo.add(P, wo.force_cross(wo.scale(list(row.S), row.own[0]), F))
    else:
        assert row.is_first is not None
        joint = wo.subtract(list(row.motion[12:]), list(row.beyond[12:]))
        P = wo.add(P, wo.scale(wo.force_cross(joint, F), row.is_first[0]))
    return wo.put_together(F, G, Y, P)
