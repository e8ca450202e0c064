"""The centre of mass of the system, or of some model instances: position, velocity, Jacobian, bias acceleration."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from mbjax.array_types import Accelerations, Positions, Vector3, Velocities
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit, of_one_model
from mbjax.execution.arrays import dot_with_mask, take
from mbjax.forces import calc_masses_and_centers
from mbjax.kinematics import (
    calc_acceleration_kinematics,
    calc_body_accelerations,
    calc_body_velocities,
    calc_frame_pose,
    calc_point_jacobian,
    calc_position_kinematics,
    calc_velocity_kinematics,
)
from mbjax.kinematics.frames import FrameLike, calc_point_acceleration, calc_point_velocity
from mbjax.kinematics.jacobians import WithRespectTo, convert_columns
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide
from mbjax.topology import sum_directions

from .records.tree_motion import calc_inertia_in_world

Instances = Sequence[str | int] | None
WORLD_FRAME = 0


@of_one_model
def total_mass(model: MultibodyModel, model_instances: Instances = None) -> Float[Array, ""]:
    """Total mass of all bodies, or of some instances' bodies, in kg."""
    return jnp.sum(model.parameters.body_mass * jnp.asarray(selected_bodies(model, model_instances)[1:], model.dtype))


@compiled_outside_jit
def center_of_mass_position_in_world(model: MultibodyModel, q: Positions, model_instances: Instances = None) -> Vector3:
    """Position of the centre of mass Scm in the world: p_WScm = sum m p_WBcm / sum m, in m."""
    mass, _, p_WBcm = calc_masses_and_centers(model, calc_position_kinematics(model, q))
    return weighted_mean(selected_masses(model, mass, model_instances), p_WBcm)


@compiled_outside_jit
def center_of_mass_translational_velocity_in_world(
    model: MultibodyModel, q: Positions, v: Velocities, model_instances: Instances = None
) -> Vector3:
    """Velocity of the centre of mass in the world: v_WScm_W = J v, in m/s."""
    J = jacobian_center_of_mass_translational_velocity(model, q, model_instances)
    return J @ as_coordinates("v", v, model.num_velocities, model.dtype)


@compiled_outside_jit
def center_of_mass_translational_acceleration_in_world(
    model: MultibodyModel, q: Positions, v: Velocities, vdot: Accelerations, model_instances: Instances = None
) -> Vector3:
    """Acceleration of the centre of mass in the world: a_WScm_W = J vdot + bias, in m/s²."""
    J = jacobian_center_of_mass_translational_velocity(model, q, model_instances)
    bias = bias_center_of_mass_translational_acceleration(model, q, v, model_instances)
    return J @ as_coordinates("vdot", vdot, model.num_velocities, model.dtype) + bias


@compiled_outside_jit
def jacobian_center_of_mass_translational_velocity(
    model: MultibodyModel,
    q: Positions,
    model_instances: Instances = None,
    wrt: WithRespectTo = "v",
    frame_A: FrameLike = WORLD_FRAME,
    frame_E: FrameLike = WORLD_FRAME,
) -> Float[Array, "3 n"]:
    """J with v_AScm_E = J v (or J qdot), measured in frame A and expressed in E, both the world by default."""
    position = calc_position_kinematics(model, q)
    mass, p_BoBcm_W, p_WBcm = calc_masses_and_centers(model, position)
    mass = selected_masses(model, mass, model_instances)
    mobods = model.topology.body_mobods
    p_TBcm_W = take(position.p_TM_W, mobods, 1) + p_BoBcm_W
    p_TBcm_W = p_TBcm_W + ca.matvec(take(position.R_WM, mobods, 2), position.placement.p_MB)
    per_body = jnp.concatenate([mass[None], mass * p_TBcm_W])
    outboard = dot_with_mask(dot_with_mask(per_body, model.topology.body_membership, 1), model.topology.moves.T, 1)
    w, v_T = position.S_T[:3], position.S_T[3:]
    J_W = safe_divide(outboard[0] * v_T + ca.cross(w, outboard[1:]), jnp.sum(mass))
    J_W = sum_directions(model.topology, J_W, 1)
    A = calc_frame_pose(model, position, frame_A)
    p_MAScm_W = weighted_mean(mass, p_WBcm) - position.p_WM[:, A.mobod]
    J_W = J_W - calc_point_jacobian(model, position, A.mobod, p_MAScm_W)[3:]
    J_E = jnp.tensordot(calc_frame_pose(model, position, frame_E).R_WF.T, J_W, 1)
    return convert_columns(model, q, J_E, wrt)


