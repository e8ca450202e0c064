"""States in Pinocchio's order and frames, and back, by the names of its joints."""

from collections.abc import Sequence

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError
from mbjax.execution import of_one_model
from mbjax.joints import JOINT_KINDS
from mbjax.model import JointInfo, MultibodyModel, all_joint_positions, all_joint_velocities, as_array, near_matches
from mbjax.simulation.state import State, as_state, nodes_at_rest
from mbjax.spatial import (
    normalize_quaternion,
    quaternion_to_matrix,
    quaternion_to_rpy,
    rpy_to_matrix,
    rpy_to_quaternion,
    safe_arctan2,
)

from .mujoco_order import FREE, ROTATED

UNIVERSE = "universe"
TURNING = ("revolute", "planar")  # with an angle that may be (cos, sin) there


@of_one_model
def pinocchio_state(
    model: MultibodyModel, state: State, joint_names: Sequence[str], nqs: Sequence[int] | None = None
) -> tuple[Float[Array, " nq"], Float[Array, " nv"]]:
    """(q, v) of a state, as Pinocchio has them for the same robot: `pinocchio_state(model, state, pin_model.names)`.

    A free-flyer is (x, y, z, qx, qy, qz, qw), its velocity that of the origin, then the angular one, both in the body;
    the one called "root_joint" is the model's only floating joint. Spherical joints are quaternions of that order with
    the angular velocity in the child, planar joints (x, y, cos, sin) with the velocity in the child. A continuous joint
    is (cos, sin) there: `pin_model.nqs` says which ones are, and is needed where there are any.
    """
    state = as_state(model, state)
    q, v = all_joint_positions(model, state.q), all_joint_velocities(model, state.v)
    joints = matched_joints(model, joint_names, nqs, "pinocchio_state")
    parts = [to_pinocchio(joint, size, q[joint.all_q], v[joint.all_v]) for joint, size in joints]
    empty = jnp.zeros(0, model.dtype)
    return jnp.concatenate([empty, *(p for p, _ in parts)]), jnp.concatenate([empty, *(w for _, w in parts)])


@of_one_model
def state_from_pinocchio(
    model: MultibodyModel,
    q: Float[Array, " nq"],
    v: Float[Array, " nv"],
    joint_names: Sequence[str],
    nqs: Sequence[int] | None = None,
    time: Float[Array, ""] | float = 0.0,
) -> State:
    """The state that Pinocchio's q and v are: the inverse of `pinocchio_state`.

    Angles given by cosine and sine come back between -pi and pi. Of joints that mimic others the numbers are not
    looked at. Nodes of deformable bodies are at rest.
    """
    call = "state_from_pinocchio"
    joints = matched_joints(model, joint_names, nqs, call)
    q, v = (as_array(what, x, 1, model.dtype) for what, x in (("q", q), ("v", v)))
    sizes = sum(size for _, size in joints), sum(JOINT_KINDS[joint.kind].num_velocities for joint, _ in joints)
    for what, array, expected in (("q", q, sizes[0]), ("v", v, sizes[1])):
        if array.shape != (expected,):
            raise ModelError(
                f"{call}: {what} has shape {array.shape}, the joints have ({expected},) in Pinocchio. Give "
                "nqs=pin_model.nqs if it has continuous joints, and use jax.vmap for a batch."
            )
    parts: dict[int, tuple[Array, Array]] = {}
    at_q = at_v = 0
    for joint, size in joints:
        nv = JOINT_KINDS[joint.kind].num_velocities
        if joint.mimics is None:
            parts[joint.v_start] = from_pinocchio(joint, size, q[at_q : at_q + size], v[at_v : at_v + nv])
        at_q, at_v = at_q + size, at_v + nv
    ordered, empty = [parts[start] for start in sorted(parts)], jnp.zeros(0, model.dtype)
    ours = [jnp.concatenate([empty, *column]) for column in (zip(*ordered, strict=True) if ordered else ((), ()))]
    return State(ours[0], ours[1], jnp.asarray(time, model.dtype), nodes_at_rest(model))


