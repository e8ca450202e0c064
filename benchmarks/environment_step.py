"""A step of an environment (physics, observation, reward, restarts) beside the bare step of the same model.

    python -m benchmarks.environment_step [cart_pole|ant|quadruped] [worlds] [--processor] [--playground PYTHON]

Both are scans of 20 steps under the same efforts, on one device. The times are the medians and the least of 7 calls,
taken in turns, in µs a world and step: on the clock, or with `--processor` of the processor, for machines that others
use too (with `taskset -c 0`, as threads that wait count). `--playground` runs MuJoCo Playground's cart-pole on MJX
afterwards, by the Python of an environment of its own that has it.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np

import mbjax
from mbjax.environments import AbstractEnvironment, Ant, CartPoleSwingUp, Episodes, QuadrupedVelocity

STEPS, CALLS = 20, 7


def environment(name: str) -> AbstractEnvironment:
    """The task by its robot."""
    if name == "ant":
        found = importlib.util.find_spec("gymnasium")
        assert found is not None
        file = Path(str(found.origin)).parent / "envs/mujoco/assets/ant.xml"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mbjax.ModelWarning)
            return Ant(mbjax.load(file, time_step=0.01, contact_model="point", on_unsupported="warn"))
    if name == "quadruped":
        model = mbjax.load(name, time_step=0.01, ground=0.8, contact_pairs=[("*foot*", "ground")])
        return QuadrupedVelocity(mbjax.set_controller_gains(model, 60.0, 1.5))
    return CartPoleSwingUp(mbjax.load("cart_pole", time_step=0.02))


def microseconds(functions: dict[str, tuple[Callable, tuple]], worlds: int) -> dict[str, tuple[float, float]]:
    """Median and least time of each function, called in turns."""
    times: dict[str, list[float]] = {name: [] for name in functions}
    for name, (function, arguments) in functions.items():
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        print(f"{name}: compiled in {time.perf_counter() - began:.1f} s", flush=True)
    clock = time.process_time if "--processor" in sys.argv else time.perf_counter
    for _ in range(CALLS):
        for name, (function, arguments) in functions.items():
            began = clock()
            jax.block_until_ready(function(*arguments))
            times[name].append(1e6 * (clock() - began) / (STEPS * worlds))
    return {name: (float(np.median(found)), min(found)) for name, found in times.items()}


def measure(name: str, worlds: int) -> None:
    """Prints the times of both, and their ratio."""
    env = environment(name)
    actions = jax.random.uniform(jax.random.key(1), (STEPS, worlds, env.action_size), minval=-1.0, maxval=1.0)

    def bare(states: Any, memories: Any, actions: jax.Array) -> Any:
        def one(state: mbjax.State, memory: Any, action: jax.Array) -> mbjax.State:
            return env.moved(state, env.inputs(state, memory, action))[0]

        return jax.lax.scan(lambda s, u: (jax.vmap(one)(s, memories, u), None), states, actions)[0]

    functions = {}
    for label, keep_last, same_start, together in (
        ("environment", False, False, False),
        ("environment, last observations kept", True, False, False),
        ("environment, the same starts", False, True, False),
        ("environment, worlds together, none ends", True, False, True),
        ("environment, worlds together, some end", True, False, True),
    ):
        episodes = Episodes(env, 500, keep_last, same_start)
        states = jax.jit(jax.vmap(episodes.reset))(jax.random.split(jax.random.key(0), worlds))

        if label.endswith("some end"):
            steps = jax.random.randint(jax.random.key(2), (worlds,), 0, episodes.length)
            states = eqx.tree_at(lambda x: x.statistics.num_steps, states, steps)
        step_all = episodes.step_worlds if together else jax.vmap(episodes.step)

        def whole(states: Any, actions: jax.Array, step_all: Callable = step_all) -> Any:
            return jax.lax.scan(lambda s, u: (step_all(s, u), None), states, actions)[0]

        if not functions:
            functions["bare step"] = (jax.jit(bare), (states.env.physics, states.env.memory, actions))
        functions[label] = (jax.jit(whole), (states, actions))
    found = microseconds(functions, worlds)
    median, least = found["bare step"]
    for label, (own_median, own_least) in found.items():
        print(
            f"{name}, {worlds} worlds, {label}: {own_median:.2f} ({own_least:.2f}) µs, "
            f"{median / own_median:.0%} ({least / own_least:.0%}) of the bare step's throughput"
        )


def main() -> None:
    """Measures what is asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.environment_step")
    parser.add_argument("robot", nargs="?", default="cart_pole", choices=("cart_pole", "ant", "quadruped"))
    parser.add_argument("worlds", nargs="?", type=int, default=1024)
    parser.add_argument("--processor", action="store_true", help="time of the processor instead of the clock's")
    parser.add_argument("--playground", metavar="PYTHON", help="a Python that has MuJoCo Playground")
    options = parser.parse_args()
    measure(options.robot, options.worlds)
    if options.playground:
        command = [options.playground, "-m", "benchmarks.playground_step", str(options.worlds)]
        variables = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # as its users have it
        subprocess.run(command + ["--processor"] * options.processor, check=True, env=variables)


if __name__ == "__main__":
    main()
