"""The recursive Newton–Euler algorithm, one direction of motion per step (Featherstone 2008, table 5.1).

It departs from the book in that quantities are in W at each mobod's own Mo, and accelerations are those of points
instead of spatial ones. Everything is one kernel. `sums.py` computes the same torques by sums over all mobods at once,
which is faster where starting a kernel takes long.
"""

from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    RowEntries,
    ScannedRow,
    computed_once,
    computed_where_kept,
    computed_where_read,
    in_one_kernel,
    read,
    scan_inward,
    scan_outward,
    walk_plan,
)
from mbjax.kinematics import OtherPoses, Pose, pose_across
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents

from ..records.direction_rows import DirectionRows, calc_direction_rows, worlds_of

Shapes = tuple[int | tuple[int, int], ...]


class MotionRows(NamedTuple):
    """Rows that the inward recursions read, one for each direction, in W."""

    hinge: Float[Array, "nd 9 ..."]  # H_W at Mo, and p from the inboard direction's point to Mo
    force: Float[Array, "nd 6 ..."]  # that the mobod's motion takes less weights and applied forces, at Mo
    inertia: Float[Array, "nd 10 ..."]  # of the mobod about Mo: moments, m p_MoMcm, m


def calc_motion(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"] | None,
    weights: bool,
    F_applied_W: Float[Array, "6 nm"] | None,
) -> MotionRows:
    """Outward pass: poses, velocities, accelerations, and the forces they take less weights and applied forces."""

    def outward(model: MultibodyModel, q: Array, v: Array, vdot: Array | None, F_applied_W: Array | None) -> MotionRows:
        rows, others = calc_direction_rows(model, q, v, vdot, weights, F_applied_W)
        gravity = model.parameters.gravity if weights else jnp.zeros_like(model.parameters.gravity)
        return move_all_outward(model.topology, rows, others, gravity, worlds_of(rows, gravity))

    return in_one_kernel(outward, model, q, v, vdot, F_applied_W)


def move_all_outward(
    topology: TreeTopology,
    rows: DirectionRows,
    others: OtherPoses | None,
    gravity: Float[Array, "3 ..."],
    worlds: tuple[int, ...],
) -> MotionRows:
    """The outward loop. Without `rows.weight` gravity acts on all bodies, as an acceleration -gravity of the world."""
    dtype, zeros = rows.v.dtype, jnp.zeros((6, *worlds), rows.v.dtype)
    acceleration = jnp.broadcast_to(jnp.zeros_like(gravity) if rows.weight is not None else -gravity, (3, *worlds))
    identity = jnp.broadcast_to(np.eye(3, dtype=dtype).reshape(9, *(1 for _ in worlds)), (9, *worlds))
    world = jnp.concatenate([identity, zeros, acceleration, *([] if rows.is_first is None else [zeros[:3]])])

    plan, tables = walk_plan(direction_parents(topology)), (others, None if rows.weight is None else gravity)
    return scan_outward(plan, move_outward, rows, world, staged=True, tables=tables)


def move_outward(
    inboard: ScannedRow, row: DirectionRows, others: OtherPoses | None, gravity: Float[Array, "3 ..."] | None
) -> tuple[Array, MotionRows]:
    """One step outward, from velocities and accelerations inboard of a direction (P) to those up to it (M):

        R_WM = R_WP R_PM                  p = R_WP p_PM
        w    = w_P + h v                  alpha = alpha_P + h v̇ + (w_F x h + ḣ) v
        a    = a_P + alpha_P x p + w_P x (w_P x p) + s v̇ + (2 w_F x s + ṡ) v
        f    = m a + alpha x c + w x (w x c)          t = J alpha + w x J w + c x a

    with H = [h; s] in W, the angular velocity w_F of the joint's inboard frame, and c = m p_MoMcm.
    """
    several = row.is_first is not None
    carried = ((3, 3), 3, 3, 3, *([3] if several else []))
    crossed = pose_across(row.joint, others), row.hinge_map, row.hinge_map_rate, row.is_first
    R, p, h, s, driven, w_F = computed_once(partial(cross_direction, carried), inboard, *crossed)
    of_joint = partial(turn, carried), inboard, w_F, R, h, s, driven, row.v, row.vdot, row.inertia
    w, alpha, translation, RJ, c = computed_once(*of_joint)
    a, J, turning = computed_once(partial(translate, carried), inboard, w_F, R, RJ, c, w, p, s, row.v, translation)
    J_times = computed_where_read(lambda J, w, alpha: (wo.matvec(J, w), wo.matvec(J, alpha)), wo.symmetric(J), w, alpha)
    force = computed_where_kept(net_force, R, J_times, w, alpha, a, c, turning, row, gravity)
    value = wo.parts(R, w, alpha, a, *([w_F] if several else []))
    inertia = wo.parts(J, c, read(row.inertia)[9])
    return value, MotionRows(hinge=wo.parts(h, s, p), force=wo.parts(force), inertia=inertia)


