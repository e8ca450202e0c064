"""Outward pass of the cotangent of inverse dynamics: V, A and Λ of every mobod, and rows for the inward pass.

Λ is the sum of S_k λ_k over the path, a motion like V and A. All are about T, the tree's origin, in W, and kept up to
each direction: those of a mobod stand at the last direction of its joint. `cotangent_inward.py` reads them.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.recursions import kept_stage, rows_of, scan_paths, stage, walk_plan
from mbjax.kinematics import OtherPoses, Pose, pose_across
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology, direction_parents, ends_of_joints

from ..records.direction_rows import DirectionRows, PlacedRows, calc_direction_rows, worlds_of
from ..records.placing_stages import inertia_about_T, screw_about_T, shifted_inertia, turned_hinge, turned_inertia
from ..records.spatial_records import Hinge, HingeMap, RigidInertia


class PathMotion(NamedTuple):
    """Spatial velocity V, acceleration A, and Λ."""

    V: wo.Vector
    A: wo.Vector
    Lambda: wo.Vector
    shapes = 6, 6, 6


class Lasting(NamedTuple):
    """Values along a direction's path that the inward pass reads too."""

    p_TM: wo.Vector
    motion: PathMotion
    R_WM: wo.Matrix | None  # for the gradient by the model; else in `Passing`


class Passing(NamedTuple):
    """Values that only the next directions outward read."""

    R_WM: wo.Matrix | None  # where mobods are not placed yet
    V_p: wo.Vector | None  # where joints have several directions


class PathRows(NamedTuple):
    """Rows for the inward pass, one for each direction, about T in W; `lasting` has the world's row first."""

    lasting: Lasting
    S: wo.Vector
    inertia: RigidInertia  # of the mobod m, at the last direction of a joint
    p_TF: wo.Vector | None  # for the gradient by the model


class PathRow(NamedTuple):
    """One direction as the inward pass reads it, about T in W; V, A and Λ are m's, up to its joint's last direction."""

    S: wo.Vector
    motion: PathMotion
    weight: Array  # λ
    p_TM: wo.Vector
    of_parent: PathMotion | None  # where joints have several directions, or by the model
    is_first: Array | None  # where joints have several directions


def parent_of(row: PathRow) -> PathMotion:
    """V_p, A_p and Λ_p."""
    assert row.of_parent is not None
    return row.of_parent


class JointFlags(NamedTuple):
    """Whether a direction's joint is within a tree, and the direction the last of the joint: 1 or 0."""

    is_within_tree: Array
    is_last: Array
    shapes = 1, 1


class OwnRows(NamedTuple):
    """Rates and weight λ of each direction, and its place in its joint."""

    v: Array
    vdot: Array
    weight: Array  # λ
    flags: JointFlags
    is_first: Array | None  # None where all joints have one direction


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
        rows = PlacedRows(rows_of(Hinge, placed.hinge), rows_of(RigidInertia, placed.inertia))
        step, others = move_placed_outward, None
    worlds = worlds_of(rows, v, vdot, weight, model.parameters.gravity)
    zeros = jnp.zeros((18, *worlds), v.dtype)
    R = jnp.broadcast_to(jnp.eye(3, dtype=v.dtype).reshape(9, *(1 for _ in worlds)), zeros[:9].shape)
    g = jnp.broadcast_to(model.parameters.gravity if gravity else jnp.zeros_like(zeros[:3]), zeros[:3].shape)
    R, V_p = rows_of((3, 3), R), None if own.is_first is None else rows_of(6, zeros[:6])
    passing = Passing(R if placed is None and not of_model else None, V_p)
    motion = rows_of(PathMotion, jnp.concatenate([zeros[:9], -g, zeros[:6]]))
    lasting = Lasting(rows_of(3, zeros[:3]), motion, R if of_model else None)
    plan = walk_plan(direction_parents(topology))
    lasting, of_each = scan_paths(plan, step, (rows, own), passing, lasting, staged=True, tables=(others,))
    return PathRows(lasting, *of_each)


def calc_own_rows(topology: TreeTopology, v: Array, vdot: Array, weight: Array) -> OwnRows:
    """`OwnRows` of all directions."""
    (first, last), worlds = ends_of_joints(topology), tuple(1 for _ in v.shape[1:])
    flags = np.stack([topology.within_tree[topology.velocity_mobods], last], 1)
    flags, first_flags = (jnp.asarray(x, v.dtype).reshape(v.shape[0], -1, *worlds) for x in (flags, first))
    v, vdot, weight = (rows_of(1, x[:, None]) for x in (v, vdot, weight))
    is_first = None if first.all() else rows_of(1, first_flags)
    return OwnRows(v, vdot, weight, rows_of(JointFlags, flags), is_first)


