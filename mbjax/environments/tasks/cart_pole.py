"""Swinging up a pole on a cart."""

import math

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from mbjax.model import MultibodyModel
from mbjax.simulation import State

from ..environment import AbstractEnvironment, Motion, Outcome, few_normals, require_discrete_model


class CartPoleSwingUp(AbstractEnvironment):
    """Swings a pole up from hanging and holds it upright near the middle of the rail.

    The reward of a step is that of the task in DeepMind's control suite, between 0 and 1: the product of how upright
    the pole is, how near the middle the cart is, how small the action and how slow the pole. Observation: the cart's
    place and speed, cosine and sine of the pole's angle (zero is upright), and its rate. Episodes do not end early.
    The largest force is `force`, in N.
    """

    model: MultibodyModel
    substeps: int = eqx.field(static=True, default=1)
    force: float = eqx.field(static=True, default=20.0)

    def __check_init__(self) -> None:
        require_discrete_model("CartPoleSwingUp", self.model)

    @property
    def action_size(self) -> int:
        return 1

    def start(self, key: PRNGKeyArray) -> tuple[State, tuple]:
        noise = 0.02 * few_normals(key, 4, self.model.dtype)
        return State(jnp.array([0.0, jnp.pi], noise.dtype) + noise[:2], noise[2:]), ()

    def inputs(self, state: State, memory: tuple, action: Float[Array, " actions"]) -> Array:
        return self.force * action

    def judge(self, motion: Motion, memory: tuple, action: Float[Array, " actions"], key: PRNGKeyArray) -> Outcome:
        x, angle = motion.after.q
        upright = 0.5 * (1.0 + jnp.cos(angle))
        centered = 0.5 * (1.0 + falloff(x / 2.0))
        small_action = 0.2 * (4.0 + (1.0 - action[0] ** 2))
        slow = 0.5 * (1.0 + falloff(motion.after.v[1] / 5.0))
        reward = upright * centered * small_action * slow
        return Outcome((), reward, jnp.array(False), {"upright": upright})

    def observe(self, state: State, memory: tuple, key: PRNGKeyArray) -> Float[Array, "5"]:
        (x, angle), (speed, rate) = state.q, state.v
        return jnp.stack([x, speed, jnp.cos(angle), jnp.sin(angle), rate])


def falloff(x: Array) -> Array:
    """1 at zero and 0.1 at 1: the Gaussian of the control suite's tolerances."""
    return jnp.exp(-math.log(10.0) * x**2)
