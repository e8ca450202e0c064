"""The reacher of the control suite as MuJoCo Playground has it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.kinematics import body_poses_in_world
from mbjax.model import MultibodyModel
from mbjax.simulation import State
from mbjax.spatial import safe_norm

from ..environment import AbstractEnvironment, Motion, Outcome, require_discrete_model, require_effort_limits


class PlaygroundReacher(AbstractEnvironment):
    """Playground's ReacherEasy and ReacherHard, for the model of its file: a finger that stays at a place.

    The reward is 1 where the finger's centre is within `radius` of the target, in m, else 0: the sum of both radii.
    Actions are shares of the largest torques. Observation: joint angles, the way from the finger to the target along x
    and y, and joint velocities. The target is drawn anew for each episode. Episodes do not end early.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=4)
    radius: float = eqx.field(static=True, default=0.06)
    finger: str = eqx.field(static=True, default="finger")

    def __check_init__(self) -> None:
        require_discrete_model("PlaygroundReacher", self.model)
        require_effort_limits("PlaygroundReacher", self.model)
        self.model.body_index(self.finger)

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, Float[Array, "2"]]:
        model = self.model
        drawn = jax.random.uniform(key, (4,), model.dtype)
        low, high = (
            jnp.where(jnp.isfinite(limit), limit, sign * np.pi)
            for sign, limit in ((-1.0, model.position_lower_limits), (1.0, model.position_upper_limits))
        )
        angle, distance = 2.0 * jnp.pi * drawn[2], 0.05 + 0.15 * drawn[3]
        target = distance * jnp.stack([jnp.sin(angle), jnp.cos(angle)])
        return State(low + (high - low) * drawn[:2], model.zeros(2), model.zeros()), target

    def inputs(self, state: State, memory: Array, action: Float[Array, " actions"]) -> Array:
        return self.model.parameters.effort_limit * action

    def judge(self, motion: Motion, memory: Array, action: Float[Array, " actions"], key: PRNGKeyArray) -> Outcome:
        distance = safe_norm(self.way(motion.after, memory))
        return Outcome(
            memory, (distance <= self.radius).astype(distance.dtype), jnp.array(False), {"distance": distance}
        )

    def observe(self, state: State, memory: Array, key: PRNGKeyArray) -> Float[Array, "6"]:
        return jnp.concatenate([state.q, self.way(state, memory), state.v])

    def way(self, state: State, target: Float[Array, "2"]) -> Float[Array, "2"]:
        """From the finger to the target, along x and y of the world."""
        return target - body_poses_in_world(self.model, state.q).translation[self.model.body_index(self.finger), :2]
