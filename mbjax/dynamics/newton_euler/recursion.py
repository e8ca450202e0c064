"""The recursive Newton–Euler algorithm in kernels (Featherstone 2008, table 5.1): its loops; `step.py` has their steps.

    outward   poses, velocities, accelerations, and the forces they take less weights and applied forces
    inward    forces of everything outboard, and torques

`sums.py` computes the same torques by sums over all mobods at once, which is faster where starting a kernel takes long.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.execution.recursions import (
    array_of,
    in_one_kernel,
    rows_of,
    scan_inward,
    scan_outward,
    walk_plan,
    zeros_of,
)
from mbjax.kinematics import OtherPoses
from mbjax.model import MultibodyModel
from mbjax.topology import TreeTopology, direction_parents

from ..records.direction_rows import DirectionRows, calc_direction_rows, worlds_of
from ..records.spatial_records import Force
from .step import BodyMotion, MotionRows, gather_force, move_outward


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
    dtype, zeros = gravity.dtype, jnp.zeros((6, *worlds), gravity.dtype)
    acceleration = jnp.broadcast_to(jnp.zeros_like(gravity) if rows.weight is not None else -gravity, (3, *worlds))
    identity = jnp.broadcast_to(np.eye(3, dtype=dtype).reshape(9, *(1 for _ in worlds)), (9, *worlds))
    world = jnp.concatenate([identity, zeros, acceleration, *([] if rows.is_first is None else [zeros[:3]])])
    plan, g = walk_plan(direction_parents(topology)), None if rows.weight is None else rows_of(3, gravity)
    return scan_outward(plan, move_outward, rows, rows_of(BodyMotion, world), staged=True, tables=(others, g))


def calc_torques(topology: TreeTopology, motion: MotionRows) -> Float[Array, " nd"]:
    """Inward pass: tau = H · (sum of the forces of everything outboard)."""
    plan = walk_plan(direction_parents(topology))

    def step(outboard: Any, row: MotionRows) -> tuple[Force, Array]:
        return gather_force(outboard, row.hinge, row.force)

    def inward(motion: MotionRows) -> Array:
        force = array_of(motion.force)
        return scan_inward(plan, step, motion, zeros_of(Force, force.shape[2:], force.dtype), staged=True)[0]

    return in_one_kernel(inward, motion)
