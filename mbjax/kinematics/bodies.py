"""Poses, velocities and accelerations of all bodies, in declaration order with the world first."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Accelerations, BodySpatialVectors, Positions, Velocities
from mbjax.execution import compiled_outside_jit, takes_model_first
from mbjax.execution.arrays import take
from mbjax.model import MultibodyModel, as_coordinates
from mbjax.spatial import RigidTransform
from mbjax.spatial import component_algebra as ca

from .acceleration_kinematics import AccelerationKinematics, calc_acceleration_kinematics
from .placed_model import for_worlds_of
from .position_kinematics import calc_position_kinematics
from .recursive_poses import calc_poses_of_bodies
from .tree_poses import PositionKinematics, calc_body_poses
from .velocity_kinematics import VelocityKinematics, calc_velocity_kinematics


@takes_model_first
def body_poses_in_world(model: MultibodyModel, q: Positions) -> RigidTransform:
    """Poses X_WB of all bodies: rotation (nb, 3, 3) and translation (nb, 3) in m."""
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    return RigidTransform(*for_worlds_of(calc_poses_of_bodies, model, q))


@compiled_outside_jit
def body_spatial_velocities_in_world(model: MultibodyModel, q: Positions, v: Velocities) -> BodySpatialVectors:
    """Spatial velocities V_WB_W of all bodies at their origins Bo: angular (rad/s), then translational (m/s)."""
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    return calc_body_velocities(model, position, velocity).T


def body_poses_and_velocities(
    model: MultibodyModel, q: Positions, v: Velocities
) -> tuple[RigidTransform, BodySpatialVectors]:
    """Poses X_WB and spatial velocities V_WB_W of all bodies, from one computation of the kinematics."""
    q = as_coordinates("q", q, model.num_positions, model.dtype)
    v = as_coordinates("v", v, model.num_velocities, model.dtype)
    R_WB, p_WB, V_WB_W = for_worlds_of(_body_poses_and_velocities, model, q, v)
    return RigidTransform(R_WB, p_WB), V_WB_W


def _body_poses_and_velocities(model: MultibodyModel, q: Array, v: Array) -> tuple[Array, Array, Array]:
    position = calc_position_kinematics(model, q)
    R_WB, p_WB = calc_body_poses(model, position)
    V_WB_W = calc_body_velocities(model, position, calc_velocity_kinematics(model, position, q, v))
    return jnp.moveaxis(R_WB, 2, 0), ca.transpose(p_WB), ca.transpose(V_WB_W)


@compiled_outside_jit
def spatial_accelerations_from_vdot(
    model: MultibodyModel, q: Positions, v: Velocities, vdot: Accelerations
) -> BodySpatialVectors:
    """Spatial accelerations A_WB_W of all bodies at their origins Bo: angular (rad/s²), then translational (m/s²)."""
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    acceleration = calc_acceleration_kinematics(model, position, velocity, v, vdot)
    return calc_body_accelerations(model, position, velocity, acceleration).T


def calc_body_offsets(model: MultibodyModel, position: PositionKinematics) -> Float[Array, "3 nb"]:
    """Offset p_MoBo_W from the origin of each body's mobod to the body's own."""
    return ca.matvec(take(position.R_WM, model.topology.body_mobods, 2), position.placement.p_MB)


def calc_body_velocities(
    model: MultibodyModel, position: PositionKinematics, velocity: VelocityKinematics
) -> Float[Array, "6 nb"]:
    """Spatial velocity V_WB of every body at its origin Bo, in W."""
    mobods = model.topology.body_mobods
    w = take(velocity.V_WM_T[:3], mobods, 1)
    return jnp.concatenate([w, take(velocity.v_WMo, mobods, 1) + ca.cross(w, calc_body_offsets(model, position))])


def calc_body_accelerations(
    model: MultibodyModel,
    position: PositionKinematics,
    velocity: VelocityKinematics,
    acceleration: AccelerationKinematics,
) -> Float[Array, "6 nb"]:
    """Spatial acceleration A_WB of every body at Bo, in W: a_Bo = a_Mo + alpha x p + w x (w x p)."""
    mobods = model.topology.body_mobods
    w, alpha = take(velocity.V_WM_T[:3], mobods, 1), take(acceleration.A_WM_T[:3], mobods, 1)
    p = calc_body_offsets(model, position)
    a_WBo = take(acceleration.a_WMo, mobods, 1) + ca.cross(alpha, p) + ca.cross(w, ca.cross(w, p))
    return jnp.concatenate([alpha, a_WBo])
