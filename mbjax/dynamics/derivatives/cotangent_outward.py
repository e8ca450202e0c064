"""Outward pass of the cotangent of inverse dynamics: V, A and Λ of every mobod, and rows for the inward pass.

Λ is the sum of S_k λ_k over the path, a motion like V and A. All are about T, the tree's origin, in W, and kept up to
each direction: those of a mobod stand at the last direction of its joint. `cotangent_inward.py` reads them.
"""

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    computed_once,
    computed_where_kept,
    read,
    read_all,
    scan_paths,
    unpacked,
    walk_plan,
)
from mbjax.kinematics import OtherPoses, Pose, pose_across
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents, ends_of_joints

from ..records.direction_rows import DirectionRows, PlacedRows, calc_direction_rows, worlds_of
from ..records.spatial_records import RigidInertia


class Lasting(NamedTuple):
    """Values along a direction's path that the inward pass reads too."""

    p_TM: Float[Array, "n 3 ..."]
    motion: Float[Array, "n 18 ..."]  # V, A and Λ
    R_WM: Float[Array, "n 9 ..."] | None  # for the gradient by the model; else in `Passing`


class PathRows(NamedTuple):
    """Rows for the inward pass, one for each direction, about T in W; `lasting` has the world's row first."""

    lasting: Lasting
    S: Float[Array, "nd 6 ..."]
    inertia: Float[Array, "nd 10 ..."]  # of the mobod m, at the last direction of a joint: moments, m p_TMcm, m
    p_TF: Float[Array, "nd 3 ..."] | None  # for the gradient by the model


class PathRow(NamedTuple):
    """One direction as the inward pass reads it, about T in W; V, A and Λ are m's, up to its joint's last direction."""

    S: Float[Array, "6 ..."]
    motion: Float[Array, "18 ..."]
    inertia: Float[Array, "10 ..."]
    weight: Float[Array, "1 ..."]  # λ
    p_TM: Float[Array, "3 ..."]
    of_parent: Float[Array, "18 ..."] | None  # V, A and Λ of p; where joints have several, or by the model
    is_first: Float[Array, "1 ..."] | None  # where joints have several directions


class Passing(NamedTuple):
    """Values that only the next directions outward read."""

    R_WM: Float[Array, "9 ..."] | None  # where mobods are not placed yet
    V_p: Float[Array, "6 ..."] | None  # where joints have several directions


class OwnRows(NamedTuple):
    """Rates and weight λ of each direction, and its place in its joint."""

    v: Float[Array, "nd 1 ..."]
    vdot: Float[Array, "nd 1 ..."]
    weight: Float[Array, "nd 1 ..."]  # λ
    flags: Float[Array, "nd 2 ..."]  # whether its joint is within a tree, and it is the last of the joint
    is_first: Float[Array, "nd 1 ..."] | None  # None where all joints have one direction


def calc_weighted_motion(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
    weight: Float[Array, " nv"],
    placed: PlacedRows | None,
    gravity: bool,
    of_model: bool,
) -> PathRows:
    """The outward pass; with `gravity` the world accelerates by -g. Mobods are placed here unless they are `placed`."""
    topology, own = model.topology, calc_own_rows(model.topology, v, vdot, weight)
    if placed is None:
        step, (rows, others) = move_weighted_outward, calc_direction_rows(model, q, v, None, True, None)
    else:
        step, rows, others = move_placed_outward, placed, None
    worlds = worlds_of(rows, v, vdot, weight, model.parameters.gravity)
    zeros = jnp.zeros((18, *worlds), v.dtype)
    R = jnp.broadcast_to(jnp.eye(3, dtype=v.dtype).reshape(9, *(1 for _ in worlds)), zeros[:9].shape)
    g = jnp.broadcast_to(model.parameters.gravity if gravity else jnp.zeros_like(zeros[:3]), zeros[:3].shape)
    passing = Passing(R if placed is None and not of_model else None, None if own.is_first is None else zeros[:6])
    lasting = Lasting(zeros[:3], jnp.concatenate([zeros[:9], -g, zeros[:6]]), R if of_model else None)
    plan = walk_plan(direction_parents(topology))
    lasting, of_each = scan_paths(plan, step, (rows, own), passing, lasting, staged=True, tables=(others,))
    return PathRows(lasting, *of_each)


