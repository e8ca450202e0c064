"""How much temporary memory does a program need, per world and for the gradient of a long rollout?

Programs of 4096 worlds, f32, compiled and not run; then the gradient of 1000 steps with respect to all generalized
forces, f64, plain and checkpointed.
"""

import dataclasses
from collections.abc import Iterator

from .forward_dynamics import attempt
from .measure import compile_apart, significant, with_prefix
from .peers import load_mbjax
from .results import Table
from .robots import Robot
from .rollout_memory import CHECKPOINTS, STEPS, TIME_STEP, measure_gradients
from .script import Options, compile_seconds, outcome, precision, run_script, table_by_robot

BATCH = 4096


def records(options: Options) -> Iterator[dict]:
    from mbjax.command_line.questions import QUESTIONS

    batch = 64 if options.quick else BATCH
    for robot in options.robots:
        with precision("f32"):
            for name in QUESTIONS:
                keys = {"robot": robot.name, "label": name, "batch": batch}
                yield outcome(keys, compile_question, robot, name, batch)
        with precision("f64"):
            yield from rollout_records(robot, options)


def compile_question(robot: Robot, name: str, batch: int) -> dict:
    """Bytes of arguments, results and the rest, of all worlds."""
    from mbjax.command_line.questions import QUESTIONS, random_worlds

    model = load_mbjax(robot, "f32", TIME_STEP)
    function, args = QUESTIONS[name].program(model, random_worlds(model, batch))
    compiled, compilation = compile_apart(function, args)
    memory = compiled.memory_analysis()
    return {
        **dataclasses.asdict(compilation),
        "argument_bytes": getattr(memory, "argument_size_in_bytes", None),
        "output_bytes": getattr(memory, "output_size_in_bytes", None),
    }


def rollout_records(robot: Robot, options: Options) -> Iterator[dict]:
    import jax

    import mbjax

    steps = 16 if options.quick else STEPS
    model = load_mbjax(robot, "f64", TIME_STEP)
    forces = 0.1 * jax.random.normal(jax.random.key(1), (steps, model.num_velocities), model.dtype)
    inputs = mbjax.Inputs(applied_generalized_force=forces)
    found = attempt(lambda: measure_gradients(model, inputs, steps, options.effort))
    keys = {"robot": robot.name, "steps": steps}
    if isinstance(found, str):
        found = [{"checkpoint": name, "status": "failed", "detail": found} for name, _ in CHECKPOINTS]
    yield from ({**keys, "status": "measured", **record} for record in found)


def tables(records: list[dict]) -> list[Table]:
    programs = [r for r in records if "label" in r]
    rollouts = [{**r, "label": r["checkpoint"]} for r in records if "checkpoint" in r]
    batch = programs[0]["batch"] if programs else BATCH
    steps = rollouts[0]["steps"] if rollouts else STEPS
    return [
        table_by_robot(
            f"Temporary memory per world, batch of {batch}, f32", programs, per_world,
            "Besides arguments and results: XLA's own account of the compiled program; then arguments + results.",
        ),
        table_by_robot(
            f"Gradient of a rollout of {steps} steps with respect to all generalized forces, f64", rollouts, of_rollout,
            "Temporary memory; run time; difference from plain; compile time, s.",
        ),
    ]  # fmt: skip


def per_world(record: dict) -> str:
    sizes = [record[key] for key in ("temp_bytes", "argument_bytes", "output_bytes")]
    temp, arguments, results = ("?" if x is None else with_prefix(x / record["batch"], "B") for x in sizes)
    return f"{temp}; {arguments} + {results}"


def of_rollout(record: dict) -> str:
    temp = "unknown" if record["temp_bytes"] is None else with_prefix(record["temp_bytes"], "B")
    run = f"{significant(record['median'] * 1e3)} ms"
    return f"{temp}; {run}; {record['difference']:.1e}; {compile_seconds(record)}"


if __name__ == "__main__":
    run_script("memory", __doc__, records)
