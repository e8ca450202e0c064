"""An environment for `brax.training`: PPO, SAC and APG run on it unchanged."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel
from mbjax.optional_packages import imported

from ..environment import AbstractEnvironment, EnvState
from .brax_repair import let_brax_train

KEY = "mbjax_key"  # in `info`, which goes on through the starts that brax repeats


def as_brax(environment: AbstractEnvironment) -> Any:
    """The environment as a `brax.envs.Env`, for `brax.training.agents.ppo.train.train(environment=…)` and others.

    brax's own wrappers restart episodes. For worlds that differ, give
    `randomization_fn=mbjax.domain_randomizer({...})`. Where a task has `observation_groups`, observations are dicts of
    these names, for networks with `policy_obs_key="state"` and `value_obs_key="privileged_state"`. A number that is not
    finite ends an episode, is replaced by zero, and is counted in the metric `broken`. Needs brax (extra `learn`).

    brax 0.14.2 calls `jax.device_put_replicated`, which JAX has no more; its learners get one of ours, JAX stays as it
    is.
    """
    if not isinstance(environment, AbstractEnvironment):
        raise ModelError(
            "as_brax: the first argument must be an environment, such as mbjax.environments.CartPoleSwingUp(model), "
            f"got {type(environment).__name__}. Brax's wrappers restart worlds: of Episodes give episodes.environment."
        )
    adapted = brax_class()(environment)
    let_brax_train()
    return adapted


@functools.cache
def brax_class() -> type:
    """The class of adapted environments, made once brax is there."""
    base = imported("brax.envs.base", "as_brax needs brax", "learn")

    class BraxEnvironment(base.Env):
        """An environment of mbjax, as brax sees it; `sys` is the model, which brax's randomization replaces."""

        def __init__(self, environment: AbstractEnvironment):
            self.environment = environment
            self.sys: MultibodyModel = environment.model

        @property
        def task(self) -> AbstractEnvironment:
            """The environment with the model of now."""
            return self.environment if self.sys is self.environment.model else self.environment.with_model(self.sys)

        def reset(self, rng: jax.Array) -> Any:
            state = self.task.reset(rng)
            metrics = {**state.metrics, "broken": jnp.zeros_like(state.reward)}
            seen = self.grouped(state.observation)
            info = {KEY: state.key}
            return base.State(parts_of(state), seen, state.reward, jnp.zeros_like(state.reward), metrics, info)

        def step(self, state: Any, action: jax.Array) -> Any:
            physics, memory = state.pipeline_state
            unread = jnp.zeros(0, state.reward.dtype)  # the observation before
            before = EnvState(physics, memory, state.info[KEY], unread, state.reward, state.done > 0.0, {})
            after = self.task.step(before, action)
            broken = ~(jnp.all(jnp.isfinite(after.observation)) & jnp.isfinite(after.reward))
            dtype = state.reward.dtype
            metrics = {name: jnp.where(broken, 0.0, x) for name, x in after.metrics.items()}
            return state.replace(
                pipeline_state=parts_of(after),
                obs=self.grouped(jnp.where(broken, 0.0, after.observation)),
                reward=jnp.where(broken, 0.0, after.reward),
                done=(after.done | broken).astype(dtype),
                metrics={**state.metrics, **metrics, "broken": broken.astype(dtype)},
                info={**state.info, KEY: after.key},
            )

        def grouped(self, observation: jax.Array) -> Any:
            """The observation, or its parts by their names where the task has such."""
            groups = self.environment.observation_groups
            return observation if groups is None else {name: observation[:size] for name, size in groups.items()}

        @property
        def observation_size(self) -> Any:
            groups = self.environment.observation_groups
            return self.environment.observation_size if groups is None else {k: (n,) for k, n in groups.items()}

        @property
        def action_size(self) -> int:
            return self.environment.action_size

        @property
        def backend(self) -> str:
            return "mbjax"

        @property
        def dt(self) -> jax.Array:
            """Duration of a step in s."""
            return self.environment.substeps * self.sys.time_step

    return BraxEnvironment


def parts_of(state: EnvState) -> tuple:
    """What brax carries as its `pipeline_state`."""
    return state.physics, state.memory
