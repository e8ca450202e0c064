"""Reaching with an arm: bring a body to a place in space."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.kinematics import body_poses_in_world
from mbjax.model import MultibodyModel
from mbjax.simulation import Inputs, State, default_state
from mbjax.spatial import safe_norm

from ..environment import AbstractEnvironment, Motion, Outcome, require_discrete_model


class ArmReach(AbstractEnvironment):
    """Brings the origin of `body` to a goal that is new in every episode: where random joint angles would put it.

    Actions are offsets of the desired joint angles, up to `reach` rad a step, followed by the model's PD controllers.
    reward = exp(-distance² / 0.1²) - distance - 0.01 |action|². Observation: joint angles and rates, desired angles,
    and the way to the goal.
    """

    model: MultibodyModel
    body: str = eqx.field(static=True, default="tool")
    substeps: int = eqx.field(static=True, default=2)
    reach: float = eqx.field(static=True, default=0.1)

    def __check_init__(self) -> None:
        require_discrete_model("ArmReach", self.model)
        self.model.body_index(self.body)
        if self.model.num_actuators != self.model.num_positions:
            raise ModelError(
                "ArmReach: the model needs one actuator for each position; load it with actuators='joints'."
            )
        for place, actuator in enumerate(self.model.layout.actuators):
            joint = self.model.layout.joints[actuator.joint]
            if joint.q_start != place or joint.num_positions != 1:
                raise ModelError(
                    f"ArmReach: actuator '{actuator.name}' is number {place} and drives joint '{joint.name}', whose "
                    "positions are elsewhere in q; actuators must come in the order of q. Load the model with "
                    "actuators='joints'."
                )

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, tuple[Array, Array]]:
        state, model = default_state(self.model), self.model
        drawn = jax.random.uniform(key, (2, model.num_positions), model.dtype, -1.0, 1.0)
        low, high = (jnp.clip(x, -jnp.pi, jnp.pi) for x in (model.position_lower_limits, model.position_upper_limits))
        middle, half = 0.5 * (low + high), 0.5 * (high - low)
        q = state.q + 0.1 * half * drawn[0]
        return State(q, state.v, state.time), (q, self.place(middle + 0.6 * half * drawn[1]))

    def inputs(self, state: State, memory: tuple[Array, Array], action: Float[Array, " actions"]) -> Inputs:
        desired = self.desired(memory[0], action)
        return Inputs(desired_state=jnp.concatenate([desired, jnp.zeros_like(desired)]))

    def judge(
        self, motion: Motion, memory: tuple[Array, Array], action: Float[Array, " actions"], key: PRNGKeyArray
    ) -> Outcome:
        distance = safe_norm(memory[1] - self.place(motion.after.q))
        reward = jnp.exp(-((distance / 0.1) ** 2)) - distance - 0.01 * jnp.sum(action**2)
        return Outcome((self.desired(memory[0], action), memory[1]), reward, jnp.array(False), {"distance": distance})

    def observe(self, state: State, memory: tuple[Array, Array], key: PRNGKeyArray) -> Float[Array, " observations"]:
        return jnp.concatenate([state.q, state.v, memory[0], memory[1] - self.place(state.q)])

    def desired(self, before: Float[Array, " nu"], action: Float[Array, " nu"]) -> Float[Array, " nu"]:
        """Desired angles after an action, within the joints' limits."""
        moved = before + self.reach * action
        return jnp.clip(moved, self.model.position_lower_limits, self.model.position_upper_limits)

    def place(self, q: Float[Array, " nq"]) -> Float[Array, "3"]:
        """Where the body is."""
        return body_poses_in_world(self.model, q).translation[self.model.body_index(self.body)]
