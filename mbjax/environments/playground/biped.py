"""A biped that follows a joystick: MuJoCo Playground's joystick tasks of the G1 and of the Berkeley Humanoid."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mbjax.model import MultibodyModel
from mbjax.simulation import Inputs, State, keyframe_state
from mbjax.spatial import safe_norm

from ..disturbances import RandomPushes
from ..environment import AbstractEnvironment, Motion, Outcome, require_contact, require_discrete_model
from ..sensors import FrameMotion, frame_motion
from .biped_rules import BERKELEY, BipedRules
from .feet import Feet, FeetStep, feet_in_the_air, overlaps
from .joystick import JoystickJoints, Shown, joints_of, limits_left, placed_at_random, require_known_terms, tracking

TERMS = (
    "tracking_lin_vel", "tracking_ang_vel", "ang_vel_xy", "orientation", "torques", "action_rate", "feet_air_time",
    "feet_slip", "feet_phase", "stand_still", "joint_deviation_hip", "joint_deviation_knee", "dof_pos_limits", "pose",
    "collision", "termination",
)  # fmt: skip
STEPS_OF_COMMAND = 500  # of the environment


class BipedMemory(eqx.Module):
    """What the task keeps: command, steps since it was drawn, last action, phases of the feet, feet, what is shown."""

    command: Float[Array, "*batch 3"]
    steps: Int[Array, "*batch"]
    last_action: Float[Array, "*batch nu"]
    phase: Float[Array, "*batch 2"]
    rate: Float[Array, "*batch"]  # of the phases, in rad a step
    feet: Feet
    shown: Shown
    shown_phase: Float[Array, "*batch 2"]
    push: Float[Array, "*batch 3"]


class JoystickBiped(AbstractEnvironment):
    """Playground's joystick tasks on flat ground for a biped whose file has frames at its inertial units and feet.

    Actions are offsets from the joint angles of the keyframe, times `scale` rad. Observation, as Playground's "state":
    velocity, turning rate and gravity's direction in the inertial unit's frame, the command, joint angles from the
    keyframe, joint rates, an action, and cosines and sines of the phases of both feet. All are measured at the end of a
    step, where MuJoCo's sensors are those of the start of its last substep. As in Playground a step shows the action,
    the command and the phases before it. The reward is the step's duration times the weighted sum of the terms. An
    episode ends where the trunk is upside down, or where shapes of `rules.forbidden` touch.

    `rules` holds what differs between the robots. Terms with the weight 0 in Playground are not had, nor are its term
    for contact forces above 500 N and its kicks, which set velocities: `pushes` are those of mbjax.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=10)
    scale: float = eqx.field(static=True, default=0.5)
    rules: BipedRules = eqx.field(static=True, default=BERKELEY)
    noise: bool = eqx.field(static=True, default=True)
    pushes: RandomPushes | None = None

    def __check_init__(self) -> None:
        require_discrete_model("JoystickBiped", self.model)
        require_contact("JoystickBiped", self.model)
        keyframe_state(self.model, self.rules.home)
        for name in self.frames:
            self.model.frame(name)
        require_known_terms("JoystickBiped", dict(self.rules.weights), TERMS)

    @property
    def frames(self) -> tuple[str, ...]:
        """Frames that are looked at: of the inertial units of pelvis and torso, then of the feet."""
        return (self.rules.pelvis, self.rules.torso, *self.rules.feet)

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    @property
    def joints(self) -> JoystickJoints:
        """Places and angles at home of the joints with actuators."""
        return joints_of(self.model, self.rules.home)

    def start(self, key: PRNGKeyArray) -> tuple[State, BipedMemory]:
        model, nu, joints = self.model, self.model.num_actuators, self.joints
        key_state, key_command, key_joints, key_rate = jax.random.split(key, 4)
        state = placed_at_random(keyframe_state(model, self.rules.home), key_state)
        factors = jax.random.uniform(key_joints, (nu,), model.dtype, 0.5, 1.5)
        state = State(state.q.at[joints.rows_in_q].multiply(factors), state.v, state.time)
        command, still = self.drawn_command(key_command), model.zeros(nu)
        rate = 2.0 * jnp.pi * self.duration * jax.random.uniform(key_rate, (), model.dtype, 1.25, 1.5)
        phase = jnp.array([0.0, jnp.pi], model.dtype)
        push = model.zeros(3) if self.pushes is None else self.pushes.start(model)
        feet = feet_in_the_air(model, 2)
        shown = Shown(command, still)
        return state, BipedMemory(command, jnp.zeros((), int), still, phase, rate, feet, shown, phase, push)

    def inputs(self, state: State, memory: BipedMemory, action: Float[Array, " actions"]) -> Inputs:
        desired = self.joints.desired(self.scale * action)
        applied = None if self.pushes is None else self.pushes.applied(memory.push)
        return Inputs(desired_state=jnp.concatenate([desired, jnp.zeros_like(desired)]), applied_spatial_forces=applied)

    def judge(
        self, motion: Motion, memory: BipedMemory, action: Float[Array, " actions"], key: PRNGKeyArray
    ) -> Outcome:
        state, model, rules = motion.after, self.model, self.rules
        frames = frame_motion(model, state, self.frames)
        touches = overlaps(model, state.q, [(shape, rules.ground) for shape in rules.soles])
        feet = memory.feet.moved(touches, frames.origin[2:, 2], motion.duration)
        falls = frames.rotation[1, 2, 2] < 0.0
        if rules.forbidden:
            falls |= jnp.any(overlaps(model, state.q, rules.forbidden))
        terms = self.terms(state, frames, feet, memory, action) | {"termination": falls.astype(model.dtype)}
        parts = {name: weight * terms[name] for name, weight in rules.weights}
        reward = motion.duration * jnp.sum(jnp.stack(list(parts.values())))
        reward = jnp.maximum(reward, 0.0) if rules.is_never_negative else reward
        return Outcome(self.remembered(memory, feet, action, falls, key), reward, falls, parts)

    def terms(
        self, state: State, frames: FrameMotion, feet: FeetStep, memory: BipedMemory, action: Array
    ) -> dict[str, Array]:
        """Terms of the reward before their weights, but that of the end of an episode."""
        joints, rules, command = self.joints, self.rules, memory.command
        away = state.q[joints.rows_in_q] - joints.home
        # The limits are those of joints in these files, and MuJoCo reports the actuators' forces before them.
        effort = joints.wanted_effort(self.model, state, self.scale * action)
        planar, turning = safe_norm(frames.velocity[0, :2]), jnp.abs(frames.angular_velocity[0, 2])
        moves = (planar > 0.1) | (turning > 0.1) | (safe_norm(command) > 0.01)
        size, landed = safe_norm(command), feet.has_landed.astype(state.q.dtype)
        aloft = jnp.sum(jnp.minimum((feet.during.air_time - 0.2) * landed, 0.3))
        wanted = height_of_phase(memory.phase, rules.foot_height)
        in_phase = jnp.exp(-jnp.sum((frames.origin[2:, 2] - wanted) ** 2) / 0.01)
        weights = jnp.array([*rules.pose_weights] * 2 if rules.pose_weights else [1.0], away.dtype)
        found = tracking(frames.own_velocity[0], frames.own_angular_velocity[0], command, rules.sigma) | {
            "ang_vel_xy": jnp.sum(frames.angular_velocity[1, :2] ** 2),
            "orientation": rules.tilt(frames.rotation[1, :, 2]),
            "torques": jnp.sum(jnp.abs(effort)),
            "action_rate": jnp.sum((action - memory.last_action) ** 2),
            "feet_air_time": jnp.where((size > 0.1) | rules.steps_at_rest, aloft, 0.0),
            "feet_slip": jnp.sum(jnp.where(feet.touches, planar, 0.0)),
            "feet_phase": jnp.where(moves | (not rules.steps_at_rest), in_phase, 0.0),
            "stand_still": jnp.where(size < 0.01, jnp.sum(jnp.abs(away)), 0.0),
            "joint_deviation_hip": rules.hips_left(self.model, away, command),
            "joint_deviation_knee": jnp.sum(jnp.abs(away[rules.rows(self.model, rules.knees)])),
            "dof_pos_limits": limits_left(state.q[joints.rows_in_q], *joints.soft_range(0.95)),
            "pose": jnp.sum(weights * away**2),
        }
        hits = jnp.any(overlaps(self.model, state.q, rules.collisions)) if rules.collisions else jnp.array(False)
        return found | {"collision": hits.astype(state.q.dtype)}

    def remembered(
        self, memory: BipedMemory, feet: FeetStep, action: Array, falls: Bool[Array, ""], key: PRNGKeyArray
    ) -> BipedMemory:
        """The memory after a step: another command after 10 s, and perhaps another push."""
        key_command, key_push = (jax.random.fold_in(key, i) for i in range(2))
        steps = memory.steps + 1
        command = jnp.where(steps > STEPS_OF_COMMAND, self.drawn_command(key_command), memory.command)
        steps = jnp.where(falls | (steps > STEPS_OF_COMMAND), 0, steps)
        phase = jnp.fmod(memory.phase + memory.rate + jnp.pi, 2.0 * jnp.pi) - jnp.pi
        push = memory.push if self.pushes is None else self.pushes.update(memory.push, key_push)
        shown = Shown(memory.command, memory.last_action)
        return BipedMemory(command, steps, action, phase, memory.rate, feet.after, shown, memory.phase, push)

    def drawn_command(self, key: PRNGKeyArray) -> Float[Array, "3"]:
        """A command: one in ten is to stand still."""
        drawn = jax.random.uniform(key, (4,), self.model.dtype)
        command = jnp.array(self.rules.fastest, self.model.dtype) * (2.0 * drawn[:3] - 1.0)
        return jnp.where(drawn[3] < 0.1, 0.0, command)

    def observe(self, state: State, memory: BipedMemory, key: PRNGKeyArray) -> Float[Array, " observations"]:
        unit, joints = frame_motion(self.model, state, (self.rules.pelvis,)), self.joints
        parts = {
            "linvel": unit.own_velocity[0],
            "gyro": unit.own_angular_velocity[0],
            "gravity": -unit.rotation[0, 2],
            "joint_pos": state.q[joints.rows_in_q] - joints.home,
            "joint_vel": state.v[joints.rows_in_v],
        }
        seen = self.rules.noise.added(parts, key) if self.noise else parts
        phase = memory.shown_phase
        body = [seen[name] for name in ("linvel", "gyro", "gravity")]
        legs = [seen[name] for name in ("joint_pos", "joint_vel")]
        return jnp.concatenate(
            [*body, memory.shown.command, *legs, memory.shown.action, jnp.cos(phase), jnp.sin(phase)]
        )

    @property
    def duration(self) -> Any:
        """Duration of a step, in s."""
        return self.substeps * self.model.time_step


def height_of_phase(phase: Float[Array, " feet"], height: float) -> Float[Array, " feet"]:
    """Height that a foot should have by its phase from -π to π, in m: up in the first half, down in the second."""
    part = (phase + jnp.pi) / jnp.pi
    rising, falling = smooth_step(part), 1.0 - smooth_step(part - 1.0)
    return height * jnp.where(part <= 1.0, rising, falling)


def smooth_step(x: Array) -> Array:
    """3 x² - 2 x³: from 0 to 1 without slope at either end."""
    return x**2 * (3.0 - 2.0 * x)
