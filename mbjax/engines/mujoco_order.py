"""States in MuJoCo's order and frames, and back: joints depth first, free and ball joints by its conventions."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import of_one_model
from mbjax.joints import JOINT_KINDS
from mbjax.model import BodyInfo, JointInfo, MultibodyModel, all_joint_positions, all_joint_velocities, as_array
from mbjax.simulation.state import State, as_state, nodes_at_rest
from mbjax.spatial import (
    normalize_quaternion,
    quaternion_to_matrix,
    quaternion_to_rpy,
    rpy_to_matrix,
    rpy_to_quaternion,
)

ROTATED = ("ball_rpy",)  # three angles here, a quaternion in MuJoCo
FREE = ("quaternion_floating", "rpy_floating")
WITHOUT = ("screw",)


@of_one_model
def mujoco_state(model: MultibodyModel, state: State) -> tuple[Float[Array, " nqpos"], Float[Array, " nqvel"]]:
    """(qpos, qvel) of a state, as MuJoCo has them for the same robot.

    Joints come depth first by the bodies they carry, in the order in which these were declared: that of a model from
    MJCF is its file's. (Our own order differs where bodies are welded: these come first.) Free joints are
    (x, y, z, qw, qx, qy, qz) with the velocity of the origin in the world and the angular velocity in the body; ball
    joints are quaternions with the angular velocity in the child. A universal joint is two hinges there, a planar one
    two slides and a hinge. Joints that mimic others have coordinates of their own in MuJoCo and are included.
    """
    state = as_state(model, state)
    q, v = all_joint_positions(model, state.q), all_joint_velocities(model, state.v)
    parts = [to_mujoco(joint, q[joint.all_q], v[joint.all_v]) for joint in moving_joints(model, "mujoco_state")]
    empty = jnp.zeros(0, model.dtype)
    return jnp.concatenate([empty, *(p for p, _ in parts)]), jnp.concatenate([empty, *(w for _, w in parts)])


@of_one_model
def state_from_mujoco(
    model: MultibodyModel,
    qpos: Float[Array, " nqpos"],
    qvel: Float[Array, " nqvel"],
    time: Float[Array, ""] | float = 0.0,
) -> State:
    """The state that MuJoCo's qpos and qvel are: the inverse of `mujoco_state`.

    Of joints that mimic others the numbers are not looked at. Nodes of deformable bodies are at rest.
    """
    joints = moving_joints(model, "state_from_mujoco")
    sizes = [(num_qpos(joint), JOINT_KINDS[joint.kind].num_velocities) for joint in joints]
    qpos, qvel = (as_array(what, x, 1, model.dtype) for what, x in (("qpos", qpos), ("qvel", qvel)))
    for what, array, expected in (("qpos", qpos, sum(n for n, _ in sizes)), ("qvel", qvel, sum(n for _, n in sizes))):
        if array.shape != (expected,):
            raise ModelError(
                f"state_from_mujoco: {what} has shape {array.shape}, the model's joints have ({expected},) in MuJoCo. "
                "Use jax.vmap for a batch."
            )
    parts: dict[int, tuple[Array, Array]] = {}
    at_q = at_v = 0
    for joint, (nq, nv) in zip(joints, sizes, strict=True):
        if joint.mimics is None:
            parts[joint.v_start] = from_mujoco(joint, qpos[at_q : at_q + nq], qvel[at_v : at_v + nv])
        at_q, at_v = at_q + nq, at_v + nv
    ordered, empty = [parts[start] for start in sorted(parts)], jnp.zeros(0, model.dtype)
    q, v = (jnp.concatenate([empty, *column]) for column in (zip(*ordered, strict=True) if ordered else ((), ())))
    return State(q, v, jnp.asarray(time, model.dtype), nodes_at_rest(model))


def moving_joints(model: MultibodyModel, call: str) -> list[JointInfo]:
    """Joints with coordinates in MuJoCo's order; refuses those that MuJoCo has nothing like."""
    joints = [joint for joint in depth_first(model.layout.bodies) if joint.mobod >= 0]
    for joint in joints:
        if joint.kind in WITHOUT:
            raise ModelError(f"{call}: MuJoCo has no {joint.kind} joint, as '{joint.name}' is.")
        if joint.kind in FREE and (joint.parent_frame != 0 or joint.child_frame not in model.layout.body_frames):
            raise ModelError(
                f"{call}: joint '{joint.name}' ({joint.kind}) has frames of its own, a free joint of MuJoCo has those "
                "of the world and the body. Declare it without X_PF and X_BM, between the world and the body."
            )
    return joints


def depth_first(bodies: Sequence[BodyInfo]) -> list[JointInfo]:
    """Joints by the bodies they carry, depth first: of the children of a body those declared first come first."""
    children: dict[int, list[JointInfo]] = {}
    for body in bodies[1:]:
        assert body.inboard_joint is not None
        children.setdefault(body.inboard_joint.parent_body, []).append(body.inboard_joint)
    result, waiting = [], children.get(0, [])[::-1]
    while waiting:
        joint = waiting.pop()
        result.append(joint)
        waiting.extend(children.get(joint.child_body, [])[::-1])
    return result


def num_qpos(joint: JointInfo) -> int:
    """How many numbers MuJoCo's qpos has for it."""
    if joint.kind in ROTATED:
        return 4
    return 7 if joint.kind in FREE else JOINT_KINDS[joint.kind].num_positions


def to_mujoco(joint: JointInfo, q: Array, v: Array) -> tuple[Array, Array]:
    """A joint's part of qpos and qvel."""
    if joint.kind in ROTATED:
        return rpy_to_quaternion(q), rpy_to_matrix(q).T @ v
    if joint.kind not in FREE:
        return q, v
    rotation = q[:-3]
    quaternion = normalize_quaternion(rotation) if joint.kind == "quaternion_floating" else rpy_to_quaternion(rotation)
    return (
        jnp.concatenate([q[-3:], quaternion]),
        jnp.concatenate([v[3:], quaternion_to_matrix(quaternion).T @ v[:3]]),
    )


def from_mujoco(joint: JointInfo, qpos: Array, qvel: Array) -> tuple[Array, Array]:
    """A joint's own positions and velocities."""
    if joint.kind in ROTATED:
        return quaternion_to_rpy(qpos), quaternion_to_matrix(qpos) @ qvel
    if joint.kind not in FREE:
        return qpos, qvel
    quaternion = qpos[3:]
    rotation = quaternion if joint.kind == "quaternion_floating" else quaternion_to_rpy(quaternion)
    return (
        jnp.concatenate([rotation, qpos[:3]]),
        jnp.concatenate([quaternion_to_matrix(quaternion) @ qvel[3:], qvel[:3]]),
    )
