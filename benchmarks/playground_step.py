"""MuJoCo Playground's cart-pole on MJX: a step of the environment beside the bare step, as `environment_step` has it.

    PYTHON -m benchmarks.playground_step [worlds] [--processor]

PYTHON is one of an environment of its own with `pip install playground`; mbjax need not be there.
"""

import sys
import time
from typing import Any

import jax
import jax.numpy as jnp

STEPS, CALLS = 20, 7


def measure(worlds: int) -> None:
    """Prints both times and their ratio."""
    from mujoco_playground import dm_control_suite, wrapper  # pyright: ignore[reportMissingImports]
    from mujoco_playground._src import mjx_env  # pyright: ignore[reportMissingImports]

    task = "CartpoleSwingup"
    settings = dm_control_suite.get_default_config(task)
    with settings.unlocked():
        settings.impl = "jax"  # MJX; "warp" needs a GPU
    env = dm_control_suite.load(task, config=settings)
    whole = wrapper.wrap_for_brax_training(env, episode_length=500, action_repeat=1)
    actions = jax.random.uniform(jax.random.key(1), (STEPS, worlds, env.action_size), minval=-1.0, maxval=1.0)
    first = jax.jit(whole.reset)(jax.random.split(jax.random.PRNGKey(0), worlds))

    def step_whole(state: Any, actions: jax.Array) -> Any:
        return jax.lax.scan(lambda s, u: (whole.step(s, u), None), state, actions)[0]

    def step_bare(data: Any, actions: jax.Array) -> Any:
        def one(data: Any, action: jax.Array) -> Any:
            return mjx_env.step(env.mjx_model, data, action, env.n_substeps)

        return jax.lax.scan(lambda s, u: (jax.vmap(one)(s, u), None), data, actions)[0]

    clock = time.process_time if "--processor" in sys.argv else time.perf_counter
    functions = {"bare step": (jax.jit(step_bare), first.data), "environment": (jax.jit(step_whole), first)}
    times: dict[str, list[float]] = {name: [] for name in functions}
    for name, (function, state) in functions.items():
        began = time.perf_counter()
        jax.block_until_ready(function(state, actions))
        print(f"Playground, {name}: compiled in {time.perf_counter() - began:.1f} s", flush=True)
    for _ in range(CALLS):
        for name, (function, state) in functions.items():
            began = clock()
            jax.block_until_ready(function(state, actions))
            times[name].append(1e6 * (clock() - began) / (STEPS * worlds))
    medians = {name: float(jnp.median(jnp.array(found))) for name, found in times.items()}
    for name, found in times.items():
        print(
            f"Playground's {task} on MJX, {worlds} worlds, {name}: {medians[name]:.2f} ({min(found):.2f}) µs, "
            f"{medians['bare step'] / medians[name]:.0%} of the bare step's throughput",
            flush=True,
        )


if __name__ == "__main__":
    numbers = [x for x in sys.argv[1:] if x.isdigit()]
    measure(int(numbers[0]) if numbers else 1024)
