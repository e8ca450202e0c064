"""Gymnasium's hopper: hop along x on one leg."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

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


class Hopper(AbstractEnvironment):
    """Gymnasium's hopper (Hopper-v5, its defaults), for the model that `mbjax.load` makes of its MJCF file.

    reward = forward speed + 1 while healthy - 0.001 |action|², healthy: the torso above 0.7 m, tilted less than 0.2
    rad, all else within ±100; an episode ends otherwise. Observations are the original's 11.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=4)
    reset_noise: float = eqx.field(static=True, default=5e-3)

    def __check_init__(self) -> None:
        require_discrete_model("Hopper", self.model)
        require_contact("Hopper", self.model)
        require_effort_limits("Hopper", self.model)

    @property
    def action_size(self) -> int:
        return self.model.num_actuators

    def start(self, key: PRNGKeyArray) -> tuple[State, tuple]:
        state, n = default_state(self.model), self.model.num_positions
        noise = self.reset_noise * jax.random.uniform(key, (2 * n,), self.model.dtype, -1.0, 1.0)
        q = jnp.clip(state.q + noise[:n], self.model.position_lower_limits, self.model.position_upper_limits)
        return State(q, state.v + noise[n:], state.time), ()

    def inputs(self, state: State, memory: tuple, action: Float[Array, " actions"]) -> Array:
        return action * self.model.parameters.effort_limit

    def judge(self, motion: Motion, memory: tuple, action: Float[Array, " actions"], key: PRNGKeyArray) -> Outcome:
        q, v = motion.after.q, motion.after.v
        forward = (q[0] - motion.before.q[0]) / motion.duration
        within = jnp.all(jnp.abs(jnp.concatenate([q[2:], v])) < 100.0)
        is_healthy = within & (q[1] > 0.7) & (jnp.abs(q[2]) < 0.2)
        cost = 1e-3 * jnp.sum(action**2)
        reward = forward + is_healthy.astype(q.dtype) - cost
        return Outcome((), reward, ~is_healthy, {"forward": forward, "control_cost": cost})

    def observe(self, state: State, memory: tuple, key: PRNGKeyArray) -> Float[Array, " observations"]:
        return jnp.concatenate([state.q[1:], jnp.clip(state.v, -10.0, 10.0)])
