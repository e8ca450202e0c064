"""A quadruped, or a biped, that walks at a commanded velocity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_known
from mbjax.simulation import Inputs, State
from mbjax.spatial import quaternion_to_matrix

from ..disturbances import RandomPushes
from ..environment import AbstractEnvironment, Motion, Outcome, require_contact, require_discrete_model
from ..sensors import Sensor
from .trot import OpenLoopTrot, standing_on_ground, trot_of


class QuadrupedMemory(eqx.Module):
    """What the task keeps: the command, the last action, the trot's phase at the start, sensors, and the push."""

    command: Float[Array, "*batch 3"]  # forward and sideward velocity in m/s, and turning in rad/s
    last_action: Float[Array, "*batch nu"]
    first_phase: Float[Array, "*batch"]
    encoders: Float[Array, "*batch delay 2*nu"]
    push: Float[Array, "*batch 3"]


class QuadrupedVelocity(AbstractEnvironment):
    """Walks at a commanded velocity: forward, sideward and turning, in the trunk's frame.

        model = mbjax.load("quadruped", time_step=0.01, ground=0.8, contact_pairs=[("*foot*", "ground")])
        env = mbjax.environments.QuadrupedVelocity(mbjax.set_controller_gains(model, 60.0, 1.5))

    An action is a residual of up to `scale` rad on the joint angles of a trot in open loop, `trot`, which PD
    controllers follow: such a residual is learned from far fewer steps than a gait from nothing (arXiv 2410.03076).
    Numbers of the trot are changed by `dataclasses.replace`; with its `share` and `lift` 0 actions are offsets from
    standing. Both `trot` and `home`, the configuration of standing (the keyframe of a file that has one), are those of
    the model that the task is made with: a randomized one is moved by the controller of the nominal one. Feet are the
    four spheres that may touch the ground, or the two boxes of a biped, which then steps from foot to foot.

    The reward has the terms of legged-robot tasks (Rudin et al. 2022): tracking of the velocities, minus vertical and
    rolling speed, tilt, effort, size of the residual, and change of action. It is at most 1.5, and to stand still is
    worth 0.46 by the defaults. An episode ends where the trunk tilts by more than 60° or sinks to half of its standing
    height. Observation: velocity, turning rate and upward direction in the trunk's frame, the command, the phase of the
    trot, joint angles and rates as the encoders measure them, and the last action.

    A command is drawn at the start, each number up to `fastest`; at each step another is drawn with probability
    `changing`. One command in ten is to stand still. `pushes` disturb the trunk.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=2)
    scale: float = eqx.field(static=True, default=0.3)
    width: float = eqx.field(static=True, default=0.15)  # (m/s)², (rad/s)²: of the rewards for tracking
    effort_cost: float = eqx.field(static=True, default=2e-4)  # of (N m)²
    fastest: tuple[float, float, float] = eqx.field(static=True, default=(0.8, 0.8, 1.0))
    changing: float = eqx.field(static=True, default=0.005)
    encoders: Sensor = Sensor()
    pushes: RandomPushes | None = None
    keyframe: str = eqx.field(static=True, default="home")
    home: Float[Array, " nq"] | None = None
    trot: OpenLoopTrot | None = None

    def __post_init__(self) -> None:
        require_discrete_model("QuadrupedVelocity", self.model)
        require_contact("QuadrupedVelocity", self.model)
        trunk = next((body for body in self.model.layout.bodies if body.is_floating), None)
        if trunk is None or trunk.floating_positions_start != 0:
            raise ModelError("QuadrupedVelocity: the trunk must move freely, and be the first body of the model.")
        if is_known(self.model.parameters.proportional_gain) and not np.all(self.model.parameters.proportional_gain):
            raise ModelError(
                "QuadrupedVelocity: the actuators need gains, as actions are desired angles; for example "
                "mbjax.set_controller_gains(model, 60.0, 1.5)."
            )
        if self.home is None:
            self.home = standing_on_ground(self.model, self.rows[0], self.keyframe)
        if self.trot is None:
            self.trot = trot_of(self.model, self.home, self.rows[1])

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, QuadrupedMemory]:
        model, nu = self.model, self.model.num_actuators
        key_command, key_joints = jax.random.split(key)
        drawn = jax.random.uniform(key_joints, (nu + 1,), model.dtype, -1.0, 1.0)
        q = jnp.asarray(self.home).at[self.rows[0]].add(0.05 * drawn[1:])
        state = State(q, model.zeros(model.num_velocities), model.zeros())
        command = self.drawn_command(jax.random.uniform(key_command, (4,), model.dtype))
        phase = jnp.where(drawn[0] > 0.0, 0.5, 0.0).astype(model.dtype)
        push = model.zeros(3) if self.pushes is None else self.pushes.start(model)
        encoders = self.encoders.start(self.measured(state))
        return state, QuadrupedMemory(command, model.zeros(nu), phase, encoders, push)

    def inputs(self, state: State, memory: QuadrupedMemory, action: Float[Array, " actions"]) -> Inputs:
        desired = jnp.concatenate([self.desired(state, memory, action), jnp.zeros_like(action)])
        applied = None if self.pushes is None else self.pushes.applied(memory.push)
        return Inputs(desired_state=desired, applied_spatial_forces=applied)

    def judge(
        self, motion: Motion, memory: QuadrupedMemory, action: Float[Array, " actions"], key: PRNGKeyArray
    ) -> Outcome:
        state, numbers = motion.after, self.model.parameters
        up_B, omega_B, velocity_B = trunk_motion(state)
        wrong = velocity_B[:2] - memory.command[:2]
        away = self.desired(motion.before, memory, action) - state.q[self.rows[0]]
        effort = numbers.proportional_gain * away - numbers.derivative_gain * state.v[self.rows[1]]
        parts = {
            "tracking": jnp.exp(-jnp.sum(wrong**2) / self.width),
            "turning": 0.5 * jnp.exp(-((omega_B[2] - memory.command[2]) ** 2) / self.width),
            "vertical": -1.0 * velocity_B[2] ** 2,
            "rolling": -0.05 * jnp.sum(omega_B[:2] ** 2),
            "tilt": -1.0 * jnp.sum(up_B[:2] ** 2),
            "effort": -self.effort_cost * jnp.sum(effort**2),
            "residual": -0.01 * jnp.sum(action**2),
            "change": -0.01 * jnp.sum((action - memory.last_action) ** 2),
        }
        total = jnp.sum(jnp.stack(list(parts.values())))
        return Outcome(self.remembered(state, memory, action, key), total, self.has_fallen(state), parts)

    def observe(self, state: State, memory: QuadrupedMemory, key: PRNGKeyArray) -> Float[Array, " observations"]:
        up_B, omega_B, velocity_B = trunk_motion(state)
        measured = self.encoders.read(memory.encoders, key)
        angle = 2.0 * jnp.pi * self.phase(state, memory)
        clock = jnp.stack([jnp.sin(angle), jnp.cos(angle)])
        return jnp.concatenate([velocity_B, omega_B, up_B, memory.command, clock, measured, memory.last_action])

    def has_fallen(self, state: State) -> Bool[Array, ""]:
        """Whether the trunk tilts by more than 60°, or is below half of its standing height; a pose of NaN counts."""
        up_z = 1.0 - 2.0 * (state.q[1] ** 2 + state.q[2] ** 2)
        return ~((up_z >= 0.5) & (state.q[6] >= 0.5 * jnp.asarray(self.home)[6]))

    def desired(self, state: State, memory: QuadrupedMemory, action: Float[Array, " actions"]) -> Array:
        """Joint angles that the controllers follow from a state on, in rad: of the trot, and the action's residual."""
        assert self.trot is not None
        trot = self.trot.angles(self.phase(state, memory), memory.command)
        return self.standing + trot + self.scale * action

    def phase(self, state: State, memory: QuadrupedMemory) -> Float[Array, ""]:
        """The trot's phase, in periods."""
        return jnp.mod(memory.first_phase + state.time / self.period, 1.0)

    @property
    def period(self) -> float:
        """Duration of a stride of the trot, in s."""
        assert self.trot is not None
        return self.trot.period

    def remembered(self, state: State, memory: QuadrupedMemory, action: Array, key: PRNGKeyArray) -> QuadrupedMemory:
        """The memory after a step: perhaps another command, and another push."""
        key_command, key_push = jax.random.fold_in(key, 0), jax.random.fold_in(key, 1)
        command, push = memory.command, memory.push
        if self.changing > 0.0:
            drawn = jax.random.uniform(key_command, (5,), self.model.dtype)
            command = jnp.where(drawn[4] < self.changing, self.drawn_command(drawn[:4]), command)
        if self.pushes is not None:
            push = self.pushes.update(memory.push, key_push)
        encoders = self.encoders.update(memory.encoders, self.measured(state))
        return QuadrupedMemory(command, action, memory.first_phase, encoders, push)

    def drawn_command(self, drawn: Float[Array, "4"]) -> Float[Array, "3"]:
        """A command by numbers between 0 and 1."""
        command = jnp.array(self.fastest, self.model.dtype) * (2.0 * drawn[:3] - 1.0)
        return jnp.where(drawn[3] < 0.1, 0.0, command)

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the actuated joints in q and v, in the order of actuators."""
        joints = [self.model.joint(actuator.joint) for actuator in self.model.layout.actuators]
        return np.array([joint.q.start for joint in joints]), np.array([joint.v.start for joint in joints])

    @property
    def standing(self) -> Float[Array, " nu"]:
        """Joint angles of standing, in the order of actuators."""
        return jnp.asarray(self.home)[self.rows[0]]

    def measured(self, state: State) -> Float[Array, " 2*nu"]:
        """True angles from standing, and rates in 0.1 rad/s, of the actuated joints."""
        return jnp.concatenate([state.q[self.rows[0]] - self.standing, 0.1 * state.v[self.rows[1]]])


def trunk_motion(state: State) -> tuple[Array, Array, Array]:
    """The upward direction, the angular velocity and the velocity of the trunk, in its frame."""
    R_BW = quaternion_to_matrix(state.q[:4]).T
    return R_BW[:, 2], R_BW @ state.v[:3], R_BW @ state.v[3:6]
