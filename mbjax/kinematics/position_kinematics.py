"""Poses at q and their derivative rule: along a change of q or of the model every mobod moves rigidly."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions
from mbjax.execution import compiled_outside_jit
from mbjax.execution.arrays import take
from mbjax.execution.derivative_rules import fit_tangent, moving_with, no_tangent, varying_with
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca
from mbjax.topology import over_directions, sum_over_path, sum_velocities_over_path

from .body_placement import calc_body_placement
from .coordinate_maps import qdot_to_velocity
from .direction_rates import calc_direction_rates, calc_hinge_changes, velocities_of_origins
from .joint_shifts import calc_joint_shift
from .tree_poses import JointShift, PositionKinematics, calc_tree_poses


@compiled_outside_jit
def calc_position_kinematics(model: MultibodyModel, q: Positions) -> PositionKinematics:
    """Computes X_WM = X_WP X_PF X_FM(q) outward, and all else that depends on q alone (`tree_poses.py`)."""
    q = as_coordinates("q", q, model.topology.num_positions, model.dtype, model.num_world_axes)
    return calc_poses(model, q)


@eqx.filter_custom_jvp
def calc_poses(model: MultibodyModel, q: Float[Array, " nq"]) -> PositionKinematics:
    """`calc_tree_poses` with derivatives in closed form, which do not go back along the recursion."""
    parameters = model.parameters
    frames = (parameters.frame_quaternion, parameters.frame_translation)
    joints = (parameters.joint_axis, parameters.screw_pitch, parameters.mimic_multiplier, parameters.mimic_offset)
    return moving_with(calc_tree_poses(model, q), q, frames, joints)


@calc_poses.def_jvp
def _calc_poses_jvp(primals: tuple, tangents: tuple) -> tuple[PositionKinematics, PositionKinematics]:
    (model, q), (dmodel, dq) = primals, tangents
    position = calc_poses(model, q)
    dplacement, shift = no_tangent(position.placement), None
    if jax.tree.leaves(dmodel):
        _, dplacement = eqx.filter_jvp(calc_body_placement, (model,), (dmodel,))
        dplacement = varying_with(dplacement, position.placement)
        shift = calc_joint_shift(model, dmodel, position, dplacement, q)
    change = no_tangent(position)
    if shift is not None or dq is not None:
        change = calc_displaced(model, position, q, dq, shift)
    return position, fit_tangent(dataclasses.replace(change, placement=dplacement), position)


def calc_displaced(
    model: MultibodyModel,
    position: PositionKinematics,
    q: Float[Array, " nq"],
    dq: Float[Array, " nq"] | None,
    shift: JointShift | None,
) -> PositionKinematics:
    """Tangents of poses and directions along dq and the model's `shift`, linear in both; without that of placement.

    The mobods move by phi, the sum over the path of S_j dq_j, with dq in terms of velocities, and of both shifts. With
    its rotation w, dR = [w]x R; points move with their mobod; S_T moves as in `calc_direction_rates`, except that T
    moves with its tree.
    """
    topology = model.topology
    parents = topology.parents
    still = jnp.zeros_like(position.H_W[0])
    along = still if dq is None else over_directions(topology, qdot_to_velocity(model, q, dq))
    moved = [] if dq is None else [sum_velocities_over_path(topology, ca.scale(position.S_T, along))]
    if shift is not None:
        moved.append(sum_over_path(topology, shift.inboard + shift.outboard))
    phi = sum(moved[1:], moved[0])
    w, dp_WM = velocities_of_origins(position, phi)
    w_WF, dp_WP = take(w, parents, 1), take(dp_WM, parents, 1)
    dp_TM = dp_WM - take(dp_WM, topology.mobod_roots, 1)
    dH = calc_hinge_changes(model, position, q, along, w, shift)
    if shift is not None:
        w_WF = w_WF + shift.inboard[:3]
    return PositionKinematics(
        placement=no_tangent(position.placement),
        R_WM=turned_vectors(w, position.R_WM),
        p_WM=dp_WM,
        R_WF=turned_vectors(w_WF, position.R_WF),
        p_PM_W=dp_WM - dp_WP,
        p_TM_W=dp_TM,
        H_W=dH,
        S_T=calc_direction_rates(topology, position, dH, dp_TM),
        displacement=phi,
        shift=no_tangent(position.shift) if shift is None else shift,
    )


def turned_vectors(w: Float[Array, "3 n"], R: Float[Array, "3 3 n"]) -> Float[Array, "3 3 n"]:
    """Tangent [w]x R of rotations that turn by w."""
    return jnp.stack([ca.cross(w, R[:, k]) for k in range(3)], 1)
