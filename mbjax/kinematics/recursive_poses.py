"""Poses of all bodies by the usual recursion outward, one mobod per step, where nothing but poses is needed.

Everything is one kernel (`execution/targets/cpu_kernel.py`). `tree_poses.py` computes the same poses by sums over all
mobods; derivatives are taken of those.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.execution import in_kernels
from mbjax.execution.arrays import take
from mbjax.execution.derivative_rules import fit_tangent
from mbjax.execution.recursions import (
    array_of,
    in_one_kernel,
    rows_of,
    scan_outward,
    scan_paths,
    stage,
    walk_plan,
)
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import written_out as wo
from mbjax.topology import TreeTopology

from .body_placement import calc_body_placement
from .joint_rows import JointStepRows, OtherPoses, Pose, calc_joint_rows, calc_joint_steps, pose_across
from .position_kinematics import calc_position_kinematics
from .tree_poses import calc_body_poses
from .with_placement import placement_of


@eqx.filter_custom_jvp
def calc_poses_of_bodies(
    model: MultibodyModel, q: Float[Array, " nq"]
) -> tuple[Float[Array, "nb 3 3 ..."], Float[Array, "nb 3 ..."]]:
    """Poses R_WB and p_WB of all bodies, bodies first: by recursion in kernels, by sums elsewhere."""

    def in_kernel(model: MultibodyModel, q: Array) -> tuple[Array, Array]:
        R_WB, p_WB = in_one_kernel(poses_outward, model, q)
        return R_WB.reshape(-1, 3, 3, *R_WB.shape[2:]), p_WB

    return in_kernels(in_kernel, poses_by_sums, model, q)


@calc_poses_of_bodies.def_jvp
def _calc_poses_of_bodies_jvp(primals: tuple, tangents: tuple) -> tuple:
    poses = calc_poses_of_bodies(*primals)
    _, change = eqx.filter_jvp(poses_by_sums, primals, tangents)
    return poses, fit_tangent(change, poses)


def poses_by_sums(model: MultibodyModel, q: Float[Array, " nq"]) -> tuple[Array, Array]:
    """Poses R_WB and p_WB by sums over the tree, from the kinematics records."""
    R_WB, p_WB = calc_body_poses(model, calc_position_kinematics(model, q))
    return jnp.moveaxis(R_WB, 2, 0), jnp.swapaxes(p_WB, 0, 1)


def poses_outward(
    model: MultibodyModel, q: Float[Array, " nq"]
) -> tuple[Float[Array, "nb 9 ..."], Float[Array, "nb 3 ..."]]:
    """Recursion X_WM = X_WP X_PM mobod by mobod, then X_WB = X_WM X_MB body by body; rotations row by row."""
    topology, placement = model.topology, calc_body_placement(model)
    mobods, apart_from_M = np.arange(1, topology.num_mobods), bodies_apart_from_mobod(topology)
    alone, joints, others = np.ones(mobods.size, bool), None, None
    if mobods.size:
        of_model = placement_of(model)
        steps = calc_joint_steps(model, placement, mobods, alone) if of_model is None else of_model.mobods
        joints, others = calc_joint_rows(model, placement, steps, q, mobods, alone, alone)
    X_MB = rows_of_poses(take(placement.R_MB, apart_from_M, 2), take(placement.p_MB, apart_from_M, 1))
    worlds = np.broadcast_shapes(q.shape[1:], *(x.shape[2:] for x in jax.tree.leaves((joints, others, X_MB))))
    identity = jnp.broadcast_to(np.eye(4, 3, dtype=q.dtype).reshape(12, *(1 for _ in worlds)), (12, *worlds))

    def to_mobod(inboard: tuple[None, Pose], row: JointStepRows, others: OtherPoses | None) -> tuple[tuple, None]:
        return (None, cross_joint(inboard[1], pose_across(row, others))), None

    X_WM = identity[None]
    if joints is not None:
        plan, world = walk_plan(topology.mobod_parents[1:]), rows_of(Pose, identity)
        X_WM = array_of(scan_paths(plan, to_mobod, joints, None, world, staged=True, tables=(others,))[0])
    if apart_from_M.size:
        X_WM = jnp.concatenate([X_WM, place_all(take(X_WM, np.array(topology.body_mobods)[apart_from_M], 0), X_MB)])
    source = np.array(topology.body_mobods)
    source[apart_from_M] = topology.num_mobods + np.arange(apart_from_M.size)
    X_WB = take(X_WM, source, 0)
    return X_WB[:, :9], X_WB[:, 9:]


def bodies_apart_from_mobod(topology: TreeTopology) -> Int[np.ndarray, " n"]:
    """Bodies whose own frame may differ from M, as the model was built."""
    levels, frame_bodies = np.array(topology.frame_levels), np.array(topology.frame_bodies)
    outboard = np.array(topology.body_outboard_frames)
    is_own = (outboard >= 0) & (np.array(topology.body_weld_levels) == 0)
    is_own &= (levels[outboard] == 0) & (frame_bodies[outboard] == np.arange(outboard.size))
    is_own[0] = True
    return np.flatnonzero(~is_own)


def place_all(X_WM: Float[Array, "n 12 ..."], X_MB: Float[Array, "n 12 ..."]) -> Float[Array, "n 12 ..."]:
    """Composes X_WM X_MB row by row."""

    def place_body(_: None, row: tuple[Pose, Pose]) -> tuple[None, Pose]:
        return None, cross_joint(*row)

    plan, rows = walk_plan((0,) * X_MB.shape[0]), (rows_of(Pose, X_WM), rows_of(Pose, X_MB))
    return array_of(scan_outward(plan, place_body, rows, None, staged=True))


def rows_of_poses(R: Float[Array, "3 3 n ..."], p: Float[Array, "3 n ..."]) -> Float[Array, "n 12 ..."]:
    """Poses as rows of twelve numbers: the rotation row by row, then the translation."""
    return jnp.swapaxes(ca.concatenate([R.reshape(9, *R.shape[2:]), p], 0), 0, 1)


@stage
def cross_joint(X_WP: Pose, X_PM: Pose) -> Pose:
    """X_WM = X_WP X_PM."""
    return Pose(wo.matmul(X_WP.R, X_PM.R), wo.add(X_WP.p, wo.matvec(X_WP.R, X_PM.p)))
