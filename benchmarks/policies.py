"""Stock brax PPO beside the short-horizon actor–critic: returns over time on one machine.

    python -m benchmarks.policies ppo cart_pole 3000000     # steps
    python -m benchmarks.policies gradient cart_pole 400    # updates
    python -m benchmarks.policies ppo ant 10000000
    python -m benchmarks.policies gradient hopper 300

Each prints steps, seconds of wall and of the processor since it began, compilation included, and the mean return of an
episode without exploration in 128 worlds. Tasks are cart_pole (an episode has 250 steps), hopper and ant (1000) and
quadruped (500).
"""

import functools
import pathlib
import sys
import time
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import mbjax
from mbjax.environments import Ant, CartPoleSwingUp, Episodes, Hopper, QuadrupedVelocity, as_brax

# Horizons of 0.3 to 0.8 s: through contact, longer ones give gradients of 1e2 and more, from which nothing is learned.
CONTACT: dict[str, Any] = {"longest": 10.0, "last_rate": 0.1, "critic_passes": 16}
SETTINGS: dict[str, dict[str, Any]] = {
    "cart_pole": {},
    "hopper": CONTACT | {"horizon": 32, "exploration": 0.0},
    "ant": CONTACT | {"horizon": 16, "exploration": -0.5},
    "quadruped": CONTACT | {"horizon": 16, "exploration": -1.0},
}
TASKS = {"cart_pole": 250, "hopper": 1000, "ant": 1000, "quadruped": 500}  # steps of an episode


def episodes(task: str) -> Episodes:
    """The task with its length."""
    if task == "cart_pole":
        return Episodes(CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02)), length=TASKS[task])
    if task == "quadruped":
        model = mbjax.load("quadruped", time_step=0.004, ground=0.8, contact_pairs=[("*foot*", "ground")])
        return Episodes(QuadrupedVelocity(mbjax.set_controller_gains(model, 60.0, 1.5)), length=TASKS[task])
    import gymnasium

    path = pathlib.Path(gymnasium.__file__).parent / f"envs/mujoco/assets/{task}.xml"
    time_step = {"ant": 0.01, "hopper": 0.002}[task]
    with warnings.catch_warnings():  # the ant's joints start outside of their ranges: the task moves them inside
        warnings.simplefilter("ignore")
        model = mbjax.load(path, time_step=time_step, contact_model="point", on_unsupported="warn")
    return Episodes({"ant": Ant, "hopper": Hopper}[task](model), length=TASKS[task])


def restore_what_brax_calls() -> None:
    """Gives JAX back a function that brax 0.14.2 calls and JAX 0.10 has no more: copies of a tree, one a device."""

    def device_put_replicated(tree: Any, devices: list) -> Any:
        sharding = NamedSharding(Mesh(np.array(devices), "devices"), PartitionSpec("devices"))
        return jax.tree.map(lambda x: jax.device_put(jnp.stack([x] * len(devices)), sharding), tree)

    jax.device_put_replicated = device_put_replicated  # pyright: ignore[reportAttributeAccessIssue]


def by_ppo(task: str, steps: int) -> None:
    """brax's PPO with its own wrappers; its networks as wide as the other method's, which a CPU trains sooner."""
    restore_what_brax_calls()
    from brax.training.agents.ppo.networks import make_ppo_networks
    from brax.training.agents.ppo.train import train

    began, used = time.perf_counter(), time.process_time()

    def tell(steps: int, metrics: dict) -> None:
        found = float(metrics["eval/episode_reward"])
        wall, processor = time.perf_counter() - began, time.process_time() - used
        print(f"{steps:8d} steps, {wall:6.1f} s ({processor:6.1f} s): return {found:7.2f}", flush=True)

    train(
        as_brax(episodes(task).environment),
        num_timesteps=steps,
        episode_length=TASKS[task],
        num_envs=256,
        unroll_length=20,
        batch_size=256,
        num_minibatches=8,
        num_updates_per_batch=4,
        network_factory=functools.partial(
            make_ppo_networks, policy_hidden_layer_sizes=(64, 64), value_hidden_layer_sizes=(64, 64)
        ),
        discounting=0.99,
        learning_rate=1e-3,
        entropy_cost=1e-2,
        normalize_observations=True,
        num_evals=9,
        deterministic_eval=True,
        progress_fn=tell,
    )


def by_gradient(task: str, updates: int) -> None:
    """The file in examples/."""
    sys.path.insert(0, "examples")
    from short_horizon_actor_critic import Settings, train

    train(episodes(task), Settings(**SETTINGS[task], updates=updates), updates, every=max(updates // 12, 1))


if __name__ == "__main__":
    {"ppo": by_ppo, "gradient": by_gradient}[sys.argv[1]](sys.argv[2], int(sys.argv[3]))
