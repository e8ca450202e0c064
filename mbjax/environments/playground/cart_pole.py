"""Cart-pole tasks of the control suite as MuJoCo Playground has them."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.model import MultibodyModel
from mbjax.simulation import State

from ..environment import AbstractEnvironment, Motion, Outcome, require_discrete_model, require_effort_limits
from ..tasks.cart_pole import falloff


class PlaygroundCartPole(AbstractEnvironment):
    """Playground's CartpoleSwingup, CartpoleBalance and their sparse forms, for the model of its file.

    An action of 1 is the actuator's largest force. Observation: the cart's place, cosine and sine of the pole's angle,
    which is zero upright, then the velocities of both. The reward of a step is the product of how upright the pole is,
    how near the middle the cart is, how small the action and how slow the pole; with `sparse` it is 1 where the cart is
    within 0.25 m and the cosine above 0.995, else 0. Episodes do not end early.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=1)
    swings_up: bool = eqx.field(static=True, default=True)
    sparse: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        require_discrete_model("PlaygroundCartPole", self.model)
        require_effort_limits("PlaygroundCartPole", self.model)

    @property
    def action_size(self) -> int:
        return 1

    def start(self, key: PRNGKeyArray) -> tuple[State, tuple]:
        key_q, key_v = jax.random.split(key)
        dtype, model = self.model.dtype, self.model
        if self.swings_up:
            q = jnp.array([0.0, jnp.pi], dtype) + 0.01 * jax.random.normal(key_q, (2,), dtype)
        else:
            q = jnp.array([0.1, 0.034], dtype) * jax.random.uniform(key_q, (2,), dtype, -1.0, 1.0)
        return State(q, 0.01 * jax.random.normal(key_v, (2,), dtype), model.zeros()), ()

    def inputs(self, state: State, memory: tuple, action: Float[Array, " actions"]) -> Array:
        return self.model.parameters.effort_limit * action

    def judge(self, motion: Motion, memory: tuple, action: Float[Array, " actions"], key: PRNGKeyArray) -> Outcome:
        (x, angle), rate = motion.after.q, motion.after.v[1]
        parts = self.sparse_parts(x, angle) if self.sparse else self.dense_parts(x, angle, rate, action[0])
        return Outcome((), jnp.prod(jnp.stack(list(parts.values()))), jnp.array(False), parts)

    def dense_parts(self, x: Array, angle: Array, rate: Array, action: Array) -> dict[str, Array]:
        """Factors of the dense reward, each up to 1."""
        return {
            "upright": 0.5 * (1.0 + jnp.cos(angle)),
            "centered": 0.5 * (1.0 + falloff(x / 2.0)),
            "small_control": 0.2 * (5.0 - action**2),
            "small_velocity": 0.5 * (1.0 + falloff(rate / 5.0)),
        }

    def sparse_parts(self, x: Array, angle: Array) -> dict[str, Array]:
        """Factors of the sparse reward, each 0 or 1."""
        return {
            "cart_in_bounds": (jnp.abs(x) <= 0.25).astype(x.dtype),
            "angle_in_bounds": (jnp.cos(angle) >= 0.995).astype(x.dtype),
        }

    def observe(self, state: State, memory: tuple, key: PRNGKeyArray) -> Float[Array, "5"]:
        (x, angle), (speed, rate) = state.q, state.v
        return jnp.stack([x, jnp.cos(angle), jnp.sin(angle), speed, rate])
