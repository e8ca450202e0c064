"""Trains a policy by the simulator's gradients: the short-horizon actor–critic of Xu et al. (2022, arXiv 2204.07137).

The actor climbs the gradient of the rewards of `horizon` steps plus the critic's value of where they lead, taken
through the physics; with `actor_trace` below 1 values on the way count too, so that it feels the ends of episodes,
which rewards have no slope towards. The critic learns TD(λ) targets of the same steps. Observations are scaled to unit
spread, and where contact makes a world's gradient by its state longer than `longest`, it is shortened there. With
`correlation` the noise of actions changes slowly, so that limbs make strokes where white noise only shakes them. With
`policy_rate` below 1 the policy is an average of the actor's last updates, which wavers less than the actor does.
Nothing else: equinox for the networks, optax for the optimizers (extra `learn`), mbjax for the worlds.

    python -m mbjax.learners.short_horizon_actor_critic     # swings up a cart-pole

For an environment of your own: `train_by_gradients(Episodes(environment, length=500), Settings(updates=400)).policy`.
With `folder=` a run that was stopped goes on where it was; `network_policy(learner)` is the policy to keep and export.
With `distributions=` each world has a robot of its own, drawn as by `mbjax.randomize`.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp

from mbjax.environments import (
    CartPoleSwingUp,
    Episodes,
    EpisodeState,
    restore_checkpoint,
    save_checkpoint,
    worlds_status,
)
from mbjax.errors import ModelError
from mbjax.formats import load
from mbjax.model import MultibodyModel
from mbjax.optional_packages import imported
from mbjax.randomization import Distribution, randomize
from mbjax.spatial import safe_sqrt

from .network_policy import NetworkPolicy

optax = imported("optax", "the short-horizon actor–critic needs optax", "learn")


@dataclasses.dataclass(frozen=True)
class Settings:
    """Numbers of the method; the names are those of the paper."""

    worlds: int = 64
    horizon: int = 32
    discount: float = 0.99
    trace: float = 0.95  # λ of the critic's targets
    actor_trace: float = 1.0  # λ of the returns that the actor climbs; 1 has the critic only after the horizon
    actor_rate: float = 2e-3
    critic_rate: float = 2e-3
    critic_passes: int = 8
    target_rate: float = 0.2  # how fast the target network follows the critic, an update
    exploration: float = -0.5  # logarithm of the first standard deviation of actions
    keeps_exploring: bool = False  # whether that deviation stays as it is
    correlation: float = 0.0  # of the noise of actions between two steps of a horizon
    width: int = 64
    longest: float = float("inf")  # gradient by the state of one world that goes back through a step
    reward_scale: float = 1.0  # factor of rewards for actor and critic
    policy_rate: float = 1.0  # how fast the policy follows the actor, an update: below 1 it is an average of the last
    last_rate: float = 1.0  # the last step of the optimizers beside their first; falls evenly over `updates`
    updates: int = 400


class Scaling(eqx.Module):
    """Mean and variance of the observations so far."""

    mean: jax.Array
    variance: jax.Array
    number: jax.Array

    def __call__(self, observation: jax.Array) -> jax.Array:
        return jnp.clip((observation - self.mean) / safe_sqrt(self.variance + 1e-4), -10.0, 10.0)

    def updated(self, seen: jax.Array) -> "Scaling":
        """With more observations, in rows."""
        total = self.number + seen.shape[0]
        share, way = seen.shape[0] / total, jnp.mean(seen, axis=0) - self.mean
        variance = (1.0 - share) * self.variance + share * jnp.var(seen, axis=0) + share * (1.0 - share) * way**2
        return Scaling(self.mean + share * way, variance, total)


class Actor(eqx.Module):
    """A Gaussian policy, squashed to ±1: a mean that the observation decides, and one spread an action."""

    mean: eqx.nn.MLP
    log_spread: jax.Array

    def __call__(self, observation: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.tanh(self.mean(observation) + jnp.exp(self.log_spread) * noise)


class Learner(eqx.Module):
    """All that changes while learning; save it, read it back, and go on bit-equal."""

    actor: Actor
    average: Actor  # of the last updates: the policy that is evaluated and kept
    critic: eqx.nn.MLP
    target: eqx.nn.MLP
    scaling: Scaling
    actor_memory: Any
    critic_memory: Any
    states: EpisodeState
    key: jax.Array

    def policy(self, observation: jax.Array) -> jax.Array:
        """The action in ±1 for one observation, without exploration."""
        return self.average(self.scaling(observation), jnp.zeros(self.average.log_spread.size))


class Progress(NamedTuple):
    """How far a run is: printed, it is a line. Times are those since the call, in s."""

    updates: int
    steps: int  # of all worlds
    episode_return: float  # the mean of episodes without exploration
    reward: float  # the mean of this update's steps, with exploration
    gradient: float  # the length of the actor's gradient
    broken: int  # worlds that had a number that is not finite, so far
    seconds: float
    processor_seconds: float

    def __str__(self) -> str:
        return (
            f"{self.updates:5d} updates, {self.steps:8d} steps, {self.seconds:6.1f} s ({self.processor_seconds:6.1f} s "
            f"of the processor): return {self.episode_return:7.2f}, reward {self.reward:.3f}, gradient "
            f"{self.gradient:.3g}, broken {self.broken}"
        )


class Way(eqx.Module):
    """What the critic learns from; leading axes steps and worlds."""

    observation: jax.Array
    next_observation: jax.Array
    reward: jax.Array
    ends: jax.Array  # without a value after it
    done: jax.Array  # ended, or cut off by the time limit


def optimizers(settings: Settings) -> tuple[Any, Any]:
    """Those of actor and critic; steps that are not finite are left out."""

    def falling(rate: float, passes: int) -> Any:
        return optax.linear_schedule(rate, settings.last_rate * rate, settings.updates * passes)

    made = [
        optax.chain(optax.clip_by_global_norm(1.0), optax.adam(falling(rate, passes), b1=0.7, b2=0.95))
        for rate, passes in ((settings.actor_rate, 1), (settings.critic_rate, settings.critic_passes))
    ]
    return optax.apply_if_finite(made[0], settings.updates), made[1]


class Robots(NamedTuple):
    """The models of all worlds, and their axes of worlds for `jax.vmap`."""

    models: MultibodyModel
    axes: Any


def robots_of(
    episodes: Episodes, settings: Settings, distributions: Mapping[str, Distribution] | None, key: jax.Array
) -> Robots:
    """One robot for all worlds, or one of its own for each."""
    if not distributions:
        return Robots(episodes.environment.model, None)
    return Robots(*randomize(episodes.environment.model, key, settings.worlds, distributions))


def start(episodes: Episodes, settings: Settings, robots: Robots, key: jax.Array) -> Learner:
    """A learner that has learned nothing."""
    seen, actions = episodes.environment.observation_size, episodes.environment.action_size
    key, key_actor, key_critic, key_worlds = jax.random.split(key, 4)
    mean = eqx.nn.MLP(seen, actions, settings.width, 2, jax.nn.elu, key=key_actor)
    actor = Actor(mean, jnp.full(actions, settings.exploration))
    critic = eqx.nn.MLP(seen, "scalar", settings.width, 2, jax.nn.elu, key=key_critic)
    of_actor, of_critic = optimizers(settings)
    reset = jax.vmap(lambda model, key: episodes.with_model(model).reset(key), (robots.axes, 0))
    states = jax.jit(reset)(robots.models, jax.random.split(key_worlds, settings.worlds))
    taken = jax.random.randint(key_worlds, (settings.worlds,), 0, episodes.length)  # else all worlds restart at once
    states = eqx.tree_at(lambda x: x.statistics.num_steps, states, taken.astype(states.statistics.num_steps.dtype))
    of_actor, of_critic = (
        of.init(eqx.filter(net, eqx.is_array)) for of, net in ((of_actor, actor), (of_critic, critic))
    )
    scaling = Scaling(jnp.zeros(seen), jnp.ones(seen), jnp.array(1.0))
    return Learner(actor, actor, critic, critic, scaling, of_actor, of_critic, states, key)


def network_policy(learner: Learner) -> NetworkPolicy:
    """The policy alone, without exploration, to save, export, or run in NumPy."""
    layers, scaling = learner.average.mean.layers, learner.scaling
    weights, biases = (tuple(f(x) for x in layers) for f in (lambda x: x.weight.T, lambda x: x.bias))
    return NetworkPolicy(scaling.mean, safe_sqrt(scaling.variance + 1e-4), weights, biases, "elu", "tanh", 10.0)


def length_of(tree: Any) -> jax.Array:
    """The Euclidean norm of all numbers of a tree."""
    return safe_sqrt(sum((jnp.sum(x * x) for x in jax.tree.leaves(tree)), start=jnp.zeros(())))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def faded(tree: Any, share: float, longest: float) -> Any:
    """The tree itself; of its gradient this share goes on, no longer than this, and none that is not finite."""
    return tree


def faded_backward(share: float, longest: float, _: None, slope: Any) -> tuple[Any]:
    """The gradient that goes on."""
    length = length_of(slope)
    factor = jnp.where(jnp.isfinite(length), jnp.minimum(share, longest / jnp.maximum(length, 1e-12)), 0.0)
    return (jax.tree.map(lambda x: jnp.where(factor > 0.0, factor * x, 0.0), slope),)


faded.defvjp(lambda tree, share, longest: (tree, None), faded_backward)


def negative_return(
    actor: Actor, learner: Learner, episodes: Episodes, settings: Settings, robots: Robots, noise: jax.Array
) -> tuple[jax.Array, tuple[EpisodeState, Way]]:
    """A number whose gradient is minus that of the return after each action, the mean over steps and worlds.

    The return is a mixture of those of 1, 2, … steps and the value after them, which TD(λ) makes the critic learn, with
    `actor_trace` as λ: what goes back through a step is that share, discounted, of the gradient by the state after it.
    """
    target, scaling, count = learner.target, learner.scaling, settings.horizon * settings.worlds
    discount, trace = settings.discount, settings.actor_trace

    def value(observations: jax.Array) -> jax.Array:
        return jax.vmap(target)(jax.vmap(scaling)(observations))

    def moved(model: MultibodyModel, states: EpisodeState, noise: jax.Array) -> EpisodeState:
        before = states.env.physics, states.env.memory, states.env.observation
        moving, rest = eqx.partition(before, eqx.is_inexact_array)
        short = eqx.combine(faded(moving, discount * trace, settings.longest), rest)
        states = eqx.tree_at(lambda x: (x.env.physics, x.env.memory, x.env.observation), states, short)
        return episodes.with_model(model).step(states, actor(scaling(states.env.observation), noise))

    if settings.keeps_exploring:
        actor = eqx.tree_at(lambda x: x.log_spread, actor, jax.lax.stop_gradient(actor.log_spread))

    def one_step(carry: tuple, x: tuple) -> tuple[tuple, Way]:
        (states, total), (noise, is_last) = carry, x
        seen = states.env.observation
        states = jax.vmap(moved, (robots.axes, 0, 0))(robots.models, states, noise)
        ends = states.env.done & ~states.truncated
        weight = jnp.where(ends, 0.0, jnp.where(is_last | states.truncated, discount, discount * (1.0 - trace)))
        total += jnp.sum(settings.reward_scale * states.env.reward + weight * value(states.last_observation))
        return (states, total), Way(seen, states.last_observation, states.env.reward, ends, states.env.done)

    last = jnp.arange(settings.horizon) == settings.horizon - 1
    (states, total), way = jax.lax.scan(one_step, (learner.states, jnp.zeros(())), (noise, last))
    return -total / count, (states, jax.lax.stop_gradient(way))


def td_targets(way: Way, learner: Learner, settings: Settings) -> jax.Array:
    """TD(λ): each value is the reward and a mixture of the next value and the next target."""
    values = jax.vmap(jax.vmap(lambda seen: learner.target(learner.scaling(seen))))(way.next_observation)
    following = jnp.where(way.ends, 0.0, values)

    def backward(after: jax.Array, x: tuple) -> tuple[jax.Array, jax.Array]:
        reward, next_value, done = x
        mixed = jnp.where(done, next_value, (1.0 - settings.trace) * next_value + settings.trace * after)
        here = settings.reward_scale * reward + settings.discount * mixed
        return here, here

    return jax.lax.scan(backward, following[-1], (way.reward, following, way.done), reverse=True)[1]


def correlated_noise(key: jax.Array, settings: Settings, actions: int) -> jax.Array:
    """Standard normal numbers, leading axes steps and worlds, with `settings.correlation` from a step to the next."""
    drawn = jax.random.normal(key, (settings.horizon, settings.worlds, actions))
    if settings.correlation == 0.0:
        return drawn
    kept, new = settings.correlation, (1.0 - settings.correlation**2) ** 0.5

    def following(before: jax.Array, fresh: jax.Array) -> tuple[jax.Array, jax.Array]:
        here = kept * before + new * fresh
        return here, here

    return jnp.concatenate([drawn[:1], jax.lax.scan(following, drawn[0], drawn[1:])[1]])


def mixed(old: Any, new: Any, share: float) -> Any:
    """Networks on their way from old numbers to new ones."""
    return jax.tree.map(lambda x, y: share * y + (1.0 - share) * x if eqx.is_array(y) else y, old, new)


@eqx.filter_jit
def update(learner: Learner, episodes: Episodes, settings: Settings, robots: Robots) -> tuple[Learner, dict]:
    """One horizon of all worlds, a step of the actor, and some of the critic."""
    of_actor, of_critic = optimizers(settings)
    key, key_noise = jax.random.split(learner.key)
    noise = correlated_noise(key_noise, settings, episodes.environment.action_size)
    gradient = eqx.filter_grad(negative_return, has_aux=True)
    slope, (states, way) = gradient(learner.actor, learner, episodes, settings, robots, noise)
    change, actor_memory = of_actor.update(slope, learner.actor_memory)
    actor = eqx.apply_updates(learner.actor, change)
    wanted = td_targets(way, learner, settings)
    inputs = jax.vmap(jax.vmap(learner.scaling))(way.observation)

    def critic_loss(critic: eqx.nn.MLP) -> jax.Array:
        return jnp.mean((jax.vmap(jax.vmap(critic))(inputs) - wanted) ** 2)

    arrays, rest = eqx.partition(learner.critic, eqx.is_array)

    def critic_step(carry: tuple, _: None) -> tuple[tuple, None]:
        arrays, memory = carry
        slope = jax.grad(lambda arrays: critic_loss(eqx.combine(arrays, rest)))(arrays)
        change, memory = of_critic.update(slope, memory)
        return (optax.apply_updates(arrays, change), memory), None

    (arrays, critic_memory), _ = jax.lax.scan(
        critic_step, (arrays, learner.critic_memory), None, settings.critic_passes
    )
    critic = eqx.combine(arrays, rest)
    target = mixed(learner.target, critic, settings.target_rate)
    average = mixed(learner.average, actor, settings.policy_rate)
    log = {"reward": jnp.mean(way.reward), "gradient": length_of(slope), **worlds_status(states)}
    scaling = learner.scaling.updated(way.observation.reshape(-1, way.observation.shape[-1]))
    return Learner(actor, average, critic, target, scaling, actor_memory, critic_memory, states, key), log


def evaluate(learner: Learner, episodes: Episodes, key: jax.Array, worlds: int = 128) -> jax.Array:
    """Mean return of an episode without exploration, each up to its own end."""

    def one_step(carry: tuple, _: None) -> tuple[tuple, jax.Array]:
        states, goes_on = carry
        actions = jax.vmap(learner.policy)(states.env.observation)
        states = episodes.step_worlds(states, actions)
        return (states, goes_on & ~states.env.done), jnp.where(goes_on, states.env.reward, 0.0)

    states = jax.vmap(episodes.reset)(jax.random.split(key, worlds))
    first = states, jnp.ones(worlds, bool)
    return jnp.mean(jnp.sum(jax.lax.scan(one_step, first, None, episodes.length)[1], axis=0))


def train_by_gradients(
    episodes: Episodes,
    settings: Settings = Settings(),
    *,
    seed: int = 0,
    every: int = 25,
    tell: Callable[[Progress], Any] = print,
    folder: str | Path | None = None,
    distributions: Mapping[str, Distribution] | None = None,
) -> Learner:
    """Takes `settings.updates` updates; `tell` gets a `Progress` at the first and then after each `every` of them.

    With `distributions`, by the patterns of `mbjax.randomize`, worlds have robots of their own; the return that
    `Progress` tells is that of the robot itself.

    With a folder the learner is kept there as often, by orbax, its worlds and random keys included. A run that was
    stopped goes on from the last one when it is called again with the same arguments, bit-equal to one that was not; a
    run that was finished returns what it had found. `settings.updates` decides how the optimizers' steps fall, so it
    must stay the same too.
    """
    if every < 1:
        raise ModelError(f"train_by_gradients: every must be at least 1, got {every}.")
    if not episodes.keep_last:
        raise ModelError("train_by_gradients: the critic reads last_observation; make Episodes with keep_last=True.")
    key = jax.random.key(seed)
    robots = robots_of(episodes, settings, distributions, jax.random.fold_in(key, 1))
    learner, done = start(episodes, settings, robots, key), 0
    if folder is not None and any(path.name.isdigit() for path in Path(folder).glob("*")):
        done, learner = restore_checkpoint(folder, learner)
    score = eqx.filter_jit(evaluate)
    began, used = time.perf_counter(), time.process_time()
    for i in range(done + 1, settings.updates + 1):
        learner, log = update(learner, episodes, settings, robots)
        if i % every == 0 or i in (1, settings.updates):
            found = float(score(learner, episodes, jax.random.key(1)))
            numbers = float(log["reward"]), float(log["gradient"]), int(log["broken"])
            times = time.perf_counter() - began, time.process_time() - used
            tell(Progress(i, i * settings.worlds * settings.horizon, found, *numbers, *times))
            if folder is not None:
                save_checkpoint(folder, i, learner)
    return learner


if __name__ == "__main__":
    cart_pole = CartPoleSwingUp(load("cart_pole", time_step=0.02))
    train_by_gradients(Episodes(cart_pole, length=250), Settings(updates=400))
