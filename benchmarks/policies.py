"""Swinging up a cart-pole: stock brax PPO beside the short-horizon actor–critic, returns over time on one machine.

    python -m benchmarks.policies ppo 3000000     # steps
    python -m benchmarks.policies gradient 400    # updates

Each prints steps, seconds since it began, compilation included, and the mean return of an episode without exploration
(128 worlds, 250 steps, at most 250).
"""

import functools
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import mbjax
from mbjax.environments import CartPoleSwingUp, Episodes, as_brax

LENGTH = 250


def cart_pole() -> CartPoleSwingUp:
    return CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02))


def restore_what_brax_calls() -> None:
    """Gives JAX back a function that brax 0.14.2 calls and JAX 0.10 has no more: copies of a tree, one a device."""

    def device_put_replicated(tree: Any, devices: list) -> Any:
        sharding = NamedSharding(Mesh(np.array(devices), "devices"), PartitionSpec("devices"))
        return jax.tree.map(lambda x: jax.device_put(jnp.stack([x] * len(devices)), sharding), tree)

    jax.device_put_replicated = device_put_replicated  # pyright: ignore[reportAttributeAccessIssue]


def by_ppo(steps: int) -> None:
    """brax's PPO with its own wrappers; its networks as wide as the other method's, which a CPU trains sooner."""
    restore_what_brax_calls()
    from brax.training.agents.ppo.networks import make_ppo_networks
    from brax.training.agents.ppo.train import train

    began = time.perf_counter()

    def tell(steps: int, metrics: dict) -> None:
        found = float(metrics["eval/episode_reward"])
        print(f"{steps:8d} steps, {time.perf_counter() - began:6.1f} s: return {found:7.2f}", flush=True)

    train(
        as_brax(cart_pole()),
        num_timesteps=steps,
        episode_length=LENGTH,
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
        num_evals=16,
        deterministic_eval=True,
        progress_fn=tell,
    )


def by_gradient(updates: int) -> None:
    """The file in examples/."""
    sys.path.insert(0, "examples")
    from short_horizon_actor_critic import Settings, train

    train(Episodes(cart_pole(), length=LENGTH), Settings(), updates)


if __name__ == "__main__":
    {"ppo": by_ppo, "gradient": by_gradient}[sys.argv[1]](int(sys.argv[2]))
