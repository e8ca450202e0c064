"""An environment for Gymnasium's vector API: many worlds in one object, NumPy arrays in and out."""

import functools
from typing import Any

import jax
import numpy as np

from mbjax.errors import ModelError
from mbjax.optional_packages import imported

from ..counts import require_count
from ..episodes import Episodes, require_episodes


def as_gymnasium(episodes: Episodes, worlds: int, seed: int = 0) -> Any:
    """The episodes of many worlds as a `gymnasium.vector.VectorEnv`.

    A world restarts in the step that ends its episode (`AutoresetMode.SAME_STEP`). Then `infos["final_obs"]` has the
    observations that ended episodes, for the worlds of the mask `infos["_final_obs"]`. The `seed` decides what is drawn
    until `reset(seed=…)` gives another. Needs gymnasium.
    """
    require_episodes("as_gymnasium", episodes)
    require_count("as_gymnasium", "worlds", worlds)
    return gymnasium_class()(episodes, worlds, seed)


@functools.cache
def gymnasium_class() -> type:
    """The class of adapted environments, made once Gymnasium is there."""
    gymnasium, vector, spaces = (
        imported(module, "as_gymnasium needs Gymnasium", "learn")
        for module in ("gymnasium", "gymnasium.vector", "gymnasium.spaces")
    )

    class GymnasiumWorlds(vector.VectorEnv):
        """Worlds of mbjax as Gymnasium sees them."""

        metadata = {"autoreset_mode": vector.AutoresetMode.SAME_STEP}  # noqa: RUF012

        def __init__(self, episodes: Episodes, worlds: int, seed: int):
            self.num_envs = worlds
            environment = episodes.environment
            dtype = np.dtype(environment.model.dtype)
            seen = (environment.observation_size,)
            self.single_observation_space = spaces.Box(-np.inf, np.inf, seen, dtype)
            self.single_action_space = spaces.Box(-1.0, 1.0, (environment.action_size,), dtype)
            batch = gymnasium.vector.utils.batch_space
            self.observation_space = batch(self.single_observation_space, worlds)
            self.action_space = batch(self.single_action_space, worlds)
            self.key = jax.random.key(seed)
            self.started, self.stepped = jax.jit(jax.vmap(episodes.reset)), jax.jit(episodes.step_worlds)
            self.states: Any = None
            self.keeps_last = episodes.keep_last

        def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
            self.key = self.key if seed is None else jax.random.key(seed)
            self.key, key = jax.random.split(self.key)
            self.states = self.started(jax.random.split(key, self.num_envs))
            return np.asarray(self.states.env.observation), {}

        def step(self, actions: Any) -> tuple:
            if self.states is None:
                raise ModelError("as_gymnasium: there is no state to step from; call reset() first.")
            states = self.states = self.stepped(self.states, actions)
            done, truncated = np.asarray(states.env.done), np.asarray(states.truncated)
            infos: dict[str, Any] = {name: np.asarray(x) for name, x in states.env.metrics.items()}
            if done.any():
                statistics = states.statistics
                if self.keeps_last:
                    infos |= {"final_obs": np.asarray(states.last_observation), "_final_obs": done}
                infos |= {
                    "episode": {"r": np.asarray(statistics.last_return), "l": np.asarray(statistics.last_length)},
                    "_episode": done,
                }
            observation = np.asarray(states.env.observation)
            return observation, np.asarray(states.env.reward), done & ~truncated, truncated, infos

    return GymnasiumWorlds
