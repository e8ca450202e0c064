"""Poses of all bodies as the recursion of the books, one mobod a step: of one world on a CPU.

What `tree_poses` does with sums over all mobods, where nothing but the poses is asked for; of many worlds that is as
fast. One kernel (`mbjax/one_kernel.py`); the derivative is that of the records.
"""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.model import MultibodyModel
from mbjax.one_kernel import computed_once, in_one_kernel, on_cpu
from mbjax.spatial import written_out as wo
from mbjax.tangents import fit_tangent
from mbjax.topology import scan_outward, take, walk_plan

from .body_placement import calc_body_placement
from .position_kinematics import calc_position_kinematics
from .tree_poses import calc_body_poses, calc_joint_kinematics


@eqx.filter_custom_jvp
def calc_poses_of_bodies(
    model: MultibodyModel, q: Float[Array, " nq"]
) -> tuple[Float[Array, "nb 3 3 ..."], Float[Array, "nb 3 ..."]]:
    """R_WB and p_WB, bodies first."""

    def in_kernel(model: MultibodyModel, q: Array) -> tuple[Array, Array]:
        return in_one_kernel(poses_outward, model, q)

    return on_cpu(in_kernel, poses_by_sums, model, q) if q.ndim == 1 else poses_by_sums(model, q)


@calc_poses_of_bodies.def_jvp
def _calc_poses_of_bodies_jvp(primals: tuple, tangents: tuple) -> tuple:
    poses = calc_poses_of_bodies(*primals)
    _, change = eqx.filter_jvp(poses_by_sums, primals, tangents)
    return poses, fit_tangent(change, poses)


def poses_by_sums(model: MultibodyModel, q: Float[Array, " nq"]) -> tuple[Array, Array]:
    """The same from the records."""
    R_WB, p_WB = calc_body_poses(model, calc_position_kinematics(model, q))
    return jnp.moveaxis(R_WB, 2, 0), jnp.swapaxes(p_WB, 0, 1)


def poses_outward(model: MultibodyModel, q: Float[Array, " nq"]) -> tuple[Array, Array]:
    """X_WM = X_WP X_PF X_FM mobod by mobod, and X_WB = X_WM X_MB body by body."""
    topology, placement = model.topology, calc_body_placement(model)
    R_FM, p_FM, _ = calc_joint_kinematics(model, placement, q)
    X_PF, X_FM, X_MB = (
        rows_of_poses(R, p)
        for R, p in ((placement.R_PF, placement.p_PF), (R_FM, p_FM), (placement.R_MB, placement.p_MB))
    )
    worlds = jnp.broadcast_shapes(*(x.shape[2:] for x in (X_PF, X_FM, X_MB)))
    identity = jnp.broadcast_to(jnp.eye(4, 3, dtype=q.dtype).reshape(12, *(1 for _ in worlds)), (12, *worlds))

    def to_mobod(X_WP: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        X_WF = computed_once(lambda *x: compose(*map(apart, x)), X_WP, row[0])
        X_WM = computed_once(lambda X_WF, X_FM: wo.put_together(*compose(X_WF, apart(X_FM))), X_WF, row[1])
        return X_WM, X_WM

    def to_body(_: Array, row: tuple[Array, Array]) -> tuple[Array, Array]:
        X_WB = computed_once(lambda *x: wo.put_together(*compose(*map(apart, x))), *row)
        return X_WB, X_WB

    X_WM = identity[None]
    if topology.num_mobods > 1:
        plan = walk_plan(topology.mobod_parents[1:])
        X_WM = jnp.concatenate([X_WM, scan_outward(plan, to_mobod, (X_PF[1:], X_FM[1:]), identity)])
    no_parents = walk_plan((0,) * topology.num_bodies)
    X_WB = scan_outward(no_parents, to_body, (take(X_WM, topology.body_mobods, 0), X_MB), identity)
    return X_WB[:, :9].reshape(-1, 3, 3, *worlds), X_WB[:, 9:]


def rows_of_poses(R: Float[Array, "3 3 n ..."], p: Float[Array, "3 n ..."]) -> Float[Array, "n 12 ..."]:
    """Rotation row by row, then translation."""
    worlds = jnp.broadcast_shapes(R.shape[3:], p.shape[2:])
    R, p = jnp.broadcast_to(R, (*R.shape[:3], *worlds)), jnp.broadcast_to(p, (*p.shape[:2], *worlds))
    return jnp.swapaxes(jnp.concatenate([R.reshape(9, *R.shape[2:]), p]), 0, 1)


Pose = tuple[wo.Matrix, wo.Vector]


def apart(X: Float[Array, "12 ..."]) -> Pose:
    """Rotation and translation, every entry apart."""
    R, p = wo.take_apart(X, (3, 3), 3)
    return R, p


def compose(X_AB: Pose, X_BC: Pose) -> Pose:
    """X_AC."""
    (R_AB, p_AB), (R_BC, p_BC) = X_AB, X_BC
    return wo.matmul(R_AB, R_BC), wo.add(p_AB, wo.matvec(R_AB, p_BC))
