"""A quadruped that walks at a commanded velocity."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_known
from mbjax.simulation import Inputs, State, default_state
from mbjax.spatial import quaternion_to_matrix

from ..disturbances import RandomPushes
from ..environment import AbstractEnvironment, Motion, Outcome, require_contact, require_discrete_model
from ..sensors import Sensor

STANDING = {"abduction": 0.0, "flexion": 0.6, "knee": -1.2}  # rad
HEIGHT = 0.376  # m, of the trunk on its feet


class QuadrupedMemory(eqx.Module):
    """What the task keeps: the command, the last action, the encoders' memory and the push."""

    command: Float[Array, "*batch 3"]  # forward and sideward velocity in m/s, and turning in rad/s
    last_action: Float[Array, "*batch nu"]
    encoders: Float[Array, "*batch delay 2*nu"]
    push: Float[Array, "*batch 3"]


class QuadrupedVelocity(AbstractEnvironment):
    """Walks at the velocity that an episode commands: forward, sideward and turning, in the trunk's frame.

        model = mbjax.load("quadruped", time_step=0.004, ground=0.8, contact_pairs=[("*foot*", "ground")])
        env = mbjax.environments.QuadrupedVelocity(mbjax.set_controller_gains(model, 60.0, 1.5))

    Actions are offsets of the desired joint angles from standing, up to `scale` rad, followed by PD controllers. The
    reward has the terms of legged-robot tasks (Rudin et al. 2022): tracking of the velocities, minus vertical and
    rolling speed, tilt, effort and change of action. An episode ends where the trunk tilts by more than 60° or sinks
    below 0.15 m. Observation: turning rate and gravity in the trunk's frame, the command, joint angles and rates as the
    encoders measure them, and the last action. `pushes` disturb the trunk.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=5)
    scale: float = eqx.field(static=True, default=0.5)
    fastest: tuple[float, float, float] = eqx.field(static=True, default=(1.0, 0.5, 0.8))
    encoders: Sensor = Sensor()
    pushes: RandomPushes | None = None

    def __check_init__(self) -> None:
        require_discrete_model("QuadrupedVelocity", self.model)
        require_contact("QuadrupedVelocity", self.model)
        if is_known(self.model.parameters.proportional_gain) and not np.all(self.model.parameters.proportional_gain):
            raise ModelError(
                "QuadrupedVelocity: the actuators need gains, as actions are desired angles; for example "
                "mbjax.set_controller_gains(model, 60.0, 1.5)."
            )

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, QuadrupedMemory]:
        model, nu = self.model, self.model.num_actuators
        drawn = jax.random.uniform(key, (3 + nu,), model.dtype, -1.0, 1.0)
        command = jnp.array(self.fastest, model.dtype) * drawn[:3]
        state = default_state(model)
        q = state.q.at[6].set(HEIGHT).at[self.rows[0]].set(self.standing + 0.05 * drawn[3:])
        state = State(q, state.v, state.time)
        push = model.zeros(3) if self.pushes is None else self.pushes.start(model)
        return state, QuadrupedMemory(command, model.zeros(nu), self.encoders.start(self.measured(state)), push)

    def inputs(self, state: State, memory: QuadrupedMemory, action: Float[Array, " actions"]) -> Inputs:
        desired = jnp.concatenate([self.standing + self.scale * action, jnp.zeros_like(action)])
        applied = None if self.pushes is None else self.pushes.applied(memory.push)
        return Inputs(desired_state=desired, applied_spatial_forces=applied)

    def judge(
        self, motion: Motion, memory: QuadrupedMemory, action: Float[Array, " actions"], key: PRNGKeyArray
    ) -> Outcome:
        state = motion.after
        up_B, omega_B, velocity_B = self.trunk(state)
        wrong = velocity_B[:2] - memory.command[:2]
        effort = self.model.parameters.proportional_gain * (self.standing + self.scale * action - state.q[self.rows[0]])
        parts = {
            "tracking": jnp.exp(-jnp.sum(wrong**2) / 0.25),
            "turning": 0.5 * jnp.exp(-((omega_B[2] - memory.command[2]) ** 2) / 0.25),
            "vertical": -1.0 * velocity_B[2] ** 2,
            "rolling": -0.05 * jnp.sum(omega_B[:2] ** 2),
            "tilt": -1.0 * jnp.sum(up_B[:2] ** 2),
            "effort": -2e-4 * jnp.sum(effort**2),
            "change": -0.01 * jnp.sum((action - memory.last_action) ** 2),
        }
        ends = (up_B[2] < 0.5) | (state.q[6] < 0.15)
        push = memory.push if self.pushes is None else self.pushes.update(memory.push, key)
        encoders = self.encoders.update(memory.encoders, self.measured(state))
        total = jnp.sum(jnp.stack(list(parts.values())))
        return Outcome(QuadrupedMemory(memory.command, action, encoders, push), total, ends, parts)

    def observe(self, state: State, memory: QuadrupedMemory, key: PRNGKeyArray) -> Float[Array, " observations"]:
        up_B, omega_B, _ = self.trunk(state)
        measured = self.encoders.read(memory.encoders, key)
        return jnp.concatenate([omega_B, up_B, memory.command, measured, memory.last_action])

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Places of the actuated joints in q and v, in the order of actuators."""
        joints = [self.model.joint(actuator.joint) for actuator in self.model.layout.actuators]
        return np.array([joint.q.start for joint in joints]), np.array([joint.v.start for joint in joints])

    @property
    def standing(self) -> Float[Array, " nu"]:
        """Joint angles of standing, in the order of actuators."""
        joints = [self.model.joint(actuator.joint).name for actuator in self.model.layout.actuators]
        angles = [next((angle for part, angle in STANDING.items() if part in name), 0.0) for name in joints]
        return jnp.array(angles, self.model.dtype)

    def measured(self, state: State) -> Float[Array, " 2*nu"]:
        """True angles from standing, and rates, of the actuated joints."""
        return jnp.concatenate([state.q[self.rows[0]] - self.standing, 0.1 * state.v[self.rows[1]]])

    def trunk(self, state: State) -> tuple[Array, Array, Array]:
        """The upward direction, the angular velocity and the velocity of the trunk, in its frame."""
        R_BW = quaternion_to_matrix(state.q[:4]).T
        return R_BW[:, 2], R_BW @ state.v[:3], R_BW @ state.v[3:6]
