"""Goals of frames: where points and poses are, where axes point, and how fast frames move."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.kinematics import jacobian_spatial_velocity, points_positions, relative_transform
from mbjax.model import MultibodyModel
from mbjax.number_rules import DIRECTION, as_numbers, is_known, shown
from mbjax.simulation import State
from mbjax.spatial import (
    RigidTransform,
    inverse_displacement_matrix,
    pose_log,
    rotation_log,
    safe_normalize,
    slopes_of_pose_log,
    small_matmul,
    small_matvec,
)

from .frame_motions import frame_motion, frame_velocity
from .goals import state_of, vectors
from .own_frames import InFrame, checked_frame
from .slopes import Slopes
from .weights import weight_of

FrameName = str | int
ROTATION_ERROR = 3e-4  # of RᵀR, as large as many products of rotations in single precision may make it


def checked_goal_pose(what: str, X: Any) -> RigidTransform:
    """The pose of a goal; raises `ModelError` for anything else, and for a known rotation that is none."""
    if not isinstance(X, RigidTransform):
        raise ModelError(
            f"{what} must be a mbjax.RigidTransform, got {type(X).__name__}. Of a rotation matrix R (3, 3) and a "
            "translation p (3,), make it by mbjax.RigidTransform(R, p)."
        )
    R = as_numbers(X.rotation) if is_known(X.rotation) else None
    if R is None or R.shape != (3, 3):  # the shape is checked with the model
        return X
    error, determinant = np.abs(R.T @ R - np.eye(3)).max(), np.linalg.det(R)
    if error > ROTATION_ERROR or determinant < 0.0:
        raise ModelError(
            f"{what}: the rotation is not a rotation matrix (R^T R differs from 1 by {error:.2g}, determinant "
            f"{determinant:.3g})."
        )
    return X


class PointGoal(eqx.Module):
    """Distance of a point, fixed in `frame` at p_FP, from p_WP in the world."""

    p_WP: Float[Array, "3"]
    p_FP: Float[Array, "3"]
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        p_WP: ArrayLike,
        weight: ArrayLike = 1.0,
        p_FP: Any = (0.0, 0.0, 0.0),
        *,
        factor: ArrayLike | None = None,
    ):
        self.frame, self.weight = frame, weight_of("PointGoal", weight, factor)
        call = f"PointGoal of {frame!r}"
        self.p_WP, self.p_FP = vectors(call, "p_WP", p_WP, 3), vectors(call, "p_FP", p_FP, 3)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        state = state_of(x)
        p_WP = points_positions(model, state.q, self.frame, self.p_FP, "world")
        return self.weight * (p_WP - self.p_WP)

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobian, that of the point's velocity."""
        at = frame_motion(model, state.q, self.frame, self.p_FP)
        return [Slopes(at.p_WP - self.p_WP, by_q=at.J[3:]).scaled(self.weight)]


class PoseGoal(eqx.Module):
    """Difference of a frame's pose from X_WF: rotation vector in the world, then translation (6,).

    With `in_frame="own"` it is the twist log(X_goal⁻¹ X) of `pose_log`, rotation first, in the goal's own frame: a
    screw that leads straight from the goal to the frame (`log6` elsewhere).
    """

    X_WF: RigidTransform
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)
    in_frame: InFrame = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        X_WF: RigidTransform,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
        in_frame: InFrame = "world",
    ):
        self.frame, self.weight = frame, weight_of("PoseGoal", weight, factor)
        self.X_WF = checked_goal_pose(f"PoseGoal of {frame!r}: X_WF", X_WF)
        self.in_frame = checked_frame("PoseGoal", in_frame)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        X_WF = relative_transform(model, state_of(x).q, "world", self.frame)
        if self.in_frame == "own":
            return self.weight * pose_log(self.X_WF.inverse() @ X_WF)
        turn = rotation_log(X_WF.rotation @ self.X_WF.rotation.T)
        return self.weight * jnp.concatenate([turn, X_WF.translation - self.X_WF.translation])

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobian: that of the frame's velocity, through the derivative of the logarithm."""
        at = frame_motion(model, state.q, self.frame, jnp.zeros(3, state.q.dtype))
        R_GW, J = self.X_WF.rotation.T, at.J
        if self.in_frame == "own":
            shift = small_matvec(R_GW, at.p_WP - self.X_WF.translation)
            twist = pose_log(RigidTransform(small_matmul(R_GW, at.R_WF), shift))
            J = jnp.concatenate([small_matmul(R_GW, J[:3]), small_matmul(R_GW, J[3:])])
            return [Slopes(twist, by_q=small_matmul(slopes_of_pose_log(twist), J)).scaled(self.weight)]
        turn = rotation_log(small_matmul(at.R_WF, R_GW))
        residual = jnp.concatenate([turn, at.p_WP - self.X_WF.translation])
        J = jnp.concatenate([small_matmul(inverse_displacement_matrix(turn), J[:3]), J[3:]])
        return [Slopes(residual, by_q=J).scaled(self.weight)]