def calc_own_rows(topology: TreeTopology, v: Array, vdot: Array, weight: Array) -> OwnRows:
    """`OwnRows` of all directions."""
    (first, last), worlds = ends_of_joints(topology), tuple(1 for _ in v.shape[1:])
    flags = np.stack([topology.within_tree[topology.velocity_mobods], last], 1)
    flags, first_flags = (jnp.asarray(x, v.dtype).reshape(v.shape[0], -1, *worlds) for x in (flags, first))
    return OwnRows(v[:, None], vdot[:, None], weight[:, None], flags, None if first.all() else first_flags)


def ends_of_mobods(topology: TreeTopology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nd,) the first direction of m, from 0; the last of m and the last of p, from 1 with 0 the world."""
    starts, owner = np.array(topology.mobod_v_starts), np.asarray(topology.velocity_mobods)
    ends = starts + np.array(topology.mobod_num_velocities)
    parent = np.array(topology.mobod_parents)[owner]
    first, last_of_parent = starts[owner], np.where(parent > 0, ends[parent], 0)
    return first.astype(np.int32), ends[owner].astype(np.int32), last_of_parent.astype(np.int32)


def point_and_parent(row: PathRow) -> list[wo.Vector]:
    """p_TM of the mobod, and V_p, A_p and Λ_p of its parent."""
    assert row.of_parent is not None
    return [list(row.p_TM), *wo.take_apart(row.of_parent, 6, 6, 6)]


def move_weighted_outward(
    inboard: tuple[Passing, Lasting], given: tuple[DirectionRows, OwnRows], others: OtherPoses | None
) -> tuple[tuple[Passing, Lasting], tuple]:
    """One step outward: pose, V, A and Λ up to this direction, with its S and inertia."""
    (passing, lasting), (row, own) = inboard, given
    of_model = lasting.R_WM is not None
    R_P = lasting.R_WM if of_model else passing.R_WM
    X_PM = pose_across(row.joint, others)
    R, r, h, s = computed_once(across_joint, R_P, lasting.p_TM, X_PM, row.hinge_map, own.flags)
    S = computed_once(screw_about_T, r, h, s)
    motion, V_p = move_along(inboard, S, r, own)
    RJ, c = computed_once(turned_inertia, R, row.inertia)
    inertia = computed_where_kept(inertia_about_T, R, RJ, c, r, row.inertia.m)
    p_TF = wo.parts(computed_once(inboard_origin, R_P, X_PM, row.joint.point, r)) if of_model else None
    R = wo.parts(R)
    passing, lasting = Passing(None if of_model else R, V_p), Lasting(wo.parts(r), motion, R if of_model else None)
    return (passing, lasting), (wo.parts(S), wo.parts(*inertia, unpacked(read_all(row.inertia.m))), p_TF)


def move_placed_outward(
    inboard: tuple[Passing, Lasting], given: tuple[PlacedRows, OwnRows], others: None
) -> tuple[tuple[Passing, Lasting], tuple]:
    """`move_weighted_outward` where hinge map and inertia are already placed in W."""
    del others
    (_, lasting), (row, own) = inboard, given
    r, S = computed_once(direction_about_T, lasting.p_TM, row.hinge, own.flags)
    motion, V_p = move_along(inboard, S, r, own)
    inertia = computed_where_kept(placed_inertia_about_T, row.inertia, r)
    lasting = Lasting(wo.parts(r), motion, None)
    return (Passing(None, V_p), lasting), (wo.parts(S), wo.parts(*inertia, read(row.inertia)[9]), None)


def move_along(inboard: tuple[Passing, Lasting], S: wo.Vector, r: wo.Vector, own: OwnRows) -> tuple[Any, Any]:
    """V, A and Λ up to this direction, and where joints have several V_p: dS/dt is then V_p x S + [0; v^J x h]."""
    (passing, lasting), V_p = inboard, None
    if own.is_first is not None:
        V_p = computed_once(velocity_of_parent, lasting.motion, passing.V_p, own.is_first)
    V, A, weighted = computed_once(along_direction, lasting.motion, V_p, S, own.v, own.vdot, own.weight)
    if V_p is None:
        return wo.parts(V, A, weighted), None
    return wo.parts(V, computed_where_kept(with_turned_joint, V, A, V_p, r, own.flags), weighted), wo.parts(V_p)


def across_joint(R_P: Array, p_TP: Array, X_PM: Pose, hinge_map: Array, flags: Array) -> tuple:
    """R_WM, p_TM and the hinge map in W; T is the Mo of the tree's root."""
    R, (R_PM, p_PM) = matrix(R_P), X_PM
    h, s = (wo.matvec(R, x) for x in hinge_map)
    p = wo.matvec(R, p_PM)
    return wo.matmul(R, R_PM), wo.add(list(p_TP), wo.scale(p, flags[0])), h, s


