"""Episodes: time limits, automatic restarts, statistics, and worlds that break and are restarted."""

import dataclasses
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.number_rules import is_finite
from mbjax.simulation import State

from .counts import as_plain, require_count
from .environment import AbstractEnvironment, EnvState, keys_of
from .methods import for_jit


class EpisodeStatistics(eqx.Module):
    """Counts of one world: of its running episode, its last finished one, and all of them.

    `num_broken` counts episodes that ended because a number was not finite.
    """

    num_steps: Int[Array, "*batch"]
    episode_return: Float[Array, "*batch"]
    last_length: Int[Array, "*batch"]
    last_return: Float[Array, "*batch"]
    num_episodes: Int[Array, "*batch"]
    num_broken: Int[Array, "*batch"]


class EpisodeState(eqx.Module):
    """One world whose episodes follow one another.

    `env.done` says that the last step ended an episode, for whatever reason: `truncated` if it was the time limit, and
    `broken` if a number was not finite. `env.observation` is then the first one of the next episode, and
    `last_observation` the one that the step led to: a critic reads it. A broken step has reward 0 and an observation of
    zeros. `first` is the start that each episode repeats, if they do, else None.
    """

    env: EnvState
    last_observation: Float[Array, "*batch observations"]
    truncated: Bool[Array, "*batch"]
    broken: Bool[Array, "*batch"]
    statistics: EpisodeStatistics
    first: tuple[State, Any] | None = None


class Episodes(eqx.Module):
    """Runs an environment episode after episode: `reset(key)` and `step(state, action)` of one world, to be vmapped.

    An episode ends where the task says so, after `length` steps, or where a number of the world is not finite: the
    world then restarts by itself and counts this, while its neighbours go on. Where the action was not finite, the
    reward's derivatives are zero; where numbers grew infinite in the step itself they are not finite, so leave such
    gradients out, world by world, before a mean over worlds. With `keep_last` false, observations
    that ended an episode are not computed. With `same_start` a world repeats the start that it first drew, as brax's
    and MuJoCo Playground's worlds do; drawing a start in every step, for the worlds that restart, is most of what an
    environment of a small robot costs. `env.key` is that of the running episode.
    """

    environment: AbstractEnvironment
    length: int = eqx.field(static=True, default=1000, converter=as_plain)
    keep_last: bool = eqx.field(static=True, default=True)
    same_start: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if not isinstance(self.environment, AbstractEnvironment):
            raise ModelError(
                "Episodes: the first argument must be an environment, such as "
                f"mbjax.environments.CartPoleSwingUp(model), got {type(self.environment).__name__}."
            )
        require_count("Episodes", "length", self.length)

    def with_model(self, model: MultibodyModel) -> "Episodes":
        """The same episodes for a model of other numbers."""
        return dataclasses.replace(self, environment=self.environment.with_model(model))

    @for_jit
    def reset(self, key: PRNGKeyArray) -> EpisodeState:
        """Starts the first episode."""
        env = self.environment.reset(key)
        zero, none = jnp.zeros((), self.environment.model.dtype), jnp.zeros((), int)
        statistics = EpisodeStatistics(none, zero, none, zero, none, none)
        first = (env.physics, env.memory) if self.same_start else None
        return EpisodeState(env, env.observation, jnp.array(False), jnp.array(False), statistics, first)

    @for_jit
    def step(self, state: EpisodeState, action: Float[Array, " actions"]) -> EpisodeState:
        """Advances one world, and restarts it where its episode ends."""
        return self.restarted(state, self.moved(state, action))

    @for_jit
    def step_worlds(self, states: EpisodeState, actions: Float[Array, "worlds actions"]) -> EpisodeState:
        """Advances a batch of worlds as `jax.vmap(step)` does, up to rounding, but draws starts only where one ends.

        Worlds of one length that start together end together, so that a task without falls pays for one start an
        episode. Where a world ends in nearly every step, this costs what `jax.vmap(step)` does.
        """
        moves = jax.vmap(self.moved)(states, actions)
        return jax.lax.cond(jnp.any(moves.done), jax.vmap(self.restarted), jax.vmap(self.going_on), states, moves)

    def moved(self, state: EpisodeState, action: Float[Array, " actions"]) -> "Moved":
        """What a step of one world led to, before it restarts."""
        num_steps = state.statistics.num_steps
        _, key_judge, _ = keys_of_step(state.env.key, num_steps)
        acts = all_finite(action)
        action = jnp.where(acts, action, 0.0)  # so that derivatives of a world that breaks by its action are zero
        after, outcome = self.environment.advance(state.env, action, key_judge)
        broken = ~(acts & all_finite((after, outcome.reward, outcome.memory)))
        ends = outcome.ends | broken
        truncated = ~ends & (num_steps + 1 >= self.length)
        reward = jnp.where(broken, 0.0, outcome.reward)
        metrics = jax.tree.map(lambda x: jnp.where(broken, jnp.zeros_like(x), x), outcome.metrics)
        return Moved(after, outcome.memory, reward, metrics, ends | truncated, truncated, broken)

    def restarted(self, state: EpisodeState, move: "Moved") -> EpisodeState:
        """One world after a step: where its episode ended, at the start of the next."""
        environment, before, done = self.environment, state.statistics, move.done
        key, _, key_observe = keys_of_step(state.env.key, before.num_steps)
        first = environment.start(key) if state.first is None else state.first
        physics, memory = chosen(done, first, (move.physics, move.memory))
        key = jnp.where(done, key, state.env.key)
        observation = environment.observe(physics, memory, key_observe)
        last = observation
        if self.keep_last:
            last = environment.observe(move.physics, move.memory, key_observe)
            last = jnp.where(done, jnp.where(move.broken, 0.0, last), observation)
        env = EnvState(physics, memory, key, observation, move.reward, done, move.metrics)
        return EpisodeState(env, last, move.truncated, move.broken, counted(before, move), state.first)

    def going_on(self, state: EpisodeState, move: "Moved") -> EpisodeState:
        """One world after a step that did not end its episode."""
        before = state.statistics
        _, _, key_observe = keys_of_step(state.env.key, before.num_steps)
        observation = self.environment.observe(move.physics, move.memory, key_observe)
        env = EnvState(move.physics, move.memory, state.env.key, observation, move.reward, move.done, move.metrics)
        statistics = dataclasses.replace(
            before, num_steps=before.num_steps + 1, episode_return=before.episode_return + move.reward
        )
        return EpisodeState(env, observation, move.truncated, move.broken, statistics, state.first)


