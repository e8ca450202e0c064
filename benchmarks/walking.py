"""How the bundled quadruped walks at commanded velocities, here and in MuJoCo's C, by a policy that was trained here.

    python -m benchmarks.policies ppo quadruped 1500000     # trains it, and writes quadruped.npz
    python -m benchmarks.walking [POLICY.npz]               # 256 commands of 20 s each
    python -m benchmarks.walking --commands 64 --film walk.html

Commands are drawn evenly from ±0.8 m/s forward, ±0.8 m/s sideward and ±1 rad/s. The rows are standing still, the trot
in open loop, the policy as it was trained (steps of 10 ms), under pushes and noise, in steps of 4 and 2 ms, and in
MuJoCo with steps of 2 ms. Each prints the mean error of velocity at every step after the first second, over strides,
and how many fell. The film has one command, mbjax and MuJoCo side by side.
"""

import argparse
import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import mbjax
from mbjax.environments import (
    QuadrupedVelocity,
    VelocityTracking,
    evaluate_velocity,
    velocity_commands,
)
from mbjax.learners.network_policy import NetworkPolicy
from mbjax.learners.walk_in_mujoco import evaluate_velocity_in_mujoco

from .policies import DISTURBED, WALKING, quadruped

BESIDE = 1.0  # m between the robots of the film


def still(observation: jax.Array) -> jax.Array:
    """No action."""
    return jnp.zeros((*observation.shape[:-1], 12))


def rows(policy: NetworkPolicy) -> dict[str, tuple[Callable, QuadrupedVelocity, Any]]:
    """What is measured: a function, an environment and a policy."""
    env = QuadrupedVelocity(quadruped())
    assert env.trot is not None
    standing = dataclasses.replace(env, trot=dataclasses.replace(env.trot, lift=0.0, share=0.0))
    found: dict[str, tuple[Callable, QuadrupedVelocity, Any]] = {
        "standing still": (evaluate_velocity, standing, still),
        "trot in open loop": (evaluate_velocity, env, still),
        "policy": (evaluate_velocity, env, policy),
        "policy, pushes and noise": (evaluate_velocity, QuadrupedVelocity(quadruped(), **DISTURBED), policy),
    }
    for time_step, substeps in ((0.004, 5), (0.002, 10)):
        fine = QuadrupedVelocity(quadruped(time_step), substeps=substeps)
        found[f"policy, steps of {1e3 * time_step:.0f} ms"] = evaluate_velocity, fine, policy
    found["policy in MuJoCo"] = evaluate_velocity_in_mujoco, env, policy.in_numpy()
    return found


def film(here: VelocityTracking, there: VelocityTracking, path: pathlib.Path) -> None:
    """One page of the first robot of both."""
    both = {}
    for number, (name, found) in enumerate({"mbjax": here, "MuJoCo": there}.items()):
        states = jax.tree.map(lambda x: x[0], found.states)
        both[name] = dataclasses.replace(states, q=states.q.at[:, 5].add(-number * BESIDE))
    mbjax.show(QuadrupedVelocity(quadruped()).model, both, contact_forces=False).save(path)


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walking")
    parser.add_argument("policy", nargs="?", type=pathlib.Path, default=WALKING)
    parser.add_argument("--commands", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs="*", help="rows, by their names")
    parser.add_argument("--film", type=pathlib.Path, help="an HTML file to write, of the first command")
    options = parser.parse_args()
    found = {}
    for name, (measure, env, policy) in rows(NetworkPolicy.load(options.policy)).items():
        if options.only and name not in options.only:
            continue
        commands = velocity_commands(env, jax.random.key(5), options.commands)
        began = time.process_time()
        found[name] = measure(env, policy, commands, jax.random.key(6), options.seconds)
        print(f"{name}: {found[name]} ({time.process_time() - began:.0f} s of the processor)", flush=True)
    if options.film:
        film(found["policy"], found["policy in MuJoCo"], options.film)


if __name__ == "__main__":
    main()
