"""Tasks by name in Gymnasium: `gymnasium.make("mbjax/Quadruped-v0")`, and `make_vec` for many worlds."""

import functools
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import numpy as np

from mbjax.environments import (
    AbstractEnvironment,
    ArmReach,
    CartPoleSwingUp,
    Episodes,
    QuadrupedVelocity,
    as_gymnasium,
)
from mbjax.formats import load
from mbjax.model import set_controller_gains
from mbjax.optional_packages import imported


def quadruped(**options: Any) -> AbstractEnvironment:
    """The bundled quadruped, which walks at commanded velocities."""
    model = load("quadruped", time_step=0.01, ground=0.8, contact_pairs=[("*foot*", "ground")])
    return QuadrupedVelocity(set_controller_gains(model, 60.0, 1.5), **options)


def cart_pole(**options: Any) -> AbstractEnvironment:
    """The bundled cart-pole, which is swung up."""
    return CartPoleSwingUp(load("cart_pole", time_step=0.02), **options)


def arm(**options: Any) -> AbstractEnvironment:
    """The bundled arm, which reaches for a place."""
    return ArmReach(set_controller_gains(load("arm", time_step=0.01), 60.0, 1.5), **options)


TASKS: dict[str, tuple[Callable[..., AbstractEnvironment], int]] = {  # and the steps of an episode
    "mbjax/Quadruped-v0": (quadruped, 1000),
    "mbjax/CartPole-v0": (cart_pole, 250),
    "mbjax/Arm-v0": (arm, 250),
}


def register_with_gymnasium() -> tuple[str, ...]:
    """Makes tasks of bundled robots known to Gymnasium by name; returns the names. Needs gymnasium.

        mbjax.learners.gymnasium_names.register_with_gymnasium()
        env = gymnasium.make("mbjax/Quadruped-v0")
        worlds = gymnasium.make_vec("mbjax/Quadruped-v0", num_envs=64)

    Options go to the task: `gymnasium.make("mbjax/Quadruped-v0", scale=0.5)`. Worlds of `make_vec` are one program.
    Starts differ from run to run until `reset(seed=…)`.
    """
    gymnasium = imported("gymnasium", "register_with_gymnasium needs Gymnasium", "learn")
    for name, (task, steps) in TASKS.items():
        if name in gymnasium.registry:
            continue
        gymnasium.register(
            name,
            entry_point=functools.partial(one_world, task),
            vector_entry_point=functools.partial(many_worlds, task, steps),
            max_episode_steps=steps,
        )
    return tuple(TASKS)


def many_worlds(task: Callable[..., AbstractEnvironment], steps: int, num_envs: int = 1, **options: Any) -> Any:
    """The vector form of a task; its worlds restart by themselves."""
    length = options.pop("max_episode_steps", None) or steps
    seed = int(np.random.SeedSequence().generate_state(1)[0])  # Gymnasium's worlds start differently until seeded
    return as_gymnasium(Episodes(task(**options), length), num_envs, seed)


def one_world(task: Callable[..., AbstractEnvironment], **options: Any) -> Any:
    """One world of a task, which Gymnasium's own wrapper gives its time limit."""
    return world_class()(task(**options))


@functools.cache
def world_class() -> type:
    """The class of single worlds, made once Gymnasium is there."""
    gymnasium, spaces = (
        imported(module, "register_with_gymnasium needs Gymnasium", "learn")
        for module in ("gymnasium", "gymnasium.spaces")
    )

    class GymnasiumWorld(gymnasium.Env):
        """One world of mbjax as Gymnasium sees it."""

        metadata: ClassVar[dict[str, Any]] = {"render_modes": []}

        def __init__(self, environment: AbstractEnvironment):
            self.environment = environment
            dtype = np.dtype(environment.model.dtype)
            self.observation_space = spaces.Box(-np.inf, np.inf, (environment.observation_size,), dtype)
            self.action_space = spaces.Box(-1.0, 1.0, (environment.action_size,), dtype)
            self.started, self.stepped = jax.jit(environment.reset), jax.jit(environment.step)
            self.state: Any = None

        def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
            super().reset(seed=seed)
            self.state = self.started(jax.random.key(int(self.np_random.integers(2**31))))
            return np.asarray(self.state.observation), {}

        def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
            state = self.state = self.stepped(self.state, np.asarray(action, self.action_space.dtype))
            infos = {name: float(x) for name, x in state.metrics.items()}
            seen = np.asarray(state.observation)
            is_broken = not (np.isfinite(seen).all() and np.isfinite(state.reward))
            seen, reward = (np.zeros_like(seen), 0.0) if is_broken else (seen, float(state.reward))
            return seen, reward, bool(state.done) or is_broken, False, infos

    return GymnasiumWorld
