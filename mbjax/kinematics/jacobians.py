"""Jacobians of frame and point velocities with respect to v or q̇, and bias accelerations dJ/dt v."""

from collections.abc import Callable
from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.array_types import Positions, SpatialVector, Vector3, Velocities
from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import sum_directions

from .coordinate_maps import qdot_to_velocity_matrix
from .frames import FrameLike, as_point, as_points, calc_frame_pose, calc_offset, calc_relative_motion, express_in
from .position_kinematics import calc_position_kinematics
from .tree_poses import PositionKinematics

WithRespectTo = Literal["v", "qdot"]


@compiled_outside_jit
def jacobian_spatial_velocity(
    model: MultibodyModel,
    q: Positions,
    frame_B: FrameLike,
    p_BoBp_B: Vector3,
    frame_A: FrameLike,
    frame_E: FrameLike,
    wrt: WithRespectTo = "v",
) -> Float[Array, "6 n"]:
    """J with V_ABp_E = J v (or J qdot), the velocity of frame B at its point Bp, measured in A, expressed in E."""
    position = calc_position_kinematics(model, q)
    A, B = calc_frame_pose(model, position, frame_A), calc_frame_pose(model, position, frame_B)
    p_MBp_W = B.p_MF_W + ca.matvec(B.R_WF, as_point("p_BoBp_B", p_BoBp_B, model.dtype))
    p_MAp_W = A.p_MF_W + calc_offset(model, position, A, B.mobod, p_MBp_W)
    J_W = calc_point_jacobian(model, position, B.mobod, p_MBp_W) - calc_point_jacobian(
        model, position, A.mobod, p_MAp_W
    )
    J_E = express_in(calc_frame_pose(model, position, frame_E).R_WF, J_W)
    return convert_columns(model, q, J_E, wrt)


@compiled_outside_jit
def jacobian_angular_velocity(
    model: MultibodyModel,
    q: Positions,
    frame_B: FrameLike,
    frame_A: FrameLike,
    frame_E: FrameLike,
    wrt: WithRespectTo = "v",
) -> Float[Array, "3 n"]:
    """J with w_AB_E = J v (or J qdot), the angular velocity of frame B in A, expressed in E."""
    return jacobian_spatial_velocity(model, q, frame_B, jnp.zeros(3), frame_A, frame_E, wrt)[:3]


@compiled_outside_jit
def jacobian_translational_velocity(
    model: MultibodyModel,
    q: Positions,
    frame_B: FrameLike,
    p_BoBi_B: Float[Array, "*k 3"],
    frame_A: FrameLike,
    frame_E: FrameLike,
    wrt: WithRespectTo = "v",
) -> Float[Array, "*k 3 n"]:
    """J with v_ABi_E = J v (or J qdot), the velocity in A, expressed in E, of a point (3,) of B or of many (..., 3)."""
    points = as_points("p_BoBi_B", p_BoBi_B, model.dtype)

    def jacobian(p: Vector3) -> Array:
        return jacobian_spatial_velocity(model, q, frame_B, p, frame_A, frame_E, wrt)[3:]

    return for_each_point(jacobian, points)


@compiled_outside_jit
def jacobian_position_vector(
    model: MultibodyModel,
    q: Positions,
    frame_B: FrameLike,
    p_BoBi_B: Float[Array, "*k 3"],
    frame_A: FrameLike,
    frame_E: FrameLike,
) -> Float[Array, "*k 3 nq"]:
    """Partial derivative with respect to q of p_AoBi, expressed in E; taken through q̇, as in Drake."""
    return jacobian_translational_velocity(model, q, frame_B, p_BoBi_B, frame_A, frame_E, "qdot")


@compiled_outside_jit
def bias_spatial_acceleration(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    frame_B: FrameLike,
    p_BoBp_B: Vector3,
    frame_A: FrameLike,
    frame_E: FrameLike,
) -> SpatialVector:
    """Bias A_ABp_E at vdot = 0: dJ/dt v for J of `jacobian_spatial_velocity`, with the rate taken in A."""
    return calc_relative_motion(model, q, v, None, frame_B, p_BoBp_B, frame_A, frame_E)[1]


@compiled_outside_jit
def bias_translational_acceleration(
    model: MultibodyModel,
    q: Positions,
    v: Velocities,
    frame_B: FrameLike,
    p_BoBi_B: Float[Array, "*k 3"],
    frame_A: FrameLike,
    frame_E: FrameLike,
) -> Float[Array, "*k 3"]:
    """Bias a_ABi_E at vdot = 0, in m/s², of one point (3,) of B or of many, (..., 3)."""
    points = as_points("p_BoBi_B", p_BoBi_B, model.dtype)

    def bias(p: Vector3) -> Array:
        return bias_spatial_acceleration(model, q, v, frame_B, p, frame_A, frame_E)[3:]

    return for_each_point(bias, points)


def for_each_point(function: Callable[[Vector3], Array], points: Float[Array, "*k 3"]) -> Float[Array, "..."]:
    """The function of one point (3,), or of each point on the leading axes."""
    for _ in points.shape[:-1]:
        function = jax.vmap(function)
    return function(points)


def calc_point_jacobian(
    model: MultibodyModel, position: PositionKinematics, mobod: int, p_MQ_W: Vector3
) -> Float[Array, "6 nv"]:
    """J with V_WQ_W = J v, the velocity of a mobod at its point Q; zero for the world."""
    p_TQ_W = position.p_TM_W[:, mobod] + p_MQ_W
    w, v_T = position.S_T[:3], position.S_T[3:]
    J = ca.concatenate([w, v_T + ca.cross(w, p_TQ_W[:, None])], 0)
    moves = model.topology.moves[:, mobod].reshape(-1, *(1,) * (J.ndim - 2))
    return sum_directions(model.topology, jnp.where(moves, J, 0.0), 1)


def convert_columns(
    model: MultibodyModel, q: Positions, J: Float[Array, "k nv"], wrt: WithRespectTo
) -> Float[Array, "k n"]:
    """J unchanged for wrt="v", J N+(q) for wrt="qdot"; raises for anything else."""
    if wrt == "v":
        return J
    if wrt == "qdot":
        return J @ qdot_to_velocity_matrix(model, q)
    raise ModelError(f"wrt must be 'v' or 'qdot', got {wrt!r}.")
