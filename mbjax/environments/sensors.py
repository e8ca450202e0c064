"""Sensors: joint encoders, inertial units, motions of frames, contact; pure functions of a world, with noise and delay.

A task keeps a sensor's memory in its own: `start` makes it, `update` takes a true value in, `read` adds noise to the
value of some steps ago.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.kinematics import body_poses_and_velocities
from mbjax.model import MultibodyModel, frame_pose
from mbjax.number_rules import FINITE, NOT_NEGATIVE, is_known, shown
from mbjax.simulation import Outputs, State
from mbjax.spatial import RigidTransform

from .counts import as_plain, require_count


class Sensor(eqx.Module):
    """Noise and delay of a measured array: what is read was so `delay` steps of the environment ago.

    `noise` is a standard deviation, one number or one for each that is measured. `bias` is added too.
    """

    noise: Any = 0.0
    bias: Any = 0.0
    delay: int = eqx.field(static=True, default=0, converter=as_plain)

    def __check_init__(self) -> None:
        require_count("Sensor", "delay", self.delay, 0)
        for what, value, rule in (("noise", self.noise, NOT_NEGATIVE), ("bias", self.bias, FINITE)):
            if is_known(value) and not np.all(rule.holds(np.asarray(value))):
                raise ModelError(f"Sensor: {what} must be {rule.words}, got {shown(value)}.")

    def start(self, value: Float[Array, " k"]) -> Float[Array, "delay+1 k"]:
        """The memory at the start of an episode: the value has been so before."""
        return jnp.broadcast_to(value, (self.delay + 1, *value.shape))

    def update(self, memory: Float[Array, "delay+1 k"], value: Float[Array, " k"]) -> Float[Array, "delay+1 k"]:
        """The memory after a step that led to this value."""
        return jnp.concatenate([memory[1:], value[None]]) if self.delay else value[None]

    def read(self, memory: Float[Array, "delay+1 k"], key: PRNGKeyArray) -> Float[Array, " k"]:
        """The measured value: late, with bias and noise."""
        value = memory[0] + jnp.asarray(self.bias, memory.dtype)
        if isinstance(self.noise, float) and self.noise == 0.0:
            return value
        return value + jnp.asarray(self.noise, value.dtype) * jax.random.normal(key, value.shape, value.dtype)


def joint_encoders(model: MultibodyModel, state: State, joints: Sequence[str]) -> Float[Array, " k"]:
    """Positions, then velocities, of these joints."""
    require_names("joint_encoders", "joints", joints)
    q = np.concatenate([np.arange(*model.joint(name).q.indices(model.num_positions)) for name in joints])
    v = np.concatenate([np.arange(*model.joint(name).v.indices(model.num_velocities)) for name in joints])
    return jnp.concatenate([state.q[q], state.v[v]])


def require_names(call: str, what: str, names: Any) -> None:
    """Raises `ModelError` for one name in the place of a list, and for none."""
    if isinstance(names, str) or not len(names):
        raise ModelError(f"{call}: {what} must be a list with a name at least, got {names!r}.")


class FrameMotion(eqx.Module):
    """Pose and velocity of frames in the world, such as those of sites of an MJCF file; leading axis frames.

    `rotation` R_WF and `origin` p_WFo in m; `angular_velocity` w_WF_W in rad/s and `velocity` v_WFo_W in m/s.
    """

    rotation: Float[Array, "frames 3 3"]
    origin: Float[Array, "frames 3"]
    angular_velocity: Float[Array, "frames 3"]
    velocity: Float[Array, "frames 3"]

    @property
    def own_velocity(self) -> Float[Array, "frames 3"]:
        """Velocity of each origin in its frame: what a velocimeter reads."""
        return jnp.einsum("fij,fi->fj", self.rotation, self.velocity)

    @property
    def own_angular_velocity(self) -> Float[Array, "frames 3"]:
        """Angular velocity of each frame in its own axes: what a gyroscope reads."""
        return jnp.einsum("fij,fi->fj", self.rotation, self.angular_velocity)


def frame_motion(model: MultibodyModel, state: State, frames: Sequence[str]) -> FrameMotion:
    """Poses and velocities of these frames, by name; a body's frame has its name."""
    require_names("frame_motion", "frames", frames)
    X_WB, V_WB_W = body_poses_and_velocities(model, state.q, state.v)
    parts = []
    for name in frames:
        body, X_BF = model.frame(name).body, pose_in_body(model, name)
        R_WB, omega = X_WB.rotation[body], V_WB_W[body, :3]
        p_BoFo_W = R_WB @ X_BF.translation
        velocity = V_WB_W[body, 3:] + jnp.cross(omega, p_BoFo_W)
        parts.append((R_WB @ X_BF.rotation, X_WB.translation[body] + p_BoFo_W, omega, velocity))
    return FrameMotion(*(jnp.stack(x) for x in zip(*parts, strict=True)))


def pose_in_body(model: MultibodyModel, frame: str | int) -> RigidTransform:
    """X_BF: a frame's pose in the frame of its body."""
    info = model.frame(frame)
    if info.parent is None:
        return RigidTransform(jnp.eye(3, dtype=model.dtype), model.zeros(3))
    return pose_in_body(model, info.parent) @ frame_pose(model, info.index)


def inertial_unit(model: MultibodyModel, outputs: Outputs, frame: str) -> Float[Array, "6"]:
    """Angular velocity in rad/s, then specific force in m/s², at a frame's origin and in its axes.

    A body's frame has its name. At rest the specific force is that which carries the body: 9.81 m/s² upward. The
    acceleration is that of the step.
    """
    body, X_BF = model.frame(frame).body, pose_in_body(model, frame)
    R_WB, omega = outputs.body_poses.rotation[body], outputs.body_spatial_velocities[body, :3]
    alpha, a_WBo = jnp.split(outputs.body_spatial_accelerations[body], 2)
    p_BoFo_W = R_WB @ X_BF.translation
    a_WFo = a_WBo + jnp.cross(alpha, p_BoFo_W) + jnp.cross(omega, jnp.cross(omega, p_BoFo_W))
    R_FW = (R_WB @ X_BF.rotation).T
    return jnp.concatenate([R_FW @ omega, R_FW @ (a_WFo - model.parameters.gravity)])


def contact_forces(model: MultibodyModel, outputs: Outputs, bodies: Sequence[str | int]) -> Float[Array, " k"]:
    """Normal forces in N on each of these bodies, by name or index: the sum over its contacts."""
    found = outputs.contact_results
    if found is None:
        raise ModelError(
            "contact_forces: in this model nothing may touch; load it with ground= or contact_pairs=, or register "
            "collision geometry."
        )
    contact, places = model.layout.contact, [model.body_index(body) for body in bodies]
    sides = [{contact.geometries[g].body for g in contact.pairs[i]} for i in found.pair_indices]
    touches = np.array([[place in side for side in sides] for place in places], float)
    along_normal = jnp.abs(jnp.sum(found.force * found.normal, axis=-1))
    return jnp.asarray(touches, along_normal.dtype) @ along_normal
