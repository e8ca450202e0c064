"""Episodes: time limits, automatic restarts, statistics, and worlds that break and are restarted."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray

from mbjax.errors import ModelError
from mbjax.number_rules import is_finite
from mbjax.simulation import State

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
    world then restarts by itself and counts this, while its neighbours go on. With `keep_last` false, observations
    that ended an episode are not computed. With `same_start` a world repeats the start that it first drew, as brax's
    and MuJoCo Playground's worlds do; drawing a start in every step, for the worlds that restart, is most of what an
    environment of a small robot costs. `env.key` is that of the running episode.
    """

    environment: AbstractEnvironment
    length: int = eqx.field(static=True, default=1000)
    keep_last: bool = eqx.field(static=True, default=True)
    same_start: bool = eqx.field(static=True, default=False)

    def __check_init__(self) -> None:
        if not isinstance(self.length, int) or self.length < 1:
            raise ModelError(f"Episodes: length must be a whole number of steps >= 1, got {self.length!r}.")

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
        environment, before = self.environment, state.statistics
        key, key_judge, key_first = keys_of_step(state.env.key, before.num_steps)
        after, outcome = environment.advance(state.env, action, key_judge)
        broken = ~(all_finite((after, outcome.reward, outcome.memory)) & all_finite(action))
        reward = jnp.where(broken, 0.0, outcome.reward)
        num_steps = before.num_steps + 1
        ends = outcome.ends | broken
        truncated = ~ends & (num_steps >= self.length)
        done = ends | truncated
        first = environment.start(key) if state.first is None else state.first
        physics, memory = chosen(done, first, (after, outcome.memory))
        key = jnp.where(done, key, state.env.key)
        observation = environment.observe(physics, memory, key_first)
        last = observation
        if self.keep_last:
            last = environment.observe(after, outcome.memory, key_first)
            last = jnp.where(done, jnp.where(broken, 0.0, last), observation)
        episode_return = before.episode_return + reward
        statistics = EpisodeStatistics(
            jnp.where(done, 0, num_steps),
            jnp.where(done, 0.0, episode_return),
            jnp.where(done, num_steps, before.last_length),
            jnp.where(done, episode_return, before.last_return),
            before.num_episodes + done.astype(num_steps.dtype),
            before.num_broken + broken.astype(num_steps.dtype),
        )
        metrics = jax.tree.map(lambda x: jnp.where(broken, jnp.zeros_like(x), x), outcome.metrics)
        env = EnvState(physics, memory, key, observation, reward, done, metrics)
        return EpisodeState(env, last, truncated, broken, statistics, state.first)


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