def ends_of_mobods(topology: TreeTopology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nd,) the first direction of m, from 0; the last of m and the last of p, from 1 with 0 the world."""
    starts, owner = np.array(topology.mobod_v_starts), np.asarray(topology.velocity_mobods)
    ends = starts + np.array(topology.mobod_num_velocities)
    parent = np.array(topology.mobod_parents)[owner]
    first, last_of_parent = starts[owner], np.where(parent > 0, ends[parent], 0)
    return first.astype(np.int32), ends[owner].astype(np.int32), last_of_parent.astype(np.int32)


def move_weighted_outward(
    inboard: tuple[Passing, Lasting], given: tuple[DirectionRows, OwnRows], others: OtherPoses | None
) -> tuple[tuple[Passing, Lasting], tuple]:
    """One step outward: pose, V, A and Λ up to this direction, with its S and inertia."""
    (passing, lasting), (row, own) = inboard, given
    of_model = lasting.R_WM is not None
    R_P, X_PM = lasting.R_WM if of_model else passing.R_WM, pose_across(row.joint, others)
    (R, r), hinge = across_joint(R_P, lasting.p_TM, X_PM, row.hinge_map, own.flags)
    S = screw_of_hinge(r, hinge)
    motion, V_p = move_along(inboard, S, r, own)
    RJ, c = turned_inertia(R, row.inertia)
    inertia = inertia_about_T(R, RJ, c, r, row.inertia.m)
    p_TF = inboard_origin(R_P, X_PM, row.joint.point, r) if of_model else None
    passing, lasting = Passing(None if of_model else R, V_p), Lasting(r, motion, R if of_model else None)
    return (passing, lasting), (S, inertia, p_TF)


def move_placed_outward(
    inboard: tuple[Passing, Lasting], given: tuple[PlacedRows, OwnRows], others: None
) -> tuple[tuple[Passing, Lasting], tuple]:
    """`move_weighted_outward` where hinge map and inertia are already placed in W."""
    del others
    (_, lasting), (row, own) = inboard, given
    r, S = direction_about_T(lasting.p_TM, row.hinge, own.flags)
    motion, V_p = move_along(inboard, S, r, own)
    return (Passing(None, V_p), Lasting(r, motion, None)), (S, placed_inertia_about_T(row.inertia, r), None)


def move_along(
    inboard: tuple[Passing, Lasting], S: wo.Vector, r: wo.Vector, own: OwnRows
) -> tuple[PathMotion, wo.Vector | None]:
    """V, A and Λ up to this direction, and where joints have several V_p: dS/dt is then V_p x S + [0; v^J x h]."""
    (passing, lasting), V_p = inboard, None
    if own.is_first is not None:
        V_p = velocity_of_parent(lasting.motion.V, passing.V_p, own.is_first)
    V, A, Lambda = along_direction(lasting.motion, V_p, S, own.v, own.vdot, own.weight)
    return PathMotion(V, A if V_p is None else with_turned_joint(V, A, V_p, r, own.flags), Lambda), V_p


@stage
def across_joint(
    R_WP: wo.Matrix, p_TP: wo.Vector, X_PM: Pose, hinge_map: HingeMap, flags: JointFlags
) -> tuple[Pose, HingeMap]:
    """R_WM, p_TM and the hinge map in W; T is the Mo of the tree's root."""
    p = wo.matvec(R_WP, X_PM.p)
    r = wo.add(p_TP, wo.scale(p, flags.is_within_tree))
    return Pose(wo.matmul(R_WP, X_PM.R), r), turned_hinge(R_WP, hinge_map)


@stage
def screw_of_hinge(r: wo.Vector, hinge: HingeMap) -> wo.Vector:
    """S = [h; s + r x h]."""
    return screw_about_T(r, hinge)


@stage
def direction_about_T(p_TP: wo.Vector, hinge: Hinge, flags: JointFlags) -> tuple[wo.Vector, wo.Vector]:
    """p_TM and S of a direction whose hinge map is placed in W."""
    r = wo.add(p_TP, wo.scale(hinge.p, flags.is_within_tree))
    return r, screw_about_T(r, HingeMap(hinge.h, hinge.s))


@stage
def velocity_of_parent(V: wo.Vector, V_p: wo.Vector, is_first: Array) -> wo.Vector:
    """V_p: at a joint's first direction the V inboard of it, at the others the V_p handed on."""
    return [jnp.where(is_first > 0.0, x, y) for x, y in zip(V, V_p, strict=True)]


@stage
def along_direction(
    inboard: PathMotion, V_p: wo.Vector | None, S: wo.Vector, v: Array, vdot: Array, weight: Array
) -> PathMotion:
    """V + S v, A + S v̇ + V_p x S v, and Λ + S λ."""
    V, A, Lambda = inboard
    driven = wo.add(wo.scale(S, vdot), wo.motion_cross(V if V_p is None else V_p, wo.scale(S, v)))
    return PathMotion(wo.add(V, wo.scale(S, v)), wo.add(A, driven), wo.add(Lambda, wo.scale(S, weight)))


def relative_motion(V: wo.Vector, V_p: wo.Vector, r: wo.Vector) -> tuple[wo.Vector, wo.Vector]:
    """Motion of m relative to its parent: w^J, and v^J at Mo."""
    V_J = wo.subtract(V, V_p)
    return V_J[:3], wo.add(V_J[3:], wo.cross(V_J[:3], r))


@kept_stage
def with_turned_joint(V: wo.Vector, A: wo.Vector, V_p: wo.Vector, r: wo.Vector, flags: JointFlags) -> wo.Vector:
    """Adds v^J x w^J to A, once for each joint, at its last direction."""
    w, v = relative_motion(V, V_p, r)
    return [*A[:3], *wo.add(A[3:], wo.scale(wo.cross(v, w), flags.is_last))]


@kept_stage
def placed_inertia_about_T(inertia: RigidInertia, r: wo.Vector) -> RigidInertia:
    """Inertia about T, of one that is already in W about Mo."""
    return shifted_inertia(inertia, r)


@stage
def inboard_origin(R_WP: wo.Matrix, X_PM: Pose, p_PF: wo.Vector, r: wo.Vector) -> wo.Vector:
    """p_TF, from T to the origin of the joint's inboard frame."""
    return wo.subtract(r, wo.matvec(R_WP, wo.subtract(X_PM.p, p_PF)))
