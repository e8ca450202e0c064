"""Poses and velocities of free bodies: in their joints' frames, in the world, or in any anchored frame.

A free body has a six-dof joint, from frame F on its parent to frame M on itself. For a body without a declared joint F
is the world and M is the body's own frame, so that X_FM is X_WB.
"""

from typing import Any

from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import compiled_outside_jit, require_one_model, takes_model_first
from mbjax.kinematics import (
    PositionKinematics,
    calc_frame_pose,
    calc_position_kinematics,
    calc_velocity_kinematics,
)
from mbjax.kinematics.frames import calc_point_velocity, express_in
from mbjax.model import (
    MultibodyModel,
    as_coordinates,
    checked_pose,
    free_joint,
    pose_of_positions,
    positions_of_pose,
    require_finite,
)
from mbjax.model.poses import PoseLike, as_traced_pose
from mbjax.spatial import RigidTransform, shift_spatial_velocity
from mbjax.topology.spanning_tree import WORLD

from .state import State, require_state, with_coordinates

VELOCITY_PARTS = ("wx", "wy", "wz", "vx", "vy", "vz")


@compiled_outside_jit
def free_body_pose(model: MultibodyModel, q: Float[Array, " nq"], body: str | int) -> RigidTransform:
    """Pose X_FM of a free body's joint; X_WB for a body without a declared joint."""
    joint = free_joint(model, body, "free_body_pose")
    return pose_of_positions(joint, as_coordinates("q", q, model.num_positions, model.dtype)[joint.q])


@takes_model_first
def free_body_spatial_velocity(model: MultibodyModel, v: Float[Array, " nv"], body: str | int) -> Float[Array, "6"]:
    """Spatial velocity V_FM_F of a free body's joint, rotation first; V_WB_W for a body without a declared joint."""
    joint = free_joint(model, body, "free_body_spatial_velocity")
    return as_coordinates("v", v, model.num_velocities, model.dtype)[joint.v]


def set_free_body_pose(model: MultibodyModel, state: State, body: str | int, X_FM: PoseLike) -> State:
    """Sets the pose X_FM of a free body's joint in a new state; X_WB for a body without a declared joint."""
    X_FM = checked(model, "set_free_body_pose", state, body, "X_FM", X_FM)
    return _set_free_body_pose(model, state, body, X_FM)


@compiled_outside_jit
def _set_free_body_pose(model: MultibodyModel, state: State, body: str | int, X_FM: RigidTransform) -> State:
    joint = free_joint(model, body, "set_free_body_pose")
    q = as_coordinates("state.q", state.q, model.num_positions, model.dtype)
    q = q.at[joint.q].set(positions_of_pose(joint, X_FM, model.dtype, "set_free_body_pose"))
    return with_coordinates(state, q=q)


def set_free_body_spatial_velocity(
    model: MultibodyModel, state: State, body: str | int, V_FM_F: Float[Array, "6"]
) -> State:
    """Sets the velocity V_FM_F of a free body's joint in a new state; V_WB_W for a body without a declared joint."""
    require_state(state, "set_free_body_spatial_velocity")
    joint = free_joint(model, body, "set_free_body_spatial_velocity")
    require_finite("set_free_body_spatial_velocity", "number", V_FM_F, list(range(6)), lambda: VELOCITY_PARTS)
    v = as_coordinates("state.v", state.v, model.num_velocities, model.dtype)
    return with_coordinates(state, v=v.at[joint.v].set(as_coordinates("V_FM_F", V_FM_F, 6, model.dtype)))


def set_free_body_pose_in_world_frame(model: MultibodyModel, state: State, body: str | int, X_WB: PoseLike) -> State:
    """Sets a free body's own frame to X_WB in a new state, whatever its joint's frames."""
    X_WB = checked(model, "set_free_body_pose_in_world_frame", state, body, "X_WB", X_WB)
    return _set_free_body_pose_in_anchored_frame(model, state, WORLD, body, X_WB)


def set_free_body_pose_in_anchored_frame(
    model: MultibodyModel, state: State, frame_A: str | int, body: str | int, X_AB: PoseLike
) -> State:
    """Sets a free body's own frame to X_AB in a new state, with A a frame fixed to the world.

    A body that floats on a moving parent is placed relative to the given state: set the parent's positions first.
    """
    X_AB = checked(model, "set_free_body_pose_in_anchored_frame", state, body, "X_AB", X_AB)
    return _set_free_body_pose_in_anchored_frame(model, state, frame_A, body, X_AB)


