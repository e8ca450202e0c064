"""Reads and sets the default positions, from which `default_state` starts: whole, by instance, joint or free body."""

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from mbjax.execution import of_one_model, require_one_model, takes_model_first
from mbjax.joints import JOINT_KINDS
from mbjax.spatial import RigidTransform

from .free_joints import free_joint, pose_of_positions, positions_of_pose
from .instance_arrays import InstanceLike, as_coordinates, positions_from_array, set_positions_in_array
from .known_coordinates import require_directions, require_positions
from .leaf_setting import checked_pose, require_moving, set_rows
from .mimics import require_own_coordinates
from .multibody_model import MultibodyModel
from .poses import PoseLike


@of_one_model
def default_positions(model: MultibodyModel, model_instance: InstanceLike | None = None) -> Float[Array, " nq"]:
    """Default positions q of `default_state`, of the whole model or of one model instance."""
    q = model.parameters.default_positions
    return q if model_instance is None else positions_from_array(model, model_instance, q)


def set_default_positions(
    model: MultibodyModel, q: Float[ArrayLike, " nq"], model_instance: InstanceLike | None = None
) -> MultibodyModel:
    """Sets the default positions q of `default_state`, of the whole model or of one model instance."""
    require_one_model(model, "set_default_positions")
    require_positions(model, "set_default_positions", q, model_instance)
    if model_instance is None:
        new = as_coordinates("q", q, model.num_positions, model.dtype)
    else:
        new = set_positions_in_array(model, model_instance, model.parameters.default_positions, q)
    return with_default_positions(model, new)


@takes_model_first
def set_joint_default_positions(model: MultibodyModel, joint: str | int, q: ArrayLike) -> MultibodyModel:
    """Sets the default positions of one joint in `default_state`, in rad or m."""
    info = model.joint(joint)
    call = f"set_joint_default_positions('{info.name}')"
    require_moving(info, call, "positions")
    require_own_coordinates(model, info, call)
    require_directions(model, call, q, [(info, 0)])
    return set_rows(model, call, "default_positions", info.q, q, is_repeated=not JOINT_KINDS[info.kind].has_quaternion)


@of_one_model
def default_free_body_pose(model: MultibodyModel, body: str | int) -> RigidTransform:
    """Pose X_FM of a free body in `default_state`: its pose in the world, unless its joint has frames of its own."""
    joint = free_joint(model, body, "default_free_body_pose")
    return pose_of_positions(joint, model.parameters.default_positions[joint.q])


@takes_model_first
def set_default_free_body_pose(model: MultibodyModel, body: str | int, X_FM: PoseLike) -> MultibodyModel:
    """Sets the default pose X_FM of a free body: its joint's frame M in F; X_WB for a body without a declared joint."""
    call = f"set_default_free_body_pose('{model.body(body).name}')"
    joint = free_joint(model, body, "set_default_free_body_pose")
    X_FM = checked_pose(call, "X_FM", X_FM)
    return set_joint_default_positions(model, joint.index, positions_of_pose(joint, X_FM, model.dtype, call))


def with_default_positions(model: MultibodyModel, q: Float[Array, " nq"]) -> MultibodyModel:
    """The model with its default positions replaced."""
    return eqx.tree_at(lambda m: m.parameters.default_positions, model, q)
