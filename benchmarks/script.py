"""What scripts of one question share: options, a JSON record a line, tables with a column per robot."""

import argparse
import contextlib
import dataclasses
import json
from collections.abc import Callable, Iterator
from typing import Any

from .forward_dynamics import attempt
from .measure import FULL, QUICK, Effort, device_name, measure, per_evaluation, significant, warm_up_jax
from .peers import PEERS
from .results import Table
from .robots import ALL_ROBOTS, ROBOTS, Robot

DTYPES = ("f32", "f64")


@dataclasses.dataclass(frozen=True)
class Options:
    """Common to all scripts; `quick` also means small sizes, to see that a script works."""

    robots: tuple[Robot, ...]
    quick: bool
    peers: tuple[str, ...]

    @property
    def effort(self) -> Effort:
        return QUICK if self.quick else FULL


def run_script(
    name: str, description: str | None, records: Callable[[Options], Iterator[dict]], peers: tuple[str, ...] = ()
) -> None:
    """Reads the options and prints the device, then every record of `records` as soon as it is there."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks.{name}", description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--robots", nargs="+", choices=ALL_ROBOTS, default=list(ROBOTS))
    parser.add_argument("--quick", action="store_true", help="small sizes, few repetitions: to see that it works")
    if peers:
        parser.add_argument("--peers", nargs="+", choices=PEERS, default=list(peers))
    parser.add_argument("--no-queue", action="store_true", help="a call on a CPU computes in the thread that calls")
    parsed = parser.parse_args()
    import jax

    jax.config.update("jax_enable_compilation_cache", False)
    jax.config.update("jax_cpu_enable_async_dispatch", not parsed.no_queue)
    warm_up_jax()
    print(json.dumps({"status": "device", "device": device_name()}), flush=True)
    robots = tuple(ALL_ROBOTS[name] for name in parsed.robots)
    for record in records(Options(robots, parsed.quick, tuple(getattr(parsed, "peers", ())))):
        print(json.dumps(record), flush=True)


def precision(dtype: str) -> contextlib.AbstractContextManager:
    """JAX as a user of this dtype has it."""
    import jax

    return jax.enable_x64(dtype == "f64")


def outcome(keys: dict[str, Any], action: Callable[..., dict], *args: Any) -> dict:
    """A record of what `action(*args)` measured, or of why it could not: a failure is a row, not the end of the run."""
    result = attempt(lambda: action(*args))
    if isinstance(result, str):
        return {**keys, "status": "failed", "detail": result}
    return {**keys, "status": "measured", **result}


def timed(keys: dict[str, Any], program: tuple[Callable, tuple], worlds: int, effort: Effort) -> dict:
    """A record of compiling and running a function with arguments, per world; one world as a user calls it."""
    function, args = program

    def measure_it() -> dict:
        return per_evaluation(measure(function, args, effort, through_jit=worlds == 1), worlds)

    return outcome(keys, measure_it)


def table_by_robot(title: str, records: list[dict], cell: Callable[[dict], str], note: str = "") -> Table:
    """A row per "label", a column per robot, in the order of the records."""
    records = [r for r in records if r["status"] != "device"]
    robots = list(dict.fromkeys(r["robot"] for r in records))
    found = {(r["label"], r["robot"]): r for r in records}
    rows = []
    for label in dict.fromkeys(r["label"] for r in records):
        cells = [found.get((label, robot)) for robot in robots]
        rows.append((label, *("–" if r is None else r["status"] if failed(r) else cell(r) for r in cells)))
    return Table(title, ("", *(ALL_ROBOTS[name].title for name in robots)), tuple(rows), note)


def failed(record: dict) -> bool:
    return record["status"] not in ("measured", "device")


def microseconds(record: dict) -> str:
    """Median [least–upper quartile]."""
    median, low, high = (significant(record[key] * 1e6) for key in ("median", "minimum", "upper_quartile"))
    return f"{median} [{low}–{high}]"


def compile_seconds(record: dict) -> str:
    """In all, and its phases; nothing for what is not compiled here."""
    if "trace_s" not in record:
        return "–"
    phases = " + ".join(f"{record[key]:.2f}" for key in ("trace_s", "lower_s", "compile_s"))
    return f"{record['compile_total_s']:.2f} ({phases})"
