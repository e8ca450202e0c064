"""PPO on Playground's Go1 joystick task, by mbjax's physics or by MJX's: the same rewards, steps and settings.

    python -m benchmarks.playground_training mbjax 400000
    python -m benchmarks.playground_training mjx 400000     # a Python with all of `pip install playground`

Both print the time of a control step of the environment (five steps of 4 ms, 256 worlds), then steps, seconds of wall
and of the processor, compilation included, and the mean return of an episode of 1000 steps. Policy and critic see
`state`. Robots' meshes, which Playground downloads and only draws, are tetrahedra where they are not there.
"""

import argparse
import functools
import importlib
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.environments import as_brax
from mbjax.environments.adapters.brax_repair import let_brax_train
from mbjax.learners.playground_tasks import playground

TASK, WORLDS, STEPS, CALLS = "Go1JoystickFlatTerrain", 256, 4, 5
PPO: dict[str, Any] = {
    "episode_length": 1000,
    "num_envs": 512,
    "unroll_length": 16,
    "batch_size": 64,
    "num_minibatches": 8,
    "num_updates_per_batch": 4,
    "learning_rate": 5e-4,
    "entropy_cost": 1e-2,
    "discounting": 0.97,
    "reward_scaling": 1.0,
    "max_grad_norm": 1.0,
    "num_evals": 5,
    "num_eval_envs": 32,
    "normalize_observations": True,
    "deterministic_eval": True,
}


def tetrahedron() -> bytes:
    """A binary STL file that stands for a mesh."""
    corners = 0.01 * np.vstack([np.zeros(3), np.eye(3)])
    facets = [corners[list(face)] for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
    rows = b"".join(np.vstack([np.zeros(3), facet]).astype("<f4").tobytes() + bytes(2) for facet in facets)
    return bytes(80) + np.uint32(4).tobytes() + rows


def playground_go1() -> Any:
    """Playground's environment on MJX."""
    base, home = (
        importlib.import_module(f"mujoco_playground._src.locomotion.go1.{name}") for name in ("base", "joystick")
    )
    files = base.get_assets()
    texts = b"".join(text for name, text in files.items() if name.endswith(".xml")).decode()
    meshes = {part.split('"')[0].split("/")[-1] for part in texts.split('file="')[1:]}
    missing = {name for name in meshes if name.endswith(".stl")} - set(files)
    base.get_assets = lambda: files | dict.fromkeys(missing, tetrahedron())
    settings = home.default_config()
    settings.impl, settings.naconmax, settings.njmax = "jax", 0, 0
    return home.Joystick(config=settings)


def microseconds_a_step(env: Any) -> float:
    """Least processor time of a control step of one world."""
    states = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), WORLDS))
    step, actions = jax.jit(jax.vmap(env.step)), jnp.zeros((WORLDS, 12))
    times = []
    for _ in range(1 + CALLS):
        began = time.process_time()
        for _ in range(STEPS):
            states = step(states, actions)
        jax.block_until_ready(states.reward)
        times.append(1e6 * (time.process_time() - began) / (STEPS * WORLDS))
    return min(times[1:])


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.playground_training")
    parser.add_argument("physics", choices=("mbjax", "mjx"))
    parser.add_argument("steps", type=int, nargs="?", default=400_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    let_brax_train()
    train: Any = importlib.import_module("brax.training.agents.ppo.train").train
    how: dict[str, Any] = {}
    env = as_brax(playground(TASK, privileged=True)) if options.physics == "mbjax" else playground_go1()
    if options.physics == "mjx":
        how = {"wrap_env_fn": importlib.import_module("mujoco_playground").wrapper.wrap_for_brax_training}
    print(f"{options.physics}: {microseconds_a_step(env):.0f} µs of the processor a control step", flush=True)
    began, used = time.perf_counter(), time.process_time()

    def tell(steps: int, metrics: dict[str, Any]) -> None:
        wall, processor, found = time.perf_counter() - began, time.process_time() - used, metrics["eval/episode_reward"]
        length = float(metrics["eval/avg_episode_length"])
        print(
            f"{options.physics}: {steps:8d} steps, {wall:6.1f} s ({processor:6.1f} s): return {float(found):7.3f}, "
            f"episodes of {length:.0f} steps",
            flush=True,
        )

    make = functools.partial(
        importlib.import_module("brax.training.agents.ppo.networks").make_ppo_networks,
        policy_hidden_layer_sizes=(128, 128),
        value_hidden_layer_sizes=(128, 128),
        policy_obs_key="state",
        value_obs_key="state",
    )
    train(env, num_timesteps=options.steps, seed=options.seed, network_factory=make, progress_fn=tell, **PPO, **how)


if __name__ == "__main__":
    main()
