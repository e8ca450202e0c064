"""PPO on tasks of Playground, by mbjax's physics or by MJX's: the same rewards, steps and settings.

    python -m benchmarks.playground_training mbjax 400000
    python -m benchmarks.playground_training mjx 400000     # a Python with all of `pip install playground`
    python -m benchmarks.playground_training mbjax 400000 --task hand
    python -m benchmarks.playground_training mjx 0 --task hand      # the time of a step alone

Both print the time of a control step of the environment (five steps of the physics), of still and of random actions,
then steps, seconds of wall and of the processor, compilation included, and the mean return of an episode. Of the hand,
which turns a cube about the vertical, that is the angle in rad that the cube turns in up to 25 s, less 5 where it
falls. The policy sees `state`; the Go1's critic, too, and the hand's critic `privileged_state`. Robots' meshes, which
Playground downloads and only draws, are tetrahedra where they are not there.
"""

import argparse
import functools
import importlib
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.environments import as_brax
from mbjax.environments.adapters.brax_repair import let_brax_train
from mbjax.learners.playground_tasks import playground

CALLS = 5


class Task(NamedTuple):
    """A task's name, folder, module and class in Playground, what the critic sees, and how it is measured."""

    name: str
    folder: str
    module: str
    made: str
    critic: str
    steps: int  # of an episode
    worlds: int  # that are timed
    calls: int  # steps that are timed together


TASKS = {
    "go1": Task("Go1JoystickFlatTerrain", "locomotion.go1", "joystick", "Joystick", "state", 1000, 256, 4),
    "hand": Task(
        "LeapCubeRotateZAxis",
        "manipulation.leap_hand",
        "rotate_z",
        "CubeRotateZAxis",
        "privileged_state",
        500,
        64,
        1,
    ),
}
PPO: dict[str, Any] = {
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


def stl_tetrahedron() -> bytes:
    """A binary STL file that stands for a mesh."""
    corners = 0.01 * np.vstack([np.zeros(3), np.eye(3)])
    facets = [corners[list(face)] for face in ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))]
    rows = b"".join(np.vstack([np.zeros(3), facet]).astype("<f4").tobytes() + bytes(2) for facet in facets)
    return bytes(80) + np.uint32(4).tobytes() + rows


OBJ_TETRAHEDRON = b"v 0 0 0\nv 0.01 0 0\nv 0 0.01 0\nv 0 0 0.01\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
STAND_INS = {".stl": stl_tetrahedron(), ".obj": OBJ_TETRAHEDRON}


def of_playground(task: Task) -> Any:
    """Playground's environment on MJX."""
    base: Any = importlib.import_module(f"mujoco_playground._src.{task.folder}.base")
    home: Any = importlib.import_module(f"mujoco_playground._src.{task.folder}.{task.module}")
    files = base.get_assets()
    texts = b"".join(text for name, text in files.items() if name.endswith(".xml")).decode()
    meshes = {part.split('"')[0].split("/")[-1] for part in texts.split('file="')[1:]} - set(files)
    missing = {name: STAND_INS[name[-4:]] for name in meshes if name[-4:] in STAND_INS}
    base.get_assets = lambda: files | missing
    settings = home.default_config()
    settings.impl, settings.naconmax, settings.njmax = "jax", 0, 0
    return getattr(home, task.made)(config=settings)


def microseconds_a_step(env: Any, task: Task) -> tuple[float, float]:
    """Least processor time of a control step of one world, of still and of random actions."""
    states = jax.jit(jax.vmap(env.reset))(jax.random.split(jax.random.PRNGKey(0), task.worlds))
    step, found = jax.jit(jax.vmap(env.step)), []
    shape = task.worlds, env.action_size
    for actions in (jnp.zeros(shape), jax.random.uniform(jax.random.PRNGKey(1), shape, minval=-1.0, maxval=1.0)):
        times = []
        for _ in range(1 + CALLS):
            began = time.process_time()
            for _ in range(task.calls):
                states = step(states, actions)
            jax.block_until_ready(states.reward)
            times.append(1e6 * (time.process_time() - began) / (task.calls * task.worlds))
        found.append(min(times[1:]))
    return found[0], found[1]


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.playground_training")
    parser.add_argument("physics", choices=("mbjax", "mjx"))
    parser.add_argument("steps", type=int, nargs="?", default=400_000)
    parser.add_argument("--task", choices=tuple(TASKS), default="go1")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    task = TASKS[options.task]
    let_brax_train()
    train: Any = importlib.import_module("brax.training.agents.ppo.train").train
    how: dict[str, Any] = {}
    env = as_brax(playground(task.name, privileged=True)) if options.physics == "mbjax" else of_playground(task)
    if options.physics == "mjx":
        how = {"wrap_env_fn": importlib.import_module("mujoco_playground").wrapper.wrap_for_brax_training}
    still, random = microseconds_a_step(env, task)
    print(f"{options.physics}: {still:.0f} to {random:.0f} µs of the processor a control step", flush=True)
    if not options.steps:
        return
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
        value_obs_key=task.critic,
    )
    settings = PPO | how | {"num_timesteps": options.steps, "episode_length": task.steps, "seed": options.seed}
    train(env, network_factory=make, progress_fn=tell, **settings)


if __name__ == "__main__":
    main()