def cross_direction(
    carried: Shapes,
    inboard: RowEntries,
    X_PM: Pose,
    hinge_map: Array,
    rate: Array | None,
    is_first: Array | None,
) -> tuple:
    """R_WM and p; the hinge map and its rate in F, both expressed in W; w_F, at a joint's first direction that of P."""
    (R, w, _, _, *w_F), (R_PM, p_PM) = wo.take_apart(inboard, *carried), X_PM
    h, s = (wo.matvec(R, x) for x in wo.take_apart(hinge_map, 3, 3))
    driven = None if rate is None else [wo.matvec(R, x) for x in wo.take_apart(rate, 3, 3)]
    if is_first is not None:
        w = [jnp.where(is_first[0] > 0.0, x, y) for x, y in zip(w, w_F[0], strict=True)]
    return wo.matmul(R, R_PM), wo.matvec(R, p_PM), h, s, driven, w


def turn(
    carried: Shapes,
    inboard: RowEntries,
    w_F: wo.Vector,
    R: wo.Matrix,
    h: wo.Vector,
    s: wo.Vector,
    driven: list[wo.Vector] | None,
    v: Array,
    vdot: Array | None,
    inertia: Array,
) -> tuple:
    """w and alpha; the joint's own translational acceleration s v̇ + ṡ v; R J, and c in W."""
    _, w, alpha, *_ = wo.take_apart(inboard, *carried)
    J_M, c_M, _ = wo.take_apart(inertia, 6, 3, 1)
    h_v = wo.scale(h, v[0])
    turned, translation = [alpha, wo.cross(w_F, h_v)], []
    if driven is not None:
        turned.append(driven[0])
        translation.append(driven[1])
    if vdot is not None:
        turned.append(wo.scale(h, vdot[0]))
        translation.append(wo.scale(s, vdot[0]))
    RJ = wo.matmul(R, wo.symmetric(J_M))
    return wo.add(w, h_v), wo.add(*turned), wo.add(*translation) if translation else None, RJ, wo.matvec(R, c_M)


def translate(
    carried: Shapes,
    inboard: RowEntries,
    w_F: wo.Vector,
    R: wo.Matrix,
    RJ: wo.Matrix,
    c: wo.Vector,
    w: wo.Vector,
    p: wo.Vector,
    s: wo.Vector,
    v: Array,
    translation: wo.Vector | None,
) -> tuple:
    """Acceleration a of Mo, J in W and w x (w x c)."""
    _, w_P, alpha, a, *_ = wo.take_apart(inboard, *carried)
    a = wo.add(a, wo.cross(alpha, p), wo.cross(w_P, wo.cross(w_P, p)), wo.scale(wo.cross(w_F, s), 2.0 * v[0]))
    if translation is not None:
        a = wo.add(a, translation)
    return a, wo.symmetric_product(RJ, R), wo.cross(w, wo.cross(w, c))


def net_force(
    R: wo.Matrix,
    J_times: tuple[wo.Vector, wo.Vector],
    w: wo.Vector,
    alpha: wo.Vector,
    a: wo.Vector,
    c: wo.Vector,
    turning: wo.Vector,
    row: DirectionRows,
    gravity: Array | None,
) -> wo.Vector:
    """Torque and force that the mobod's motion takes, less weights and applied forces."""
    Jw, J_alpha = J_times
    f = wo.add(wo.scale(a, row.inertia[9]), wo.cross(alpha, c), turning)
    t = wo.add(J_alpha, wo.cross(w, Jw), wo.cross(c, a))
    force = [*t, *f]
    if row.weight is not None:
        assert gravity is not None
        g = list(gravity)
        c_M, m = wo.take_apart(row.weight, 3, 1)
        weight = [*wo.cross(wo.matvec(R, c_M), g), *wo.scale(g, m)]
        force = wo.subtract(force, weight)
    if row.F_applied_W is not None:
        force = wo.subtract(force, list(row.F_applied_W))
    return force


def calc_torques(topology: TreeTopology, motion: MotionRows) -> Float[Array, " nd"]:
    """Inward pass: tau = H · (sum of the forces of everything outboard)."""
    plan = walk_plan(direction_parents(topology))

    def step(outboard: ScannedRow, row: MotionRows) -> tuple[Array, Array]:
        *handed_on, torque = computed_once(gather_force, outboard, row.hinge, row.force)
        return wo.parts(*handed_on), torque

    def inward(motion: MotionRows) -> Array:
        return scan_inward(plan, step, motion, jnp.zeros_like(motion.force[0]), staged=True)[0]

    return in_one_kernel(inward, motion)


def gather_force(outboard: RowEntries, hinge: RowEntries, force: RowEntries) -> tuple:
    """Force of everything outboard, shifted to the inboard direction's point, and this direction's torque."""
    (h, s, p), (t, f) = wo.take_apart(hinge, 3, 3, 3), wo.take_apart(wo.total(outboard, force), 3, 3)
    return wo.add(t, wo.cross(p, f)), f, wo.dot(h, t) + wo.dot(s, f)