def screw_about_T(r: wo.Vector, h: wo.Vector, s: wo.Vector) -> wo.Vector:
    """S of a direction that turns about h through Mo, at r = p_TM, and translates along s."""
    return [*h, *wo.add(s, wo.cross(r, h))]


def direction_about_T(p_TP: Array, hinge: Array, flags: Array) -> tuple[wo.Vector, wo.Vector]:
    """p_TM and S of a direction whose hinge map is placed in W."""
    h, s, p = wo.take_apart(hinge, 3, 3, 3)
    r = wo.add(list(p_TP), wo.scale(p, flags[0]))
    return r, screw_about_T(r, h, s)


def velocity_of_parent(motion: Array, V_p: Array, is_first: Array) -> wo.Vector:
    """V_p: at a joint's first direction the V inboard of it, at the others the V_p handed on."""
    return [jnp.where(is_first[0] > 0.0, x, y) for x, y in zip(list(motion)[:6], V_p, strict=True)]


def along_direction(
    motion: Array, V_p: wo.Vector | None, S: wo.Vector, v: Array, vdot: Array, weight: Array
) -> tuple[wo.Vector, wo.Vector, wo.Vector]:
    """Adds the direction's own motion to V, A and Λ."""
    V, A, weighted = wo.take_apart(motion, 6, 6, 6)
    driven = wo.add(wo.scale(S, vdot[0]), wo.motion_cross(V if V_p is None else V_p, wo.scale(S, v[0])))
    return wo.add(V, wo.scale(S, v[0])), wo.add(A, driven), wo.add(weighted, wo.scale(S, weight[0]))


def relative_motion(V: wo.Vector, V_p: wo.Vector, r: wo.Vector) -> tuple[wo.Vector, wo.Vector]:
    """Motion of m relative to its parent: w^J, and v^J at Mo."""
    V_J = wo.subtract(V, V_p)
    return V_J[:3], wo.add(V_J[3:], wo.cross(V_J[:3], r))


def with_turned_joint(V: wo.Vector, A: wo.Vector, V_p: wo.Vector, r: wo.Vector, flags: Array) -> wo.Vector:
    """Adds v^J x w^J to A, once for each joint, at its last direction."""
    w, v = relative_motion(V, V_p, r)
    return [*A[:3], *wo.add(A[3:], wo.scale(wo.cross(v, w), flags[1]))]


def turned_inertia(R: wo.Matrix, inertia: RigidInertia) -> tuple:
    """R J, and the first moment c about Mo in W."""
    return wo.matmul(R, wo.symmetric(inertia.J)), wo.matvec(R, inertia.c)


def inertia_about_T(R: wo.Matrix, RJ: wo.Matrix, c: wo.Vector, r: wo.Vector, m: Array) -> tuple[wo.Vector, wo.Vector]:
    """Moments and first moment about T in W: R J Rᵀ and c about Mo, shifted by r = p_TM."""
    return shifted_inertia(wo.symmetric_product(RJ, R), c, m, r)


def placed_inertia_about_T(inertia: Array, r: wo.Vector) -> tuple[wo.Vector, wo.Vector]:
    """Moments and first moment about T, from an inertia that is already in W about Mo."""
    J, c, m = wo.take_apart(inertia, 6, 3, 1)
    return shifted_inertia(J, c, m, r)


def shifted_inertia(J: wo.Vector, c: wo.Vector, m: Array, r: wo.Vector) -> tuple[wo.Vector, wo.Vector]:
    """Shifts an inertia by r: J + (r·(2 c + m r)) 1 - (c rᵀ + r cᵀ + m r rᵀ), and c + m r."""
    at_T = wo.add(c, wo.scale(r, m))
    trace = wo.dot(r, wo.add(c, at_T))
    outer = [c[i] * r[j] + r[i] * at_T[j] for i, j in wo.SYMMETRIC_PAIRS]
    shifted = [x - y + trace if i == j else x - y for x, y, (i, j) in zip(J, outer, wo.SYMMETRIC_PAIRS, strict=True)]
    return shifted, at_T


def inboard_origin(R_P: Array, X_PM: Pose, p_PF: Array, r: wo.Vector) -> wo.Vector:
    """p_TF, from T to the origin of the joint's inboard frame."""
    return wo.subtract(r, wo.matvec(matrix(R_P), wo.subtract(X_PM[1], list(p_PF))))


def matrix(entries: Any) -> wo.Matrix:
    """3 x 3 matrix of nine entries, row by row."""
    return wo.take_apart(entries, (3, 3))[0]
