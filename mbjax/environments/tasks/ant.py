"""Gymnasium's ant: run along x on four legs."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.engines import mujoco_state
from mbjax.model import MultibodyModel
from mbjax.simulation import State, default_state

from ..environment import (
    AbstractEnvironment,
    Motion,
    Outcome,
    require_contact,
    require_discrete_model,
    require_effort_limits,
)


class Ant(AbstractEnvironment):
    """Gymnasium's ant (Ant-v4, its defaults), for the model that `mbjax.load` makes of its MJCF file.

    reward = forward speed + 1 while healthy - 0.5 |action|², healthy: the torso between 0.2 and 1 m high; an episode
    ends otherwise. Observations are the original's 27: height, quaternion, joint angles, then velocities in MuJoCo's
    order. One difference: joints start within their limits, where the file has ankles outside.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=5)
    control_cost: float = eqx.field(static=True, default=0.5)
    reset_noise: float = eqx.field(static=True, default=0.1)

    def __check_init__(self) -> None:
        require_discrete_model("Ant", self.model)
        require_contact("Ant", self.model)
        require_effort_limits("Ant", self.model)

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, tuple]:
        return noisy_start(self.model, key, self.reset_noise), ()

    def inputs(self, state: State, memory: tuple, action: Float[Array, " actions"]) -> Array:
        return action * self.model.parameters.effort_limit

    def judge(self, motion: Motion, memory: tuple, action: Float[Array, " actions"], key: PRNGKeyArray) -> Outcome:
        forward = (motion.after.q[4] - motion.before.q[4]) / motion.duration
        height = motion.after.q[6]
        is_healthy = (height >= 0.2) & (height <= 1.0)
        cost = self.control_cost * jnp.sum(action**2)
        reward = forward + is_healthy.astype(height.dtype) - cost
        return Outcome((), reward, ~is_healthy, {"forward": forward, "control_cost": cost})

    def observe(self, state: State, memory: tuple, key: PRNGKeyArray) -> Float[Array, " observations"]:
        qpos, qvel = mujoco_state(self.model, state)
        return jnp.concatenate([qpos[2:], qvel])


def noisy_start(model: MultibodyModel, key: PRNGKeyArray, noise: float) -> State:
    """The default state with noise as in Gymnasium, uniform on positions and Gaussian on velocities, within limits."""
    state = default_state(model)
    key_q, key_v = jax.random.split(key)
    q = state.q + noise * jax.random.uniform(key_q, state.q.shape, model.dtype, -1.0, 1.0)
    q = jnp.clip(q, model.position_lower_limits, model.position_upper_limits)
    return State(q, state.v + noise * jax.random.normal(key_v, state.v.shape, model.dtype), state.time)
