"""What do all cores of a CPU give? Batch 4096 on one core, and shared out by `jax.shard_map` to a device per core."""

import os
from collections.abc import Iterator
from typing import Any

from .peers import load_mbjax
from .results import Table
from .script import DTYPES, Options, compile_seconds, microseconds, precision, run_script, table_by_robot, timed

BATCH = 4096
QUESTIONS = {
    "forward_dynamics": "Forward dynamics",
    "gradient": "Its vjp by q, v and tau",
    "inverse_dynamics": "Inverse dynamics",
    "mass_matrix": "Mass matrix",
    "body_poses": "Poses of all bodies",
}


def records(options: Options) -> Iterator[dict]:
    import jax

    from mbjax.command_line import questions

    batch = 32 if options.quick else BATCH
    for robot in options.robots:
        for dtype in DTYPES:
            with precision(dtype):
                model = load_mbjax(robot, dtype)
                worlds = questions.random_worlds(model, batch)
                for name in QUESTIONS:
                    function, args = questions.QUESTIONS[name].program(model, worlds)
                    cores = len(jax.devices())
                    ways = {"one core": (function, args), f"{cores} cores": shared_out(function, args)}
                    for title, program in ways.items():
                        keys = {"robot": robot.name, "question": name, "label": f"{dtype}, {title}", "batch": batch}
                        yield timed(keys, program, batch, options.effort)


def shared_out(function: Any, args: Any) -> tuple[Any, Any]:
    """The function of all worlds, of which each device has its share, and its arguments there."""
    import jax
    from jax.sharding import NamedSharding, PartitionSpec

    share = PartitionSpec("worlds")
    cores = jax.make_mesh((len(jax.devices()),), ("worlds",))
    of_shares = jax.shard_map(function, mesh=cores, in_specs=share, out_specs=share)
    return of_shares, jax.device_put(args, NamedSharding(cores, share))


def tables(records: list[dict]) -> list[Table]:
    found = []
    for name, title in QUESTIONS.items():
        rows = [r for r in records if r.get("question") == name]
        note = "µs per evaluation: median [least–upper quartile]."
        found.append(table_by_robot(f"{title}, batch {BATCH}", rows, microseconds, note))
    compiled = [r for r in records if "trace_s" in r and r["question"] == "forward_dynamics"]
    found.append(table_by_robot("Compile time, forward dynamics", compiled, compile_seconds))
    return found


if __name__ == "__main__":
    import jax

    jax.config.update("jax_num_cpu_devices", os.cpu_count())
    run_script("cores", __doc__, records)