@compiled_outside_jit
def bias_center_of_mass_translational_acceleration(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    model_instances: Instances = None,
    frame_A: FrameLike = WORLD_FRAME,
    frame_E: FrameLike = WORLD_FRAME,
) -> Vector3:
    """Acceleration a_AScm_E at vdot = 0, in m/s², measured in frame A, expressed in E, both the world by default.

    a_AScm = a_WScm - a_WAp - 2 w_WA x v_AScm, with Ap the point of A that coincides with Scm.
    """
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    acceleration = calc_acceleration_kinematics(model, position, velocity, v, None)
    V_WB = calc_body_velocities(model, position, velocity)
    A_WB = calc_body_accelerations(model, position, velocity, acceleration)
    mass, p, p_WBcm = calc_masses_and_centers(model, position)
    mass = selected_masses(model, mass, model_instances)
    w, alpha = V_WB[:3], A_WB[:3]
    v_WScm = weighted_mean(mass, V_WB[3:] + ca.cross(w, p))
    a_WScm = weighted_mean(mass, A_WB[3:] + ca.cross(alpha, p) + ca.cross(w, ca.cross(w, p)))
    A = calc_frame_pose(model, position, frame_A)
    p_MAp_W = weighted_mean(mass, p_WBcm) - position.p_WM[:, A.mobod]
    V_WAp = calc_point_velocity(velocity, A.mobod, p_MAp_W)
    A_WAp = calc_point_acceleration(velocity, acceleration, A.mobod, p_MAp_W)
    a_AScm_W = a_WScm - A_WAp[3:] - 2.0 * ca.cross(V_WAp[:3], v_WScm - V_WAp[3:])
    return ca.transposed_matvec(calc_frame_pose(model, position, frame_E).R_WF, a_AScm_W)


def calc_center_of_mass_and_jacobian(
    model: MultibodyModel, q: Float[Array, " nq"]
) -> tuple[Float[Array, "3"], Float[Array, "3 nv"]]:
    """Position p_WScm of the centre of mass of all bodies and J with v_WScm_W = J v, for one world or for many."""
    topology, position = model.topology, calc_position_kinematics(model, q)
    inertia = calc_inertia_in_world(model, position)
    total = jnp.sum(inertia.mass, axis=0)
    p_WScm = safe_divide(jnp.sum(inertia.mass * position.p_WM + inertia.moment, axis=1), total)
    per_mobod = ca.concatenate([inertia.mass[None], inertia.mass * position.p_TM_W + inertia.moment], 0)
    outboard = dot_with_mask(per_mobod, topology.moves.T, 1)
    w, v_T = position.S_T[:3], position.S_T[3:]
    J_W = safe_divide(outboard[0] * v_T + ca.cross(w, outboard[1:]), total)
    return p_WScm, sum_directions(topology, J_W, 1)


def weighted_mean(mass: Float[Array, " nb"], x: Float[Array, "3 nb"]) -> Vector3:
    """Mass-weighted mean sum m x / sum m; zero where the total mass is zero."""
    return safe_divide(jnp.sum(mass * x, axis=-1), jnp.sum(mass))


def selected_masses(
    model: MultibodyModel, mass: Float[Array, " nb"], model_instances: Instances
) -> Float[Array, " nb"]:
    """Masses of the instances' bodies, zero for other bodies; raises where the instances hold no body."""
    selected = selected_bodies(model, model_instances)
    if model_instances is not None and not selected.any():
        raise ModelError(
            f"model instances {list(model_instances)!r} hold no body but the world, so they have no centre of mass."
        )
    return mass * jnp.asarray(selected, model.dtype)


def selected_bodies(model: MultibodyModel, model_instances: Instances) -> np.ndarray:
    """(nb,) mask of the bodies that belong to the instances; all but the world when None."""
    if isinstance(model_instances, str | int):
        raise ModelError(f"model_instances must be a list, got {model_instances!r}; write [{model_instances!r}].")
    owners = np.array(model.layout.body_instances)
    selected = np.ones(len(owners), bool)
    if model_instances is not None:
        selected = np.isin(owners, [model.model_instance_index(i) for i in model_instances])
    selected[0] = False
    return selected
