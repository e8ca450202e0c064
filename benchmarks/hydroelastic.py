"""Hydroelastic contact beside Drake and beside contact at points: compile, one world, a batch.

    python -m benchmarks.hydroelastic [--worlds 1024] [--steps 100]

Scenes are those of the tests: a ball that rolls, a gripper that lifts a box. Times are of the processor, in f64, for
a step of one world in a rollout; compile in processor seconds, of the rollout and of the gradient of its end by the
start.
"""

import argparse
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
from pydrake.systems.analysis import Simulator

import mbjax
from tests.contact.hydroelastic_scenes import DT, Twins, set_in_drake, twins_of

from .measure import processor_seconds

SCENES = ("rolling", "lifted")
REPEATS = 3


def rollout_of(twins: Twins, steps: int) -> Callable:
    """From a state to the positions after some steps under the scene's forces."""
    inputs = mbjax.Inputs(applied_generalized_force=jnp.asarray(twins.tau))
    return lambda state: mbjax.rollout(twins.model, state, inputs, num_steps=steps).q[-1]


def seconds_in_drake(twins: Twins, steps: int) -> float:
    """Processor seconds of these steps in Drake."""
    simulator = Simulator(twins.diagram)
    context = twins.plant.GetMyMutableContextFromRoot(simulator.get_mutable_context())
    set_in_drake(twins, context, twins.state.q, twins.state.v)
    simulator.Initialize()
    start = time.process_time()
    simulator.AdvanceTo(steps * DT)
    return time.process_time() - start


def with_worlds(state: mbjax.State, worlds: int) -> mbjax.State:
    """The state in worlds that differ a little."""
    many = jax.tree.map(lambda x: jnp.broadcast_to(x, (worlds, *x.shape)), state)
    return mbjax.State(many.q + 1e-5 * jax.random.normal(jax.random.key(0), many.q.shape), many.v, many.time)


def report(scene: str, contact_model: str, worlds: int, steps: int) -> None:
    """Prints the row of a scene."""
    twins = twins_of(scene, contact_model=contact_model)
    run = rollout_of(twins, steps)
    one, compiled = processor_seconds(jax.jit(run).lower(twins.state).compile)
    slope = jax.jit(jax.grad(lambda state: jnp.sum(run(state))))
    _, compiled_slope = processor_seconds(slope.lower(twins.state).compile)
    alone = min(processor_seconds(one, twins.state)[1] for _ in range(REPEATS)) / steps
    drake = seconds_in_drake(twins, steps) / steps
    many = with_worlds(twins.state, worlds)
    batch, compiled_batch = processor_seconds(jax.jit(jax.vmap(run)).lower(many).compile)
    jax.block_until_ready(batch(many))
    together = processor_seconds(batch, many)[1] / steps / worlds
    compiles = f"{compiled:.1f}, {compiled_slope:.1f}, {compiled_batch:.1f}"
    times = f"{1e6 * alone:.0f} | {1e6 * together:.0f} | {1e6 * drake:.0f}"
    print(f"| {scene} | {contact_model} | {compiles} | {times} |", flush=True)


def main() -> None:
    """Prints a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=1024)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("| scene | contact | compile: rollout, gradient, batch | alone, µs | in the batch, µs | Drake, µs |")
    print("|---|---|---|---|---|---|")
    for scene in SCENES:
        for contact_model in ("hydroelastic_with_fallback", "point"):
            report(scene, contact_model, options.worlds, options.steps)


if __name__ == "__main__":
    main()
