"""V, A and Λ of every mobod, outward, with all else that the gradient of λ · inverse_dynamics reads of a direction.

Λ is the sum of S_k λ_k over the path, a motion like V and A; a direction counts as its joint's, and all are about T,
the tree's origin, in W. Read by `recursive_torque_gradient`.
"""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.kinematics import JointRows, OtherPoses, pose_across
from mbjax.model import MultibodyModel
from mbjax.spatial import written_out as wo
from mbjax.stages import computed_once, read
from mbjax.topology import TreeTopology, direction_parents, scan_outward, walk_plan

from .direction_rows import DirectionRows, calc_direction_rows, ends_of_joints, worlds_of

SHAPES = ((3, 3), 3, 6, 6, 6)  # R_WM, p_TM, V, A, Λ
SHAPES_OF_PARENT = (6, 6, 6)  # V_p, A_p, Λ_p


class PathRows(NamedTuple):
    """Of each direction, about T in W; its mobod m has the parent p."""

    S: Float[Array, "nd 6 ..."]
    motion: Float[Array, "nd 18 ..."]  # V, A and Λ up to this direction; of m once the pass inward reads them
    inertia: Float[Array, "nd 10 ..."]  # of m, of the last direction of a joint: moments, m p_TMcm, m
    own: Float[Array, "nd 1 ..."]  # λ
    point: Float[Array, "nd 3 ..."] | None  # p_TM; of several directions, or by the model, like the next
    of_parent: Float[Array, "nd 18 ..."] | None  # V, A and Λ of p, which the pass inward looks up
    is_first: Float[Array, "nd 1 ..."] | None
    frames: tuple[Float[Array, "nd 9 ..."], Float[Array, "nd 3 ..."]] | None  # R_WM and p_TF, by the model


def calc_weighted_motion(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    vdot: Float[Array, " nv"],
    weight: Float[Array, " nv"],
    gravity: bool,
    of_model: bool,
) -> PathRows:
    """The pass outward; with `gravity` the world accelerates up."""
    topology = model.topology
    plan, (_, last) = walk_plan(direction_parents(topology)), ends_of_joints(topology)
    rows, others = calc_direction_rows(model, q, v, vdot, True, None)
    worlds = worlds_of(rows, weight, model.parameters.gravity)
    zeros = jnp.zeros((18, *worlds), v.dtype)
    identity = jnp.broadcast_to(jnp.eye(3, dtype=v.dtype).reshape(9, *(1 for _ in worlds)), zeros[:9].shape)
    g = jnp.broadcast_to(model.parameters.gravity if gravity else jnp.zeros_like(zeros[:3]), zeros[:3].shape)
    of_parent = [] if rows.is_first is None else [zeros]
    world = jnp.concatenate([identity, zeros[:12], -g, zeros[:6], *of_parent])
    flags = np.stack([topology.within_tree[topology.velocity_mobods], last], 1)
    flags = jnp.asarray(flags, v.dtype).reshape(-1, 2, *(1 for _ in worlds))
    step, given = partial(move_outward, of_model), (rows, weight[:, None], flags)
    return scan_outward(plan, step, given, world, staged=True, tables=(others,))


