"""Poses and motions of any frame relative to any other."""

from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Matrix3, Positions, SpatialVector, Vector3, Velocities
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.model import MultibodyModel
from mbjax.spatial import RigidTransform
from mbjax.spatial import component_algebra as ca

from .acceleration_kinematics import AccelerationKinematics, calc_acceleration_kinematics
from .position_kinematics import calc_position_kinematics
from .tree_poses import PositionKinematics
from .velocity_kinematics import VelocityKinematics, calc_velocity_kinematics

FrameLike = str | int


class FramePose(NamedTuple):
    """Pose of a frame F in W: its mobod, its rotation, and its origin from Mo and from Wo."""

    mobod: int
    R_WF: Matrix3
    p_MF_W: Vector3
    p_WF: Vector3


def calc_frame_pose(model: MultibodyModel, position: PositionKinematics, frame: FrameLike) -> FramePose:
    """Pose X_WF = X_WM X_MB X_BF of one frame, in one world or in many."""
    index = model.frame_index(frame)
    body = model.topology.frame_bodies[index]
    mobod = model.topology.body_mobods[body]
    placement = position.placement
    R_MB, R_WM = placement.R_MB[:, :, body], position.R_WM[:, :, mobod]
    R_MF = ca.matmul(R_MB, placement.R_BF[:, :, index])
    p_MF = placement.p_MB[:, body] + ca.matvec(R_MB, placement.p_BF[:, index])
    p_MF_W = ca.matvec(R_WM, p_MF)
    return FramePose(mobod, ca.matmul(R_WM, R_MF), p_MF_W, position.p_WM[:, mobod] + p_MF_W)


@compiled_outside_jit
def relative_transform(model: MultibodyModel, q: Positions, frame_A: FrameLike, frame_B: FrameLike) -> RigidTransform:
    """X_AB: the pose of frame B in frame A."""
    position = calc_position_kinematics(model, q)
    A, B = calc_frame_pose(model, position, frame_A), calc_frame_pose(model, position, frame_B)
    p_AB_W = calc_offset(model, position, A, B.mobod, B.p_MF_W)
    return RigidTransform(ca.matmul(A.R_WF.T, B.R_WF), ca.matvec(A.R_WF.T, p_AB_W))


@compiled_outside_jit
def relative_rotation_matrix(model: MultibodyModel, q: Positions, frame_A: FrameLike, frame_B: FrameLike) -> Matrix3:
    """R_AB: the orientation of frame B in frame A."""
    return relative_transform(model, q, frame_A, frame_B).rotation


@compiled_outside_jit
def points_positions(
    model: MultibodyModel,
    q: Positions,
    frame_B: FrameLike,
    p_BQi: Float[Array, "*k 3"],
    frame_A: FrameLike,
) -> Float[Array, "*k 3"]:
    """Positions p_AQi in frame A of points given in frame B: one point (3,) or several (k, 3), in m."""
    return relative_transform(model, q, frame_A, frame_B) @ as_points("p_BQi", p_BQi, model.dtype)


def calc_offset(
    model: MultibodyModel, position: PositionKinematics, A: FramePose, mobod: int, p_MQ_W: Vector3
) -> Vector3:
    """Offset p_AoQ_W to a point Q fixed to a mobod; within one tree no large coordinates are subtracted."""
    same_tree = model.topology.mobod_roots[A.mobod] == model.topology.mobod_roots[mobod]
    start = position.p_TM_W if same_tree else position.p_WM
    return (start[:, mobod] - start[:, A.mobod]) + p_MQ_W - A.p_MF_W


def calc_point_velocity(velocity: VelocityKinematics, mobod: int, p_MQ_W: Vector3) -> SpatialVector:
    """Spatial velocity V_WQ_W of a mobod at its point Q."""
    w = velocity.V_WM_T[:3, mobod]
    return jnp.concatenate([w, velocity.v_WMo[:, mobod] + ca.cross(w, p_MQ_W)])


def calc_point_acceleration(
    velocity: VelocityKinematics, acceleration: AccelerationKinematics, mobod: int, p_MQ_W: Vector3
) -> SpatialVector:
    """Spatial acceleration A_WQ_W of a mobod at its point Q."""
    w, alpha = velocity.V_WM_T[:3, mobod], acceleration.A_WM_T[:3, mobod]
    a = acceleration.a_WMo[:, mobod] + ca.cross(alpha, p_MQ_W) + ca.cross(w, ca.cross(w, p_MQ_W))
    return jnp.concatenate([alpha, a])


def calc_relative_motion(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    vdot: Array | None,
    frame_B: FrameLike,
    p_BoBp_B: Vector3,
    frame_A: FrameLike,
    frame_E: FrameLike,
) -> tuple[SpatialVector, SpatialVector]:
    """V_ABp_E and A_ABp_E of B at its point Bp, measured in A, expressed in E; vdot None gives the bias acceleration.

    With Ap the point of A that coincides with Bp:
        w_AB = w_WB - w_WA                    v_ABp = v_WBp - v_WAp
        alpha_AB = alpha_WB - alpha_WA - w_WA x w_AB
        a_ABp = a_WBp - a_WAp - 2 w_WA x v_ABp
    """
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    acceleration = calc_acceleration_kinematics(model, position, velocity, v, vdot)
    A, B = calc_frame_pose(model, position, frame_A), calc_frame_pose(model, position, frame_B)
    p_MBp_W = B.p_MF_W + ca.matvec(B.R_WF, as_point("p_BoBp_B", p_BoBp_B, model.dtype))
    p_MAp_W = A.p_MF_W + calc_offset(model, position, A, B.mobod, p_MBp_W)
    V_WBp = calc_point_velocity(velocity, B.mobod, p_MBp_W)
    V_WAp = calc_point_velocity(velocity, A.mobod, p_MAp_W)
    V_AB = V_WBp - V_WAp
    A_difference = calc_point_acceleration(velocity, acceleration, B.mobod, p_MBp_W) - calc_point_acceleration(
        velocity, acceleration, A.mobod, p_MAp_W
    )
    w_WA = V_WAp[:3]
    A_AB = A_difference - jnp.concatenate([ca.cross(w_WA, V_AB[:3]), 2.0 * ca.cross(w_WA, V_AB[3:])])
    R_WE = calc_frame_pose(model, position, frame_E).R_WF
    return express_in(R_WE, V_AB), express_in(R_WE, A_AB)


def express_in(R_WE: Matrix3, V_W: Array) -> Array:
    """Re-expresses spatial vectors (6, ...) from W in E."""
    rotation = R_WE.T
    return jnp.concatenate([jnp.tensordot(rotation, V_W[:3], 1), jnp.tensordot(rotation, V_W[3:], 1)])


def as_points(name: str, points: Any, dtype: Any) -> Float[Array, "... 3"]:
    """Points as an array whose last axis has three coordinates, in m; anything else is a `ModelError`."""
    try:
        array = jnp.asarray(points, dtype=dtype)
    except (TypeError, ValueError):
        raise ModelError(f"{name} must be a point or points of 3 coordinates in m, got {points!r}.") from None
    if array.shape[-1:] != (3,):
        raise ModelError(f"{name} must be a point or points of 3 coordinates in m, got shape {array.shape}.")
    return array


def as_point(name: str, point: Any, dtype: Any) -> Vector3:
    """One point of three coordinates, in m; anything else is a `ModelError`."""
    array = as_points(name, point, dtype)
    if array.ndim != 1:
        raise ModelError(f"{name} must be one point (3,) in m, got shape {array.shape}; take jax.vmap for several.")
    return array
