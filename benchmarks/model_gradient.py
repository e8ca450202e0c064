"""What does a gradient with respect to every leaf of the model take, batch 4096?

Forward dynamics; its vjp by (q, v, tau); its gradient by all masses, inertias, frames, gains and so on, with one model
shared by all worlds (system identification) and with a model per world (domain randomization).
"""

from collections.abc import Callable, Iterator
from typing import Any

from .measure import with_prefix
from .peers import load_mbjax
from .results import Table
from .robots import Robot
from .script import DTYPES, Options, compile_seconds, microseconds, precision, run_script, table_by_robot, timed

BATCH = 4096


def records(options: Options) -> Iterator[dict]:
    batch = 32 if options.quick else BATCH
    for robot in options.robots:
        for dtype in DTYPES:
            with precision(dtype):
                for label, program, num_leaves in programs(robot, dtype, batch):
                    keys = {"robot": robot.name, "label": f"{label}, {dtype}", "batch": batch}
                    yield timed({**keys, "num_leaves": num_leaves}, program, batch, options.effort)


def programs(robot: Robot, dtype: str, batch: int) -> Iterator[tuple[str, tuple[Callable, tuple], int]]:
    """Label, function and arguments, and how many numbers the model has."""
    import jax
    import jax.numpy as jnp

    from mbjax.command_line.questions import QUESTIONS, model_gradient, random_worlds

    model = load_mbjax(robot, dtype)
    worlds = random_worlds(model, batch)
    num_leaves = sum(leaf.size for leaf in jax.tree.leaves(model))
    yield "forward dynamics", QUESTIONS["forward_dynamics"].program(model, worlds), num_leaves
    yield "vjp by q, v, tau", QUESTIONS["gradient"].program(model, worlds), num_leaves
    yield "gradient by one shared model", QUESTIONS["model_gradient"].program(model, worlds), num_leaves
    models: Any = jax.tree.map(lambda x: jnp.broadcast_to(x, (batch, *x.shape)), model)
    yield "gradient by a model per world", (jax.vmap(model_gradient), (models, worlds)), num_leaves


def tables(records: list[dict]) -> list[Table]:
    measured = [r for r in records if r["status"] == "measured"]
    batch = measured[0]["batch"] if measured else BATCH
    leaves = ", ".join(f"{robot} {count}" for robot, count in {r["robot"]: r["num_leaves"] for r in measured}.items())
    return [
        table_by_robot(
            f"Gradients of forward dynamics, batch of {batch}", records, microseconds,
            f"µs per evaluation: median [least–upper quartile]. Numbers in a model: {leaves}.",
        ),
        table_by_robot("Their compile time", records, compile_seconds, "Seconds: trace + lower + compile."),
        table_by_robot("Their temporary memory per world", records, memory_per_world),
    ]  # fmt: skip


def memory_per_world(record: dict) -> str:
    return "unknown" if record["temp_bytes"] is None else with_prefix(record["temp_bytes"] / record["batch"], "B")


if __name__ == "__main__":
    run_script("model_gradient", __doc__, records)