@compiled_outside_jit
def _set_free_body_pose_in_anchored_frame(
    model: MultibodyModel, state: State, frame_A: str | int, body: str | int, X_AB: RigidTransform
) -> State:
    call = "set_free_body_pose_in_anchored_frame"
    joint, A = free_joint(model, body, call), anchored_frame(model, frame_A, call)
    position = calc_position_kinematics(model, state.q)
    X_AB = as_traced_pose(f"{call}: the pose", X_AB, model.dtype)
    X_FW = frame_pose_in_world(model, position, joint.parent_frame).inverse()
    X_WB = frame_pose_in_world(model, position, A) @ X_AB
    return _set_free_body_pose(model, state, body, X_FW @ X_WB @ frame_pose_in_body(position, joint.child_frame))


@compiled_outside_jit
def set_free_body_spatial_velocity_in_world_frame(
    model: MultibodyModel, state: State, body: str | int, V_WB_W: Float[Array, "6"]
) -> State:
    """Sets the spatial velocity V_WB_W of a free body at its origin Bo in a new state, whatever its joint's frames."""
    return set_free_body_spatial_velocity_in_anchored_frame(model, state, WORLD, body, V_WB_W)


@compiled_outside_jit
def set_free_body_spatial_velocity_in_anchored_frame(
    model: MultibodyModel, state: State, frame_A: str | int, body: str | int, V_AB_A: Float[Array, "6"]
) -> State:
    """Sets the spatial velocity V_AB_A of a free body at its origin Bo in a new state, with A fixed to the world.

    A body that floats on a moving parent gets V_FM = V_WM - V_WF from the given state: set its pose and its parent's
    positions and velocities first.
    """
    call = "set_free_body_spatial_velocity_in_anchored_frame"
    joint, A = free_joint(model, body, call), anchored_frame(model, frame_A, call)
    position = calc_position_kinematics(model, state.q)
    velocity = calc_velocity_kinematics(model, position, state.q, state.v)
    R_AW = calc_frame_pose(model, position, A).R_WF.T
    V_WB_W = express_in(R_AW, as_coordinates("V_AB_A", V_AB_A, 6, model.dtype))
    R_WB = calc_frame_pose(model, position, model.body_frame_index(body)).R_WF
    V_WM_W = shift_spatial_velocity(V_WB_W, R_WB @ frame_pose_in_body(position, joint.child_frame).translation)
    parent = model.topology.mobod_parents[joint.mobod]
    V_WF_W = calc_point_velocity(velocity, parent, position.p_PM_W[:, joint.mobod])  # velocity of F's point at Mo
    V_FM_F = express_in(position.R_WF[..., joint.mobod], V_WM_W - V_WF_W)
    return set_free_body_spatial_velocity(model, state, body, V_FM_F)


def checked(model: MultibodyModel, call: str, state: State, body: str | int, what: str, X: Any) -> RigidTransform:
    """The pose, after checks of the model, the state and the pose."""
    require_one_model(model, call)
    require_state(state, call)
    return checked_pose(f"{call}('{model.body(body).name}')", what, X)


def anchored_frame(model: MultibodyModel, frame: str | int, call: str) -> int:
    """Index of a frame; raises `ModelError` unless it is fixed to the world."""
    info = model.frame(frame)
    if not model.is_anchored(info.body):
        raise ModelError(
            f"{call}: frame '{info.name}' moves with body '{model.body_names[info.body]}'; give a frame of the world "
            "or of a body welded to it, or the pose in the world itself."
        )
    return info.index


def frame_pose_in_world(model: MultibodyModel, position: PositionKinematics, frame: int) -> RigidTransform:
    """Pose X_WF of a frame in the world."""
    pose = calc_frame_pose(model, position, frame)
    return RigidTransform(pose.R_WF, pose.p_WF)


def frame_pose_in_body(position: PositionKinematics, frame: int) -> RigidTransform:
    """Pose X_BF of a frame in its body, which is independent of q."""
    return RigidTransform(position.placement.R_BF[..., frame], position.placement.p_BF[:, frame])
