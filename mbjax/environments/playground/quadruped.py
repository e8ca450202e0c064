"""A quadruped that follows a joystick: MuJoCo Playground's Go1JoystickFlatTerrain."""

import dataclasses
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mbjax.model import MultibodyModel
from mbjax.simulation import Inputs, Outputs, State, keyframe_state
from mbjax.spatial import safe_norm, safe_sqrt

from ..disturbances import RandomPushes
from ..environment import AbstractEnvironment, Motion, Outcome, require_contact, require_discrete_model
from ..sensors import FrameMotion, frame_motion, inertial_unit
from .feet import Feet, FeetStep, feet_in_the_air, overlaps
from .joystick import (
    JoystickJoints,
    Noise,
    Shown,
    command_after,
    joints_of,
    limits_left,
    placed_at_random,
    require_known_terms,
    steps_of_command,
    tracking,
)

WEIGHTS: Mapping[str, float] = MappingProxyType({  # of the terms of the reward, as in Playground
    "tracking_lin_vel": 1.0, "tracking_ang_vel": 0.5, "lin_vel_z": -0.5, "ang_vel_xy": -0.05, "orientation": -5.0,
    "dof_pos_limits": -1.0, "pose": 0.5, "termination": -1.0, "stand_still": -1.0, "torques": -0.0002,
    "action_rate": -0.01, "energy": -0.001, "feet_clearance": -2.0, "feet_height": -0.2, "feet_slip": -0.1,
    "feet_air_time": 0.1,
})  # fmt: skip


class Hidden(eqx.Module):
    """What only a simulator knows after a step: what an accelerometer reads, efforts, and the feet before it."""

    accelerometer: Float[Array, "*batch 3"]  # m/s²
    effort: Float[Array, "*batch nu"]
    touched: Bool[Array, "*batch feet"]
    air_time: Float[Array, "*batch feet"]
    push: Float[Array, "*batch 3"]


class QuadrupedJoystickMemory(eqx.Module):
    """What the task keeps: the command and how long it holds, the last action, the feet, and what observations show."""

    command: Float[Array, "*batch 3"]
    steps_left: Int[Array, "*batch"]
    last_action: Float[Array, "*batch nu"]
    feet: Feet
    shown: Shown
    push: Float[Array, "*batch 3"]
    hidden: Hidden | None


