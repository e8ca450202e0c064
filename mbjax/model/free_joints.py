"""Finds the six-dof joint of a free body, and converts its positions to and from a pose."""

import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS
from mbjax.spatial import (
    RigidTransform,
    matrix_to_quaternion,
    matrix_to_rpy,
    quaternion_to_matrix,
    rpy_to_matrix,
)

from .model_layout import JointInfo
from .multibody_model import MultibodyModel
from .poses import PoseLike, as_traced_pose


def free_joint(model: MultibodyModel, body: str | int, call: str) -> JointInfo:
    """The floating joint that carries a body, on the world or on another body; else raises `ModelError`."""
    info = model.body(body)
    joint = info.inboard_joint
    if joint is not None and JOINT_KINDS[joint.kind].is_floating:
        return joint
    if joint is None:
        raise ModelError(f"{call}: '{info.name}' is the world and does not move; name a body that floats.")
    if joint.kind == "weld":
        way_out = f"move the body it is welded to, '{model.body_names[joint.parent_body]}', if that one floats"
    else:
        way_out = f"set the coordinates of that joint, q[model.joint('{joint.name}').q]"
    raise ModelError(
        f"{call}: body '{info.name}' does not float, joint '{joint.name}' ({joint.kind}) carries it; {way_out}."
    )


def pose_of_positions(joint: JointInfo, q: Float[Array, " n"]) -> RigidTransform:
    """Pose X_FM of a floating joint from its positions: a quaternion or roll-pitch-yaw, then a translation."""
    to_matrix = quaternion_to_matrix if JOINT_KINDS[joint.kind].has_quaternion else rpy_to_matrix
    return RigidTransform(to_matrix(q[:-3]), q[-3:])


def positions_of_pose(joint: JointInfo, X_FM: PoseLike, dtype: DTypeLike, call: str) -> Float[Array, " n"]:
    """Positions of a floating joint from its pose X_FM; of a quaternion's two signs Drake's."""
    from_matrix = matrix_to_quaternion if JOINT_KINDS[joint.kind].has_quaternion else matrix_to_rpy
    X_FM = as_traced_pose(f"{call}: the pose", X_FM, dtype)
    return jnp.concatenate([from_matrix(X_FM.rotation), X_FM.translation])
