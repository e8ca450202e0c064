"""Differences between states with floating bases seen from themselves, as flying and walking robots are controlled.

In the tangent of the world a base that is turned by half a turn is still pushed along the world's axes. In its own
frame the difference of two poses is the twist of `pose_log`, and velocities are those along the body's axes.
"""

from typing import Literal

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.kinematics import difference_configuration
from mbjax.model import MultibodyModel
from mbjax.spatial import (
    RigidTransform,
    normalize_quaternion,
    pose_log,
    quaternion_to_matrix,
    skew,
    slopes_of_pose_log,
    small_matmul,
    small_matvec,
)

from .tangents import slopes_of_difference, turning_velocities, with_block

InFrame = Literal["world", "own"]


def checked_frame(call: str, in_frame: InFrame) -> InFrame:
    """The choice of a frame, checked."""
    if in_frame not in ("world", "own"):
        raise ModelError(f"{call}: in_frame must be 'world' or 'own', got {in_frame!r}.")
    return in_frame


def difference_in(
    model: MultibodyModel, in_frame: InFrame, q0: Float[Array, " nq"], q1: Float[Array, " nq"]
) -> Float[Array, " nv"]:
    """Tangent from q0 to q1; with "own" each floating body's six numbers are the twist log(X0⁻¹ X1) in its frame."""
    dq = difference_configuration(model, q0, q1)
    if in_frame == "own":
        for joint in floating_joints(model):
            dq = replaced(dq, joint.v, pose_log(base_pose(q0[joint.q]).inverse() @ base_pose(q1[joint.q])))
    return dq


def velocity_in(
    model: MultibodyModel, in_frame: InFrame, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> Float[Array, " nv"]:
    """Velocities; with "own" those of floating bodies are along their own axes, R_WBᵀ w and R_WBᵀ v."""
    if in_frame == "own":
        for joint in floating_joints(model):
            R_BW = base_pose(q[joint.q]).rotation.T
            v = replaced(v, joint.v, jnp.ravel(small_matvec(R_BW, v[joint.v].reshape(2, 3))))
    return v


def replaced(x: Float[Array, " n"], part: slice, values: Float[Array, " k"]) -> Float[Array, " n"]:
    """The vector with one part replaced, without a scatter, so that a rollout can be one kernel."""
    return jnp.concatenate([x[: part.start], values, x[part.stop :]])


def floating_joints(model: MultibodyModel) -> list:
    """Joints that let a body float, with a quaternion; roll, pitch and yaw stay differences of angles."""
    return [joint for joint in model.layout.joints if joint.kind == "quaternion_floating"]


def base_pose(q: Float[Array, "7"]) -> RigidTransform:
    """Pose of a floating body of its seven coordinates."""
    return RigidTransform(quaternion_to_matrix(normalize_quaternion(q[:4])), q[4:])


def slopes_of_difference_in(
    model: MultibodyModel, in_frame: InFrame, q0: Float[Array, " nq"], dq: Float[Array, " nv"]
) -> Float[Array, "..."]:
    """Derivative of `difference_in`, whose value is dq, by the tangent at q1: a matrix, or its diagonal of ones."""
    if not turning_velocities(model):
        return jnp.ones_like(dq)
    J = slopes_of_difference(model, dq)
    if in_frame == "own":
        for joint in floating_joints(model):
            R_0W = base_pose(q0[joint.q]).rotation.T
            J_log = slopes_of_pose_log(dq[joint.v])
            block = jnp.concatenate([small_matmul(J_log[:, part], R_0W) for part in HALVES], axis=1)
            J = with_block(J, joint.v, joint.v, block)
    return J


def slopes_of_velocity_in(
    model: MultibodyModel, in_frame: InFrame, q: Float[Array, " nq"], v: Float[Array, " nv"]
) -> tuple[Float[Array, "nv nv"] | None, Float[Array, "..."]]:
    """Derivatives of `velocity_in` by the tangent at q, as Rᵀ w changes by Rᵀ (w x dθ), and by v."""
    joints = floating_joints(model)
    if in_frame == "world" or not joints:
        return None, jnp.ones_like(v)
    by_q, by_v = jnp.zeros((len(v), len(v)), v.dtype), jnp.eye(len(v), dtype=v.dtype)
    for joint in joints:
        R_BW, turning = base_pose(q[joint.q]).rotation.T, part_of(joint.v, HALVES[0])
        for half in HALVES:
            rows = part_of(joint.v, half)
            by_q = with_block(by_q, rows, turning, small_matmul(R_BW, skew(v[rows])))
            by_v = with_block(by_v, rows, rows, R_BW)
    return by_q, by_v


HALVES = slice(0, 3), slice(3, 6)  # of six numbers: those of rotation, and those of translation


def part_of(whole: slice, part: slice) -> slice:
    """The part of a slice."""
    return slice(whole.start + part.start, whole.start + part.stop)
