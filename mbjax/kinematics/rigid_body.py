"""Pose and motion of one body and of its centre of mass."""

import jax.numpy as jnp

from mbjax.array_types import Accelerations, Positions, SpatialVector, Vector3, Velocities
from mbjax.execution import compiled_outside_jit, takes_model_first
from mbjax.model import MultibodyModel, center_of_mass_in_body_frame
from mbjax.spatial import RigidTransform
from mbjax.spatial import component_algebra as ca

from .bodies import (
    body_poses_in_world,
    body_spatial_velocities_in_world,
    spatial_accelerations_from_vdot,
)


@takes_model_first
def body_pose_in_world(model: MultibodyModel, q: Positions, body: str | int) -> RigidTransform:
    """Pose X_WB of one body in the world."""
    X_WB, index = body_poses_in_world(model, q), model.body_index(body)
    return RigidTransform(X_WB.rotation[index], X_WB.translation[index])


@compiled_outside_jit
def body_spatial_velocity_in_world(
    model: MultibodyModel, q: Positions, v: Velocities, body: str | int
) -> SpatialVector:
    """Spatial velocity V_WB_W of one body at its origin Bo: angular (rad/s), then translational (m/s)."""
    return body_spatial_velocities_in_world(model, q, v)[model.body_index(body)]


@compiled_outside_jit
def body_spatial_acceleration_in_world(
    model: MultibodyModel, q: Positions, v: Velocities, vdot: Accelerations, body: str | int
) -> SpatialVector:
    """Spatial acceleration A_WB_W of one body at its origin Bo: angular (rad/s²), then translational (m/s²)."""
    return spatial_accelerations_from_vdot(model, q, v, vdot)[model.body_index(body)]


@compiled_outside_jit
def body_center_of_mass_translational_velocity_in_world(
    model: MultibodyModel, q: Positions, v: Velocities, body: str | int
) -> Vector3:
    """Velocity v_WBcm_W of one body's centre of mass, in m/s."""
    V_WB = body_spatial_velocity_in_world(model, q, v, body)
    return V_WB[3:] + ca.cross(V_WB[:3], _p_BoBcm_W(model, q, body))


@compiled_outside_jit
def body_center_of_mass_translational_acceleration_in_world(
    model: MultibodyModel, q: Positions, v: Velocities, vdot: Accelerations, body: str | int
) -> Vector3:
    """Acceleration a_WBcm_W of one body's centre of mass, in m/s²."""
    w = body_spatial_velocity_in_world(model, q, v, body)[:3]
    A_WB = body_spatial_acceleration_in_world(model, q, v, vdot, body)
    p = _p_BoBcm_W(model, q, body)
    return A_WB[3:] + ca.cross(A_WB[:3], p) + ca.cross(w, ca.cross(w, p))


def _p_BoBcm_W(model: MultibodyModel, q: Positions, body: str | int) -> Vector3:
    if model.body_index(body) == 0:
        return jnp.zeros(3, model.dtype)
    return body_pose_in_world(model, q, body).rotation @ center_of_mass_in_body_frame(model, body)