class Moved(eqx.Module):
    """Where a step of one world led to, and whether it ended the episode: by the task, the time limit, or a number."""

    physics: State
    memory: Any
    reward: Float[Array, "*batch"]
    metrics: dict[str, Array]
    done: Bool[Array, "*batch"]
    truncated: Bool[Array, "*batch"]
    broken: Bool[Array, "*batch"]


def counted(before: EpisodeStatistics, move: Moved) -> EpisodeStatistics:
    """The counts after a step."""
    done, num_steps, episode_return = move.done, before.num_steps + 1, before.episode_return + move.reward
    return EpisodeStatistics(
        jnp.where(done, 0, num_steps),
        jnp.where(done, 0.0, episode_return),
        jnp.where(done, num_steps, before.last_length),
        jnp.where(done, episode_return, before.last_return),
        before.num_episodes + done.astype(num_steps.dtype),
        before.num_broken + move.broken.astype(num_steps.dtype),
    )


def require_episodes(call: str, episodes: Any) -> None:
    """Raises `ModelError` for anything but `Episodes`, and says how to make them of an environment."""
    if not isinstance(episodes, Episodes):
        raise ModelError(
            f"{call}: the first argument must be mbjax.environments.Episodes(environment), got "
            f"{type(episodes).__name__}."
        )


def keys_of_step(key: PRNGKeyArray, num_steps: Int[Array, ""]) -> tuple[PRNGKeyArray, PRNGKeyArray, PRNGKeyArray]:
    """Keys of the next episode, and of a step of this one for its judgement and its observation.

    An episode keeps its key and counts: a key that nobody draws from costs nothing, and each costs a hash. Starts may
    fold in any number below those here.
    """
    of_step = jax.random.fold_in(key, jnp.uint32(0x80000000) + num_steps.astype(jnp.uint32))
    key_judge, key_observe = keys_of(of_step, 2)
    return jax.random.fold_in(key, 0x7FFFFFFF), key_judge, key_observe


def all_finite(tree: Any) -> Bool[Array, ""]:
    """Whether all floats of a tree are finite."""
    found = [jnp.all(is_finite(x)) for x in jax.tree.leaves(tree) if eqx.is_inexact_array(x)]
    return jnp.all(jnp.stack(found)) if found else jnp.array(True)


def chosen(condition: Bool[Array, ""], first: Any, second: Any) -> Any:
    """The first tree where the condition holds, else the second."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), first, second)


def worlds_status(states: EpisodeState) -> dict[str, Array]:
    """Totals over a batch of worlds: episodes, their mean return and length, and how many broke, for a log."""
    statistics = states.statistics
    has_one = statistics.num_episodes > 0
    finished = jnp.maximum(jnp.sum(has_one), 1).astype(statistics.last_return.dtype)
    return {
        "episodes": jnp.sum(statistics.num_episodes),
        "mean_return": jnp.sum(jnp.where(has_one, statistics.last_return, 0.0)) / finished,
        "mean_length": jnp.sum(jnp.where(has_one, statistics.last_length, 0)).astype(finished.dtype) / finished,
        "broken": jnp.sum(statistics.num_broken),
    }
