"""What an environment is: a model, a task, and pure functions that start and advance one world."""

import abc
import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_known
from mbjax.simulation import Outputs, State, next_state, step

from .counts import require_count
from .methods import for_jit


class EnvState(eqx.Module):
    """One world of an environment between two steps; `vmap` makes a batch of them.

    `physics` is the state of the model and `memory` what a task keeps beside it: commands, the last action, readings of
    sensors. `done` says that the step that led here ended an episode, and `metrics` are its parts of the reward.
    """

    physics: State
    memory: Any
    key: PRNGKeyArray
    observation: Float[Array, "*batch observations"]
    reward: Float[Array, "*batch"]
    done: Bool[Array, "*batch"]
    metrics: dict[str, Array]


class Outcome(eqx.Module):
    """What a task makes of a step: its next memory, the reward, whether the episode ends, and parts of the reward."""

    memory: Any
    reward: Float[Array, ""]
    ends: Bool[Array, ""]
    metrics: dict[str, Array]


class Motion(eqx.Module):
    """What happened in a step of an environment: the states before and after, and what `sense` kept of the last step.

    `duration` is the time between the states, in s.
    """

    before: State
    after: State
    sensed: Any
    duration: Float[Array, ""]


class AbstractEnvironment(eqx.Module):
    """A task for a robot, as pure functions of one world: `jit`, `vmap` and `grad` them as you like.

        env = mbjax.environments.CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02))
        states = jax.vmap(env.reset)(jax.random.split(key, 1024))
        states = jax.jit(jax.vmap(env.step))(states, actions)

    A task answers `start`, `inputs`, `judge` and `observe`, and may choose by `sense` what it reads of the output
    ports. Actions are between -1 and 1. A step holds the inputs for `substeps` steps of the model.
    """

    model: eqx.AbstractVar[MultibodyModel]
    substeps: eqx.AbstractVar[int]

    def __check_init__(self) -> None:
        require_count(type(self).__name__, "substeps", self.substeps)

    @property
    @abc.abstractmethod
    def action_size(self) -> int:
        """How many numbers an action has."""

    @abc.abstractmethod
    def start(self, key: PRNGKeyArray) -> tuple[State, Any]:
        """The state and the memory that an episode starts from."""

    @abc.abstractmethod
    def inputs(self, state: State, memory: Any, action: Float[Array, " actions"]) -> Any:
        """The model's inputs for an action."""

    @abc.abstractmethod
    def judge(self, motion: Motion, memory: Any, action: Float[Array, " actions"], key: PRNGKeyArray) -> Outcome:
        """Rewards a step, and says whether it ends the episode."""

    @abc.abstractmethod
    def observe(self, state: State, memory: Any, key: PRNGKeyArray) -> Float[Array, " observations"]:
        """What the policy sees; `key` is for noise."""

    def sense(self, outputs: Outputs) -> Any:
        """What `judge` reads of the output ports; what is not returned here is not computed."""
        del outputs
        return ()

    @property
    def observation_size(self) -> int:
        """How many numbers an observation has."""
        return jax.eval_shape(self.reset, jax.random.key(0)).observation.shape[0]

    @property
    def observation_groups(self) -> dict[str, int] | None:
        """Names of parts of an observation for learners, each with how many of its first numbers it has, or None."""
        return None

    @for_jit
    def reset(self, key: PRNGKeyArray) -> EnvState:
        """Starts an episode of one world."""
        key, key_start, key_observe = keys_of(key, 3)
        state, memory = self.start(key_start)
        zero = jnp.zeros((), self.model.dtype)
        observation = self.observe(state, memory, key_observe)
        first = EnvState(state, memory, key, observation, zero, jnp.array(False), {})
        _, outcome = jax.eval_shape(self.advance, first, jnp.zeros(self.action_size, zero.dtype), key)
        metrics = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), outcome.metrics)
        return dataclasses.replace(first, metrics=metrics)

    @for_jit
    def step(self, state: EnvState, action: Float[Array, " actions"]) -> EnvState:
        """Advances one world by an action. After the end of an episode it goes on: `Episodes` starts anew."""
        key, key_observe, key_judge = keys_of(state.key, 3)
        after, outcome = self.advance(state, action, key_judge)
        observation = self.observe(after, outcome.memory, key_observe)
        return EnvState(after, outcome.memory, key, observation, outcome.reward, outcome.ends, outcome.metrics)

    def advance(self, state: EnvState, action: Float[Array, " actions"], key: PRNGKeyArray) -> tuple[State, Outcome]:
        """All of a step but the observation: the next state of the model, and what the task makes of it."""
        if jnp.shape(action) != (self.action_size,):
            raise ModelError(
                f"{type(self).__name__}.step: the action must have shape ({self.action_size},), got "
                f"{jnp.shape(action)}. Use jax.vmap for a batch of worlds."
            )
        action = jnp.clip(jnp.asarray(action, self.model.dtype), -1.0, 1.0)
        after, sensed = self.moved(state.physics, self.inputs(state.physics, state.memory, action))
        motion = Motion(state.physics, after, sensed, self.substeps * self.model.time_step)
        return after, self.judge(motion, state.memory, action, key)

    def moved(self, state: State, inputs: Any) -> tuple[State, Any]:
        """The state after all substeps, and what was sensed in the last."""
        senses = type(self).sense is not AbstractEnvironment.sense

        def substep(state: State, _: None) -> tuple[State, Any]:
            if not senses:
                return next_state(self.model, state, inputs), ()
            after, outputs = step(self.model, state, inputs)
            return after, self.sense(outputs)

        if self.substeps == 1:
            return substep(state, None)
        state, sensed = jax.lax.scan(substep, state, None, self.substeps)
        return state, jax.tree.map(lambda x: x[-1], sensed)

    def with_model(self, model: MultibodyModel) -> "AbstractEnvironment":
        """The same task for a model of other numbers."""
        return dataclasses.replace(self, model=model)


