"""Worlds of an environment on one device and on several of this machine: steps and gradients, shared out by sharding.

    python -m benchmarks.sharded_worlds [cart_pole|ant|quadruped] [worlds] [devices]

Each number of devices runs in a process of its own, with as many host devices as said. A call is a scan of 20 steps of
`Episodes`, or the gradient of the summed reward by all actions. Printed are the medians and the least of 7 calls in µs
a world and step, by the clock, and the time of all cores together, which shows what a busy machine hides.
"""

import functools
import os
import subprocess
import sys
import time

STEPS, CALLS = 20, 7


def measure(robot: str, worlds: int) -> None:
    """Prints the times on all devices of this process."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax.sharding import AxisType, NamedSharding, PartitionSpec

    from mbjax.environments import Episodes, EpisodeState

    from .environment_step import environment

    episodes = Episodes(environment(robot), 500, keep_last=False)
    devices = len(jax.devices())
    mesh = jax.make_mesh((devices,), ("worlds",), axis_types=(AxisType.Auto,))
    keys = jax.device_put(jax.random.split(jax.random.key(0), worlds), NamedSharding(mesh, PartitionSpec("worlds")))
    states = jax.jit(jax.vmap(episodes.reset))(keys)
    actions = jax.random.uniform(jax.random.key(1), (STEPS, worlds, episodes.environment.action_size), minval=-1.0)
    actions = jax.device_put(actions, NamedSharding(mesh, PartitionSpec(None, "worlds")))

    def advanced(states: EpisodeState, actions: jax.Array) -> tuple[EpisodeState, jax.Array]:
        def step(states: EpisodeState, actions: jax.Array) -> tuple[EpisodeState, jax.Array]:
            states = jax.vmap(episodes.step)(states, actions)
            return states, states.env.reward

        return jax.lax.scan(step, states, actions)

    def reward(actions: jax.Array, states: EpisodeState) -> jax.Array:
        return jnp.sum(advanced(states, actions)[1])

    functions = {
        "steps": functools.partial(jax.jit(advanced), states, actions),
        "gradient": functools.partial(jax.jit(jax.grad(reward)), actions, states),
    }
    for name, function in functions.items():
        jax.block_until_ready(function())
        wall, used = [], []
        for _ in range(CALLS):
            began, spent = time.perf_counter(), time.process_time()
            jax.block_until_ready(function())
            wall.append(1e6 * (time.perf_counter() - began) / (STEPS * worlds))
            used.append(1e6 * (time.process_time() - spent) / (STEPS * worlds))
        print(
            f"{robot}, {worlds} worlds, {devices} devices, {name}: {np.median(wall):.2f} ({min(wall):.2f}) µs by the "
            f"clock, {min(used):.2f} µs of all cores",
            flush=True,
        )


def main() -> None:
    """Runs one device, then several, each in a process."""
    robot = sys.argv[1] if len(sys.argv) > 1 else "cart_pole"
    worlds, devices = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((2, 1024), (3, 2)))
    if os.environ.get("MBJAX_SHARDED_WORLDS"):
        measure(robot, worlds)
        return
    for number in (1, devices):
        flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={number}"
        variables = os.environ | {"XLA_FLAGS": flags, "MBJAX_SHARDED_WORLDS": "1"}
        subprocess.run([sys.executable, "-m", "benchmarks.sharded_worlds", *sys.argv[1:]], check=True, env=variables)


if __name__ == "__main__":
    main()
