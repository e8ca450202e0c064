"""Linearizations along a trajectory: `linearize` beside `jax.jacrev` and `jax.jacfwd` of the step.

    python -m benchmarks.linearization [--states 250]

The bundled arm in f64, at random states, with its limits, friction and damping; the least of ten runs.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

import mbjax
from mbjax import trajectory_optimization as to


def by_autodiff(differentiate: Callable) -> Callable:
    """A and B of every state by JAX's derivative of the step."""

    def one(model: mbjax.MultibodyModel, state: mbjax.State, effort: jax.Array) -> tuple:
        def after(q: jax.Array, v: jax.Array, effort: jax.Array) -> jax.Array:
            reached = mbjax.step(model, mbjax.State(q, v, state.time), effort)[0]
            return jnp.concatenate([reached.q, reached.v])

        return differentiate(after, argnums=(0, 1, 2))(state.q, state.v, effort)

    return jax.vmap(one, (None, 0, 0))


def main() -> None:
    """Prints a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--states", type=int, default=250)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    model = mbjax.load("arm", time_step=0.002)
    keys = jax.random.split(jax.random.key(0), options.states)
    states = jax.vmap(lambda key: mbjax.random_state_within_limits(model, key))(keys)
    efforts = jax.random.normal(jax.random.key(1), (options.states, model.num_actuators))
    print("| way | ms | to compile, s |\n|---|---|---|")
    for name, function in (
        ("linearize", lambda *args: tuple(to.linearize(*args))),
        ("jax.jacrev", by_autodiff(jax.jacrev)),
        ("jax.jacfwd", by_autodiff(jax.jacfwd)),
    ):
        begin = time.perf_counter()
        program = jax.jit(function).lower(model, states, efforts).compile()
        compile_seconds, least = time.perf_counter() - begin, float("inf")
        for _ in range(10):
            begin = time.perf_counter()
            jax.block_until_ready(program(model, states, efforts))
            least = min(least, time.perf_counter() - begin)
        print(f"| `{name}` | {1e3 * least:.2f} | {compile_seconds:.1f} |", flush=True)


if __name__ == "__main__":
    main()
