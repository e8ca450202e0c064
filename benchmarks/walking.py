"""How the bundled quadruped walks at commanded velocities, here and in MuJoCo's C, by a policy that was trained here.

    python -m benchmarks.policies ppo quadruped 1500000 --policy benchmarks/quadruped.npz   # trains it
    python -m benchmarks.walking [POLICY.npz …]             # 256 commands of 20 s each; by default quadruped.npz
    python -m benchmarks.walking --commands 64 --film walk.html
    python -m benchmarks.walking seed_*.npz --only policy "policy in MuJoCo"

Commands are drawn evenly from ±0.8 m/s forward, ±0.8 m/s sideward and ±1 rad/s; of the humanoid G1 from ±0.4 m/s,
±0.2 m/s and ±0.5 rad/s. The rows are standing still, the trot in open loop, the policy as it was trained (steps of
10 ms), under pushes and noise, among robots of other masses, friction and gains, in steps of 4 and 2 ms, and in MuJoCo
with steps of 2 ms. Each prints the mean error of velocity at every step after the first second, over strides, and how
many fell; of several policies, such as those of seeds, the median and the worst too. `--robot go1` and `--robot g1` are
Playground's. The film has one command of the first policy, mbjax and MuJoCo side by side.
"""

import argparse
import dataclasses
import pathlib
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax.environments import (
    QuadrupedVelocity,
    VelocityTracking,
    evaluate_velocity,
    velocity_commands,
)
from mbjax.learners.network_policy import NetworkPolicy
from mbjax.learners.walk_in_mujoco import evaluate_velocity_in_mujoco

from .policies import RANDOMIZED, WALKERS, WALKING, walker

BESIDE = 1.0  # m between the robots of the film


def still(environment: QuadrupedVelocity) -> Callable[[jax.Array], jax.Array]:
    """No action, whatever is observed."""
    return lambda observation: jnp.zeros((*observation.shape[:-1], environment.action_size))


def rows(robot: str = "quadruped") -> dict[str, tuple[Callable, QuadrupedVelocity, dict[str, Any]]]:
    """What is measured: a function, an environment and options; names that start with "policy" are of one."""
    env = walker(robot)
    assert env.trot is not None
    standing = dataclasses.replace(env, trot=dataclasses.replace(env.trot, lift=0.0, share=0.0))
    found: dict[str, tuple[Callable, QuadrupedVelocity, dict[str, Any]]] = {
        "standing still": (evaluate_velocity, standing, {}),
        "trot in open loop": (evaluate_velocity, env, {}),
        "policy": (evaluate_velocity, env, {}),
        "policy, pushes and noise": (evaluate_velocity, walker(robot, is_disturbed=True), {}),
        "policy, other robots": (evaluate_velocity, env, {"distributions": RANDOMIZED}),
    }
    for time_step, substeps in ((0.004, 5), (0.002, 10)):
        fine = walker(robot, time_step=time_step, substeps=substeps)
        found[f"policy, steps of {1e3 * time_step:.0f} ms"] = evaluate_velocity, fine, {}
    found["policy in MuJoCo"] = evaluate_velocity_in_mujoco, env, {}
    return found


def measured(
    row: str, robot: str, policies: list[NetworkPolicy], commands: int, seconds: float
) -> list[VelocityTracking]:
    """Prints how each policy walks in a row, and the median and worst of several."""
    measure, env, options = rows(robot)[row]
    acting: list[Any] = list(policies) if row.startswith("policy") else [still(env)]
    found = []
    for policy in acting:
        if measure is evaluate_velocity_in_mujoco:
            policy = policy.in_numpy()
        drawn = velocity_commands(env, jax.random.key(5), commands)
        began = time.process_time()
        found.append(measure(env, policy, drawn, jax.random.key(6), seconds, **options))
        print(f"{row}: {found[-1]} ({time.process_time() - began:.0f} s of the processor)", flush=True)
    if len(found) > 1:
        numbers = np.array(
            [[*map(float, map(jnp.nanmean, errors_of(x))), 100.0 * float(jnp.mean(x.fell))] for x in found]
        )
        for name, row_of in (("median", np.median(numbers, axis=0)), ("worst", np.max(numbers, axis=0))):
            line = "{:.3f} m/s at every step, {:.3f} m/s over strides, {:.3f} rad/s; {:.1f} % fell".format(*row_of)
            print(f"{row}, {name} of {len(found)}: {line}", flush=True)
    return found


def errors_of(found: VelocityTracking) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The three errors, by command."""
    return found.velocity_error, found.stride_error, found.turning_error


def film(robot: str, here: VelocityTracking, there: VelocityTracking, path: pathlib.Path) -> None:
    """One page of the first robot of both."""
    both = {}
    for number, (name, found) in enumerate({"mbjax": here, "MuJoCo": there}.items()):
        states = jax.tree.map(lambda x: x[0], found.states)
        both[name] = dataclasses.replace(states, q=states.q.at[:, 5].add(-number * BESIDE))
    mbjax.show(WALKERS[robot](), both, contact_forces=False).save(path)


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.walking")
    parser.add_argument("policies", nargs="*", type=pathlib.Path, help="by default the bundled robot's, quadruped.npz")
    parser.add_argument("--robot", choices=tuple(WALKERS), default="quadruped")
    parser.add_argument("--commands", type=int, default=256)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--only", nargs="*", help="rows, by their names")
    parser.add_argument("--film", type=pathlib.Path, help="an HTML file to write, of the first command")
    options = parser.parse_args()
    if not options.policies and options.robot != "quadruped":
        parser.error(f"name a policy of the {options.robot}, from python -m benchmarks.policies ppo {options.robot}")
    policies = [NetworkPolicy.load(path) for path in options.policies or [WALKING]]
    names = [name for name in rows(options.robot) if not options.only or name in options.only]
    found = {name: measured(name, options.robot, policies, options.commands, options.seconds)[0] for name in names}
    if options.film:
        film(options.robot, found["policy"], found["policy in MuJoCo"], options.film)


if __name__ == "__main__":
    main()