def keys_of(key: PRNGKeyArray, number: int) -> list[PRNGKeyArray]:
    """As many keys of one; those that nobody draws from are not computed, as they are by `jax.random.split`."""
    return [jax.random.fold_in(key, i) for i in range(number)]


def few_normals(key: PRNGKeyArray, number: int, dtype: Any) -> Float[Array, " number"]:
    """Standard normal numbers with 23 random bits each: a hash makes two of them, by `jax.random.normal` one."""
    words = jax.random.key_data(jax.random.split(key, (number + 1) // 2)).reshape(-1)[:number]
    bits = (words >> 9).astype(dtype)
    return 2.0**0.5 * jax.scipy.special.erfinv((bits + 0.5) * 2.0**-22 - 1.0)


def require_discrete_model(task: str, model: Any) -> None:
    """Raises `ModelError` unless the model has a time step."""
    if not isinstance(model, MultibodyModel) or not model.is_discrete:
        raise ModelError(f"{task}: the model must be a discrete one; load it with time_step=, in s.")


def require_effort_limits(task: str, model: MultibodyModel) -> None:
    """Raises `ModelError` where an actuator of one model of known numbers has no effort limit."""
    limit = model.parameters.effort_limit
    if not is_known(limit) or np.ndim(limit) != 1:
        return
    for name, largest in zip(model.actuator_names, np.asarray(limit), strict=True):
        if not np.isfinite(largest):
            raise ModelError(
                f"{task}: actuator '{name}' has no effort limit, and actions are shares of it; give one: "
                f"mbjax.set_effort_limit(model, '{name}', ...)."
            )


def require_contact(task: str, model: MultibodyModel) -> None:
    """Raises `ModelError` unless the model has pairs of shapes that may touch: without, the robot falls for ever."""
    if not model.collision_pairs:
        raise ModelError(
            f"{task}: nothing of the model can touch the ground; load it with contact_model='point', and with "
            "ground=True if the file has no ground."
        )
