"""What memory and compile time does the gradient of a 1000-step rollout cost, plain and checkpointed?

The seven-joint arm, in float64; the gradient of a cost of the last state with respect to every control. Prints
a JSON record a line.
"""

import argparse
import dataclasses
import json
import sys
from typing import Any

import numpy as np

from .measure import FULL, QUICK, Effort, compile_apart, time_calls, warm_up_jax

STEPS = 1000
TIME_STEP = 1e-3
TARGET_BYTES = {"plain": 5_000_000, "sqrt": 500_000}
CHECKPOINTS = (("plain", None), ("sqrt", "sqrt"))


def measure_arm(steps: int, effort: Effort) -> list[dict]:
    """The arm under efforts of its actuators."""
    import jax

    import mbjax
    from mbjax import reference_models

    model = mbjax.load(reference_models.path("arm"), time_step=TIME_STEP)
    controls = 0.1 * jax.random.normal(jax.random.key(1), (steps, model.num_actuators), model.dtype)
    return measure_gradients(model, mbjax.Inputs(actuation=controls), steps, effort)


def measure_gradients(model: Any, inputs: Any, steps: int, effort: Effort) -> list[dict]:
    """One record per way of checkpointing; `difference` is relative to the plain gradient."""
    import jax
    import jax.numpy as jnp

    import mbjax

    state = mbjax.random_state(model, jax.random.key(0))
    records, plain = [], None
    for name, checkpoint in CHECKPOINTS:

        def cost(inputs: Any, checkpoint: Any = checkpoint) -> Any:
            final = mbjax.rollout(model, state, inputs, checkpoint=checkpoint).final_state
            return jnp.sum(final.q**2) + jnp.sum(final.v**2)

        compiled, compilation = compile_apart(jax.grad(cost), (inputs,))
        gradient = np.concatenate([np.ravel(x) for x in jax.tree.leaves(compiled(inputs))])
        plain = gradient if plain is None else plain
        timing = time_calls(lambda compiled=compiled: jax.block_until_ready(compiled(inputs)), effort)
        records.append(
            {
                "checkpoint": name,
                "steps": steps,
                "num_controls": gradient.size // steps,
                "compile_total_s": compilation.total_s,
                "difference": float(np.abs(gradient - plain).max() / np.abs(plain).max()),
                **dataclasses.asdict(compilation),
                **dataclasses.asdict(timing),
            }
        )
    return records


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rollout_memory", description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args(arguments)
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)
    warm_up_jax()
    for record in measure_arm(options.steps, QUICK if options.quick else FULL):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    sys.exit(main())