def matched_joints(
    model: MultibodyModel, joint_names: Sequence[str], nqs: Sequence[int] | None, call: str
) -> list[tuple[JointInfo, int]]:
    """Our joints in the order of the names, each with how many positions Pinocchio has for it."""
    names = [str(name) for name in joint_names]
    sizes = [None] * len(names) if nqs is None else [int(size) for size in nqs]
    if len(sizes) != len(names):
        raise ModelError(f"{call}: {len(names)} names, but nqs has {len(sizes)} numbers; give those of one model.")
    moving = [joint for joint in model.layout.joints if joint.mobod >= 0]
    by_name: dict[str, list[JointInfo]] = {}
    for joint in moving:
        for name in {joint.name, joint.scoped_name}:
            by_name.setdefault(name, []).append(joint)
    floating = [joint for joint in moving if joint.kind in FREE]
    result: list[tuple[JointInfo, int]] = []
    for name, size in zip(names, sizes, strict=True):
        if name == UNIVERSE:
            continue
        found = by_name.get(name) or (floating if name == "root_joint" else [])
        if not found:
            raise ModelError(f"{call}: the model has no joint '{name}'. {near_matches(name, by_name)}")
        if len(found) > 1:
            raise ModelError(f"{call}: '{name}' may be {', '.join(repr(j.scoped_name) for j in found)}; name one.")
        result.append((found[0], checked_size(found[0], size, call)))
    missing = [j.scoped_name for j in moving if j.mimics is None and all(j is not known for known, _ in result)]
    if missing:
        raise ModelError(
            f"{call}: joint_names lacks {', '.join(repr(name) for name in missing[:6])}, which moves here. Load both "
            "robots with the same base: a base that is free there is 'root_joint' and here a floating joint."
        )
    return result


def checked_size(joint: JointInfo, size: int | None, call: str) -> int:
    """How many positions a joint has in Pinocchio; refuses joints and numbers it has not."""
    own = JOINT_KINDS[joint.kind].num_positions
    usual = {**dict.fromkeys(FREE, 7), **dict.fromkeys(ROTATED, 4), "planar": 4}.get(joint.kind, own)
    if size not in (None, usual) and not (joint.kind == "revolute" and size == 2):
        raise ModelError(f"{call}: joint '{joint.name}' ({joint.kind}) has {usual} positions there, nqs says {size}.")
    return usual if size is None else size


def to_pinocchio(joint: JointInfo, size: int, q: Array, v: Array) -> tuple[Array, Array]:
    """A joint's part of Pinocchio's q and v."""
    if joint.kind in ROTATED:
        return scalar_last(rpy_to_quaternion(q)), rpy_to_matrix(q).T @ v
    if joint.kind in FREE:
        is_quaternion = joint.kind == "quaternion_floating"
        quaternion = normalize_quaternion(q[:4]) if is_quaternion else rpy_to_quaternion(q[:3])
        R_WB = quaternion_to_matrix(quaternion)
        return jnp.concatenate([q[-3:], scalar_last(quaternion)]), jnp.concatenate([R_WB.T @ v[3:], R_WB.T @ v[:3]])
    if joint.kind == "planar":
        circle = jnp.stack([jnp.cos(q[2]), jnp.sin(q[2])])
        return jnp.concatenate([q[:2], circle]), jnp.concatenate([rotated_by(v[:2], circle, -1.0), v[2:]])
    if joint.kind == "revolute" and size == 2:
        return jnp.concatenate([jnp.cos(q), jnp.sin(q)]), v
    return q, v


def from_pinocchio(joint: JointInfo, size: int, q: Array, v: Array) -> tuple[Array, Array]:
    """A joint's own positions and velocities."""
    if joint.kind in ROTATED:
        quaternion = scalar_first(q)
        return quaternion_to_rpy(quaternion), quaternion_to_matrix(quaternion) @ v
    if joint.kind in FREE:
        quaternion = scalar_first(q[3:])
        R_WB = quaternion_to_matrix(quaternion)
        rotation = quaternion if joint.kind == "quaternion_floating" else quaternion_to_rpy(quaternion)
        return jnp.concatenate([rotation, q[:3]]), jnp.concatenate([R_WB @ v[3:], R_WB @ v[:3]])
    if joint.kind == "planar":
        angle = safe_arctan2(q[3:], q[2:3])
        return jnp.concatenate([q[:2], angle]), jnp.concatenate([rotated_by(v[:2], q[2:], 1.0), v[2:]])
    if joint.kind == "revolute" and size == 2:
        return safe_arctan2(q[1:], q[:1]), v
    return q, v


def rotated_by(vector: Array, circle: Array, sign: float) -> Array:
    """A vector of the plane, turned by the angle of (cos, sin), or back."""
    cos, sin = circle[0], sign * circle[1]
    return jnp.stack([cos * vector[0] - sin * vector[1], sin * vector[0] + cos * vector[1]])


def scalar_last(quaternion: Array) -> Array:
    return jnp.concatenate([quaternion[1:], quaternion[:1]])


def scalar_first(quaternion: Array) -> Array:
    return jnp.concatenate([quaternion[3:], quaternion[:3]])