class RelativePose(eqx.Module):
    """Difference of the pose of `frame` in `of` from X_AF: rotation vector, then translation, both in `of` (6,)."""

    X_AF: RigidTransform
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)
    of: FrameName = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        of: FrameName,
        X_AF: RigidTransform,
        weight: ArrayLike = 1.0,
        *,
        factor: ArrayLike | None = None,
    ):
        self.frame, self.of, self.weight = frame, of, weight_of("RelativePose", weight, factor)
        self.X_AF = checked_goal_pose(f"RelativePose of {frame!r}: X_AF", X_AF)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        X_AF = relative_transform(model, state_of(x).q, self.of, self.frame)
        turn = rotation_log(X_AF.rotation @ self.X_AF.rotation.T)
        return self.weight * jnp.concatenate([turn, X_AF.translation - self.X_AF.translation])


class LookAt(eqx.Module):
    """Difference between an axis of `frame`, through its point p_FP, and the direction from there to p_WT (3,).

    Both are unit vectors in the world; the difference has length 2 sin(angle / 2).
    """

    p_WT: Float[Array, "3"]
    axis_F: Float[Array, "3"]
    p_FP: Float[Array, "3"]
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)

    def __init__(
        self,
        frame: FrameName,
        p_WT: ArrayLike,
        axis_F: Any = (0.0, 0.0, 1.0),
        weight: ArrayLike = 1.0,
        p_FP: Any = (0.0, 0.0, 0.0),
        *,
        factor: ArrayLike | None = None,
    ):
        self.frame, self.weight = frame, weight_of("LookAt", weight, factor)
        call = f"LookAt of {frame!r}"
        self.p_WT, self.p_FP = vectors(call, "p_WT", p_WT, 3), vectors(call, "p_FP", p_FP, 3)
        self.axis_F = vectors(call, "axis_F", axis_F, 3)
        if is_known(axis_F) and not np.all(DIRECTION.holds(np.asarray(axis_F))):
            raise ModelError(f"{call}: axis_F must be {DIRECTION.words}, got {shown(axis_F)}.")

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "3"]:
        X_WF = relative_transform(model, state_of(x).q, "world", self.frame)
        axis_W = X_WF.rotation @ safe_normalize(self.axis_F)
        return self.weight * (axis_W - safe_normalize(self.p_WT - X_WF @ self.p_FP))


class FrameVelocity(eqx.Module):
    """Spatial velocity of a frame in the world, rotation first, less a reference."""

    V_WF: Float[Array, "..."]
    weight: Float[Array, "..."]
    frame: FrameName = eqx.field(static=True)

    def __init__(
        self, frame: FrameName, V_WF: ArrayLike = 0.0, weight: ArrayLike = 1.0, *, factor: ArrayLike | None = None
    ):
        self.frame, self.weight = frame, weight_of("FrameVelocity", weight, factor)
        self.V_WF = vectors(f"FrameVelocity of {frame!r}", "V_WF", V_WF, 6, is_repeated=True)

    def __call__(self, model: MultibodyModel, x: Any, *rest: Any) -> Float[Array, "6"]:
        state = state_of(x)
        zero = jnp.zeros(3, state.q.dtype)
        J = jacobian_spatial_velocity(model, state.q, self.frame, zero, "world", "world")
        return self.weight * (J @ state.v - self.V_WF)

    def slopes(self, model: MultibodyModel, state: State, *rest: Any) -> list[Slopes]:
        """The residual and its Jacobians."""
        of = frame_velocity(model, state.q, state.v, self.frame, jnp.zeros(3, state.q.dtype))
        return [Slopes(of.V_WP - self.V_WF, by_q=of.by_q, by_v=of.by_v).scaled(self.weight)]
