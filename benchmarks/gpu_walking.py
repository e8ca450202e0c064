"""How soon the quadruped walks on one accelerator: brax's PPO with thousands of worlds, and rows as they come.

    python -m benchmarks.gpu_walking                        # 4096 worlds, 30 million steps
    python -m benchmarks.gpu_walking --robot go1            # Unitree's, with the files of Playground's wheel
    python -m benchmarks.gpu_walking --worlds 8 --unrolls 8 --steps 128 --rows 1 --commands 2 --seconds 1.6   # it runs

The first rows are steps a second of the bare physics and of the environment; each further row is the policy as far as
it is trained: steps, minutes since the start (compilation included, and without it), the return of an episode, and over
256 commands the error of velocity and the share that fell within 20 s. It ends at the first policy with at most
0.15 m/s and 5 % of falls, unless `--all` asks for every step. `--policy FILE.npz` keeps the last one.
"""

import argparse
import functools
import importlib
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from mbjax.environments import (
    Episodes,
    QuadrupedVelocity,
    VelocityTracking,
    as_brax,
    evaluate_velocity,
    velocity_commands,
)
from mbjax.learners.network_policy import NetworkPolicy

from .policies import TASKS, WALKERS, settings_of, walker

ERROR, FALLS = 0.15, 0.05  # m/s and a share: what counts as walking
UNROLL, MINIBATCHES, CHUNK = 16, 8, 50  # steps; batches of an update; steps of a timed call


class WalksNowError(Exception):
    """Ends the training: the aim is reached."""


def settings(robot: str, steps: int, worlds: int, unrolls: int, rows: int) -> dict[str, Any]:
    """PPO as on a CPU, but with larger batches: an update has `unrolls` of 16 steps each."""
    own = {
        "num_envs": worlds,
        "unroll_length": UNROLL,
        "batch_size": unrolls // MINIBATCHES,
        "num_minibatches": MINIBATCHES,
        "num_evals": rows + 1,
        "num_eval_envs": min(worlds, 256),
    }
    return settings_of("ppo", robot, steps) | own


def steps_a_second(env: QuadrupedVelocity, worlds: int) -> dict[str, float]:
    """Steps of the environment a second of wall, by the bare physics and by episodes."""
    episodes = Episodes(env, TASKS["quadruped"])
    states = jax.jit(jax.vmap(episodes.reset))(jax.random.split(jax.random.key(0), worlds))
    actions = jax.random.uniform(jax.random.key(1), (worlds, env.action_size), minval=-1.0, maxval=1.0)

    def bare(physics: Any) -> Any:
        def one(state: Any, memory: Any, action: jax.Array) -> Any:
            return env.moved(state, env.inputs(state, memory, action))[0]

        return jax.vmap(one)(physics, states.env.memory, actions)

    found = {}
    for name, function, first in (
        ("bare physics", bare, states.env.physics),
        ("environment", lambda states: jax.vmap(episodes.step)(states, actions), states),
    ):
        found[name] = CHUNK * worlds / seconds_of(function, first)
    return found


def seconds_of(function: Callable, first: Any) -> float:
    """The least seconds of a scan of steps, of three runs after one that compiles."""
    run = jax.jit(lambda x: jax.lax.scan(lambda x, _: (function(x), None), x, None, CHUNK)[0])
    times = []
    for _ in range(4):
        began = time.perf_counter()
        jax.block_until_ready(run(first))
        times.append(time.perf_counter() - began)
    return min(times[1:])


class Rows:
    """Prints the policy's row at each of PPO's evaluations, and ends the training where it walks."""

    def __init__(self, options: argparse.Namespace):
        self.options, self.began = options, time.perf_counter()
        self.env = walker(options.robot)
        self.commands = velocity_commands(self.env, jax.random.key(5), options.commands)
        self.last: NetworkPolicy | None = None

    def keep(self, _: int, __: Any, params: Any) -> None:
        """Takes the policy of now."""
        self.last = NetworkPolicy.from_brax(params)
        if self.options.policy:
            self.last.save(self.options.policy)

    def tell(self, steps: int, metrics: dict[str, Any]) -> None:
        """Prints a row; brax hands the policy over before."""
        found: VelocityTracking | None = None
        trained = float(metrics.get("training/walltime", 0.0)) / 60.0
        if self.last is not None:
            found = evaluate_velocity(self.env, self.last, self.commands, jax.random.key(6), self.options.seconds)
        minutes = (time.perf_counter() - self.began) / 60.0
        reward = float(metrics["eval/episode_reward"])
        print(
            f"{steps:10d} steps, {minutes:6.2f} min ({trained:6.2f} min of training): return {reward:7.2f}; "
            f"{found or 'no policy yet'}",
            flush=True,
        )
        if found is not None and not self.options.all and walks(found):
            raise WalksNowError


def walks(found: VelocityTracking) -> bool:
    """Whether the errors and the falls are within the aim."""
    return float(jnp.nanmean(found.velocity_error)) <= ERROR and float(jnp.mean(found.fell)) <= FALLS


def main(arguments: Sequence[str] | None = None) -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gpu_walking")
    parser.add_argument("--robot", choices=tuple(WALKERS), default="quadruped")
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--steps", type=int, default=30_000_000)
    parser.add_argument("--unrolls", type=int, default=8192, help="of 16 steps each, in an update of the policy")
    parser.add_argument("--rows", type=int, default=20, help="evaluations during training")
    parser.add_argument("--commands", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--all", action="store_true", help="go on once it walks")
    parser.add_argument("--policy", type=pathlib.Path, help="an .npz file for the policy")
    options = parser.parse_args(arguments)
    if options.unrolls % MINIBATCHES or options.unrolls % options.worlds:
        parser.error(f"--unrolls must be a multiple of {MINIBATCHES} and of the worlds, got {options.unrolls}")
    print(f"{options.robot} on {jax.devices()[0].device_kind}, {options.worlds} worlds", flush=True)
    env = walker(options.robot, is_disturbed=True)
    for name, number in steps_a_second(env, options.worlds).items():
        print(f"{name}: {number:.3g} control steps a second", flush=True)
    train = importlib.import_module("brax.training.agents.ppo.train").train
    rows = Rows(options)
    ppo = functools.partial(
        train,
        episode_length=TASKS[options.robot],
        seed=options.seed,
        normalize_observations=True,
        deterministic_eval=True,
        progress_fn=rows.tell,
        policy_params_fn=rows.keep,
    )
    try:
        ppo(as_brax(env), **settings(options.robot, options.steps, options.worlds, options.unrolls, options.rows))
    except WalksNowError:
        print(f"It walks: at most {ERROR} m/s and {FALLS:.0%} of falls.", flush=True)


if __name__ == "__main__":
    main()