def ends_of_mobods(topology: TreeTopology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(nd,) which directions are the first and the last of m, and the last of p; -1 of the world."""
    starts, owner = np.array(topology.mobod_v_starts), np.asarray(topology.velocity_mobods)
    last = starts + np.array(topology.mobod_num_velocities) - 1
    parent = np.array(topology.mobod_parents)[owner]
    first, last_of_parent = starts[owner], np.where(parent > 0, last[parent], -1)
    return first.astype(np.int32), last[owner].astype(np.int32), last_of_parent.astype(np.int32)


def point_and_parent(row: PathRows) -> list[wo.Vector]:
    """p_TM, V_p, A_p and Λ_p."""
    assert row.point is not None
    assert row.of_parent is not None
    return [list(row.point), *wo.take_apart(row.of_parent, 6, 6, 6)]


def move_outward(
    of_model: bool, inboard: Array, given: tuple[DirectionRows, Array, Array], others: OtherPoses | None
) -> tuple[Array, PathRows]:
    """Poses, V, A and Λ up to this direction; dS/dt = V_p x S, and v^J x h of several."""
    row, weight, flags = given
    several = row.is_first is not None
    shapes = (*SHAPES, *(SHAPES_OF_PARENT if several else ()))
    across = pose_across(row.joint, others)
    R, r, h, s, of_parent = computed_once(partial(across_joint, shapes), inboard, *across, row, flags)
    S = computed_once(lambda r, h, s: [*h, *wo.add(s, wo.cross(r, h))], r, h, s)
    V, A, weighted = computed_once(partial(along_direction, shapes), inboard, of_parent, S, row, weight)
    if several:
        A = computed_once(with_turned_joint, V, A, of_parent, r, flags)
    RJ, c = computed_once(turned_inertia, R, row.inertia)
    inertia = computed_once(inertia_about_T, R, RJ, c, r, row.inertia)
    inertia = wo.parts(*inertia, read(row.inertia)[9])
    value = wo.parts(R, r, V, A, weighted, *of_parent)
    assert row.vdot is not None
    frames = None
    if of_model:
        frames = wo.parts(R), wo.parts(computed_once(partial(inboard_origin, shapes), inboard, across[1], row.joint, r))
    return value, PathRows(
        S=wo.parts(S),
        motion=wo.parts(V, A, weighted),
        inertia=inertia,
        own=wo.parts(read(weight)[0]),
        point=wo.parts(r) if several or of_model else None,
        of_parent=None,
        is_first=None if row.is_first is None else read(row.is_first),
        frames=frames,
    )


def across_joint(
    shapes: tuple, inboard: Array, R_PM: wo.Matrix, p_PM: Sequence[Array], row: DirectionRows, flags: Array
) -> tuple:
    """R_WM, p_TM, the hinge map in W, and V, A and Λ of the parent where several directions ask for them.

    T is the Mo of the tree's root.
    """
    R, r, V, A, weighted, *kept = wo.take_apart(inboard, *shapes)
    if row.is_first is not None:
        is_first = row.is_first[0] > 0.0
        now = [V, A, weighted]
        kept = [[jnp.where(is_first, x, y) for x, y in zip(a, b, strict=True)] for a, b in zip(now, kept, strict=True)]
    h, s = (wo.matvec(R, x) for x in wo.take_apart(row.hinge_map, 3, 3))
    p = wo.matvec(R, list(p_PM))
    return wo.matmul(R, R_PM), wo.add(r, wo.scale(p, flags[0])), h, s, kept


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


def inertia_about_T(
    R: wo.Matrix, RJ: wo.Matrix, c: wo.Vector, r: wo.Vector, inertia: Array
) -> tuple[wo.Vector, wo.Vector]:
    """J + (r·(2 c + m r)) 1 - (c rᵀ + r cᵀ + m r rᵀ) and c + m r."""
    m = inertia[9]
    at_T = wo.add(c, wo.scale(r, m))
    trace = wo.dot(r, wo.add(c, at_T))
    J = wo.symmetric_product(RJ, R)
    outer = [c[i] * r[j] + r[i] * at_T[j] for i, j in wo.SYMMETRIC_PAIRS]
    shifted = [x - y + trace if i == j else x - y for x, y, (i, j) in zip(J, outer, wo.SYMMETRIC_PAIRS, strict=True)]
    return shifted, at_T


def inboard_origin(shapes: tuple, inboard: Array, p_PM: Sequence[Array], joint: JointRows, r: wo.Vector) -> wo.Vector:
    """p_TF."""
    R, *_ = wo.take_apart(inboard, *shapes)
    return wo.subtract(r, wo.matvec(R, wo.subtract(list(p_PM), list(joint.point))))