class JoystickQuadruped(AbstractEnvironment):
    """Playground's Go1JoystickFlatTerrain for a quadruped whose file has frames at its inertial unit and feet.

    Actions are offsets from the joint angles of keyframe `home`, times `scale` rad. Observation, as Playground's
    "state": velocity, turning rate and gravity's direction in the inertial unit's frame, joint angles from home, joint
    rates, an action and the command. All are measured at the end of a step, where MuJoCo's sensors are those of the
    start of its last substep. As in Playground a step shows the action and the command before it; noise is uniform, by
    `noise`. The reward is the step's duration times the weighted sum of the terms, and not below 0. An episode ends
    where the trunk is upside down.

    With `privileged` an observation is Playground's "privileged_state": that state, and what only a simulator knows;
    `as_brax` hands over both under their names, for a critic that sees more than the policy. The accelerometer, which
    Playground has by MuJoCo's contact, is then zero until the first step.

    `weights` are those of the terms, `fastest` is the largest command. A foot is a shape and a frame of one name; it
    touches where its shape overlaps `ground`. Playground's kicks, off by default there, are not had: `pushes` are those
    of mbjax.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=5)
    scale: float = eqx.field(static=True, default=0.5)
    fastest: tuple[float, float, float] = eqx.field(static=True, default=(1.5, 0.8, 1.2))
    kept: tuple[float, float, float] = eqx.field(static=True, default=(0.9, 0.25, 0.5))  # chances that it is not zero
    noise: Noise | None = Noise()
    weights: dict[str, float] = eqx.field(default_factory=lambda: dict(WEIGHTS))
    sigma: float = eqx.field(static=True, default=0.25)
    foot_height: float = eqx.field(static=True, default=0.1)  # m, of a swing
    soft_limits: float = eqx.field(static=True, default=0.95)
    pushes: RandomPushes | None = None
    privileged: bool = eqx.field(static=True, default=False)
    home: str = eqx.field(static=True, default="home")
    unit: str = eqx.field(static=True, default="imu")
    feet: tuple[str, ...] = eqx.field(static=True, default=("FR", "FL", "RR", "RL"))
    ground: str = eqx.field(static=True, default="floor")

    def __check_init__(self) -> None:
        require_discrete_model("JoystickQuadruped", self.model)
        require_contact("JoystickQuadruped", self.model)
        keyframe_state(self.model, self.home)
        for name in (self.unit, *self.feet):
            self.model.frame(name)
        require_known_terms("JoystickQuadruped", self.weights, WEIGHTS)

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    @property
    def joints(self) -> JoystickJoints:
        """Places and angles at home of the joints with actuators."""
        return joints_of(self.model, self.home)

    def start(self, key: PRNGKeyArray) -> tuple[State, QuadrupedJoystickMemory]:
        model, nu = self.model, self.model.num_actuators
        key_state, key_command, key_steps = jax.random.split(key, 3)
        state = placed_at_random(keyframe_state(model, self.home), key_state)
        drawn = jax.random.uniform(key_command, (3,), model.dtype, -1.0, 1.0)
        command, feet = jnp.array(self.fastest, model.dtype) * drawn, feet_in_the_air(model, len(self.feet))
        push = model.zeros(3) if self.pushes is None else self.pushes.start(model)
        still = model.zeros(nu)
        steps = steps_of_command(key_steps, self.duration)
        hidden = Hidden(model.zeros(3), still, feet.touched, feet.air_time, push) if self.privileged else None
        return state, QuadrupedJoystickMemory(command, steps, still, feet, Shown(command, still), push, hidden)

    def inputs(self, state: State, memory: QuadrupedJoystickMemory, action: Float[Array, " actions"]) -> Inputs:
        desired = self.joints.desired(self.scale * action)
        applied = None if self.pushes is None else self.pushes.applied(memory.push)
        return Inputs(desired_state=jnp.concatenate([desired, jnp.zeros_like(desired)]), applied_spatial_forces=applied)

    def judge(
        self, motion: Motion, memory: QuadrupedJoystickMemory, action: Float[Array, " actions"], key: PRNGKeyArray
    ) -> Outcome:
        state, model = motion.after, self.model
        frames = frame_motion(model, state, (self.unit, *self.feet))
        touches = overlaps(model, state.q, [(foot, self.ground) for foot in self.feet])
        feet = memory.feet.moved(touches, frames.origin[1:, 2], motion.duration)
        falls = frames.rotation[0, 2, 2] < 0.0
        terms = self.terms(state, frames, feet, memory, action) | {"termination": falls.astype(model.dtype)}
        parts = {name: self.weights[name] * term for name, term in terms.items() if name in self.weights}
        reward = jnp.maximum(motion.duration * jnp.sum(jnp.stack(list(parts.values()))), 0.0)
        remembered = self.remembered(memory, feet, action, falls, key)
        if self.privileged:
            effort = self.effort(state, action)
            hidden = Hidden(motion.sensed, effort, memory.feet.touched, feet.during.air_time, memory.push)
            remembered = dataclasses.replace(remembered, hidden=hidden)
        return Outcome(remembered, reward, falls, parts)

    def sense(self, outputs: Outputs) -> Any:
        return inertial_unit(self.model, outputs, self.unit)[3:] if self.privileged else ()

    def effort(self, state: State, action: Float[Array, " actions"]) -> Float[Array, " nu"]:
        """Efforts of the actuators in a state, within their limits."""
        largest = self.model.parameters.effort_limit
        return jnp.clip(self.joints.wanted_effort(self.model, state, self.scale * action), -largest, largest)

    def terms(
        self,
        state: State,
        frames: FrameMotion,
        feet: FeetStep,
        memory: QuadrupedJoystickMemory,
        action: Float[Array, " actions"],
    ) -> dict[str, Array]:
        """Terms of the reward before their weights, but that of the end of an episode."""
        joints, command = self.joints, memory.command
        away, rates = state.q[joints.rows_in_q] - joints.home, state.v[joints.rows_in_v]
        effort = self.effort(state, action)
        moves = (safe_norm(command) > 0.01).astype(state.q.dtype)
        speed = safe_norm(frames.velocity[1:, :2])
        landed = feet.has_landed.astype(state.q.dtype)
        peak = feet.during.swing_peak / self.foot_height - 1.0
        weight = jnp.array(np.resize([1.0, 1.0, 0.1], away.size), away.dtype)
        return tracking(frames.own_velocity[0], frames.own_angular_velocity[0], command, self.sigma) | {
            "lin_vel_z": frames.velocity[0, 2] ** 2,
            "ang_vel_xy": jnp.sum(frames.angular_velocity[0, :2] ** 2),
            "orientation": jnp.sum(frames.rotation[0, :2, 2] ** 2),
            "stand_still": jnp.where(safe_norm(command) < 0.01, jnp.sum(jnp.abs(away)), 0.0),
            "pose": jnp.exp(-jnp.sum(weight * away**2)),
            "torques": safe_norm(effort) + jnp.sum(jnp.abs(effort)),
            "action_rate": jnp.sum((action - memory.last_action) ** 2),
            "energy": jnp.sum(jnp.abs(rates * effort)),
            "feet_slip": moves * jnp.sum(jnp.where(feet.touches, speed**2, 0.0)),
            "feet_clearance": jnp.sum(jnp.abs(frames.origin[1:, 2] - self.foot_height) * safe_sqrt(speed)),
            "feet_height": moves * jnp.sum(peak**2 * landed),
            "feet_air_time": moves * jnp.sum((feet.during.air_time - 0.1) * landed),
            "dof_pos_limits": limits_left(state.q[joints.rows_in_q], *self.soft_range),
        }

    @property
    def soft_range(self) -> tuple[Array, Array]:
        """Soft limits of the joints with actuators: a share of the limits."""
        rows = self.joints.rows_in_q
        low, high = self.model.position_lower_limits[rows], self.model.position_upper_limits[rows]
        return self.soft_limits * low, self.soft_limits * high

    def remembered(
        self, memory: QuadrupedJoystickMemory, feet: FeetStep, action: Array, falls: Array, key: PRNGKeyArray
    ) -> QuadrupedJoystickMemory:
        """The memory after a step: perhaps another command, and another push."""
        key_command, key_steps, key_push = (jax.random.fold_in(key, i) for i in range(3))
        left = memory.steps_left - 1
        command = jnp.where(
            left <= 0, command_after(memory.command, self.fastest, self.kept, key_command), memory.command
        )
        left = jnp.where(falls | (left <= 0), steps_of_command(key_steps, self.duration), left)
        push = memory.push if self.pushes is None else self.pushes.update(memory.push, key_push)
        shown = Shown(memory.command, memory.last_action)
        return QuadrupedJoystickMemory(command, left, action, feet.after, shown, push, memory.hidden)

    def observe(
        self, state: State, memory: QuadrupedJoystickMemory, key: PRNGKeyArray
    ) -> Float[Array, " observations"]:
        frames, joints = frame_motion(self.model, state, (self.unit, *self.feet)), self.joints
        parts = {
            "linvel": frames.own_velocity[0],
            "gyro": frames.own_angular_velocity[0],
            "gravity": -frames.rotation[0, 2],
            "joint_pos": state.q[joints.rows_in_q] - joints.home,
            "joint_vel": state.v[joints.rows_in_v],
        }
        measured = parts if self.noise is None else self.noise.added(parts, key)
        seen = jnp.concatenate([*measured.values(), memory.shown.action, memory.shown.command])
        if memory.hidden is None:
            return seen
        return jnp.concatenate([seen, self.unseen(parts, frames, memory.hidden)])

    def unseen(self, parts: dict[str, Array], frames: FrameMotion, hidden: Hidden) -> Float[Array, " unseen"]:
        """What the privileged state has after the state."""
        force, is_pushed = hidden.push[:2], hidden.push[2:] > 0.0
        return jnp.concatenate([
            parts["gyro"], hidden.accelerometer, parts["gravity"], parts["linvel"], frames.angular_velocity[0],
            parts["joint_pos"], parts["joint_vel"], hidden.effort, hidden.touched.astype(force.dtype),
            frames.velocity[1:].reshape(-1), hidden.air_time, force, jnp.zeros_like(force[:1]),
            is_pushed.astype(force.dtype),
        ])  # fmt: skip

    @property
    def observation_groups(self) -> dict[str, int] | None:
        state = 9 + 3 * self.action_size + 3
        return {"state": state, "privileged_state": self.observation_size} if self.privileged else None

    @property
    def duration(self) -> Any:
        """Duration of a step, in s."""
        return self.substeps * self.model.time_step
