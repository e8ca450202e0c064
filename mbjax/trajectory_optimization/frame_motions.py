"""Poses and velocities of frames with their Jacobians, of all steps at once: what closed forms of goals are made of.

With a frame's spatial velocity V at its point P, and B, s and S(P) as in the derivatives of the bodies' motion,

    dw / dq_j = s_j x w + B_j                dv_P / dq_j = s_j x v_P + B_j(P)                dV / dv_j = S_j(P).
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.dynamics import calc_motion_derivatives
from mbjax.kinematics import (
    PositionKinematics,
    calc_frame_pose,
    calc_point_jacobian,
    calc_position_kinematics,
    calc_velocity_kinematics,
    for_worlds_of,
)
from mbjax.model import MultibodyModel
from mbjax.spatial import component_algebra as ca
from mbjax.topology import sum_directions

FrameName = str | int


class FrameMotion(NamedTuple):
    """Attitude of a frame, position of its point P in the world, and J with V_WP_W = J v."""

    R_WF: Float[Array, "3 3"]
    p_WP: Float[Array, "3"]
    J: Float[Array, "6 nv"]


class FrameVelocitySlopes(NamedTuple):
    """Spatial velocity V_WP_W of a frame at its point P, and its derivatives by the tangent dq and by v."""

    V_WP: Float[Array, "6"]
    by_q: Float[Array, "6 nv"]
    by_v: Float[Array, "6 nv"]


def frame_motion(
    model: MultibodyModel, q: Float[Array, " nq"], frame: FrameName, p_FP: Float[Array, "3"]
) -> FrameMotion:
    """Where a frame and its point are, and how both move with the velocities."""
    return for_worlds_of(calc_frame_motion, model, q, jnp.asarray(p_FP, q.dtype), model.frame_index(frame))


def frame_velocity(
    model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"], frame: FrameName, p_FP: Float[Array, "3"]
) -> FrameVelocitySlopes:
    """How a frame moves at its point, and how that changes with positions and velocities."""
    return for_worlds_of(calc_frame_velocity, model, q, v, jnp.asarray(p_FP, q.dtype), model.frame_index(frame))


def calc_frame_motion(
    model: MultibodyModel, q: Float[Array, " nq"], p_FP: Float[Array, "3"], frame: int
) -> FrameMotion:
    """Pose and Jacobian, for one world or for many."""
    return place_point(model, calc_position_kinematics(model, q), p_FP, frame)[0]


def calc_frame_velocity(
    model: MultibodyModel, q: Float[Array, " nq"], v: Float[Array, " nv"], p_FP: Float[Array, "3"], frame: int
) -> FrameVelocitySlopes:
    """Velocity and its derivatives, for one world or for many."""
    position = calc_position_kinematics(model, q)
    velocity = calc_velocity_kinematics(model, position, q, v)
    at, mobod, p_TP = place_point(model, position, p_FP, frame)
    B, S = calc_motion_derivatives(model, position, velocity, q, v, jnp.zeros_like(v)).B, position.S_T
    V_T, p, s = velocity.V_WM_T[:, mobod], p_TP[:, None], S[:3]
    w, v_P = V_T[:3], V_T[3:] + ca.cross(V_T[:3], p_TP)
    of_w = ca.cross(s, w[:, None]) + B[:3]
    of_v = ca.cross(s, v_P[:, None]) + B[3:] + ca.cross(B[:3], p)
    moves = model.topology.moves[:, mobod].reshape(-1, *(1,) * (S.ndim - 2))
    by_q = sum_directions(model.topology, jnp.where(moves, ca.concatenate([of_w, of_v], 0), 0.0), 1)
    return FrameVelocitySlopes(ca.concatenate([w, v_P], 0), by_q, at.J)


def place_point(
    model: MultibodyModel, position: PositionKinematics, p_FP: Float[Array, "3"], frame: int
) -> tuple[FrameMotion, int, Float[Array, "3"]]:
    """A frame's motion about its point P, its mobod, and p_TP in the world."""
    F = calc_frame_pose(model, position, frame)
    p_FP_W = ca.matvec(F.R_WF, p_FP)
    p_MP_W = F.p_MF_W + p_FP_W
    J = calc_point_jacobian(model, position, F.mobod, p_MP_W)
    return FrameMotion(F.R_WF, F.p_WF + p_FP_W, J), F.mobod, position.p_TM_W[:, F.mobod] + p_MP_W
