"""What does one world take, f64: forward dynamics and its vjp in an on-device loop, and in one call from Python?

`python -m benchmarks --only one_world` runs this twice: with XLA's defaults, and with the setting of
docs/usage/performance.md that makes a call compute in the thread that called.
"""

import pathlib
import tempfile
from collections.abc import Iterator

from .forward_dynamics import QUESTIONS, Case, measure_peer, write_reference
from .measure import load_average
from .peers import PEERS
from .report import MODE_TITLES, QUESTION_TITLES
from .results import Table
from .script import Options, compile_seconds, microseconds, precision, run_script, table_by_robot

MODES = ("loop1000", "single")
NOTE = "µs per evaluation: median [least–upper quartile]. mbjax's loop is marked by `as_one_kernel`."
DEFAULT_PEERS = ("mbjax", "frax", "pinocchio", "mujoco")


def records(options: Options) -> Iterator[dict]:
    cases = [Case(question, mode, "closed") for mode in MODES for question in QUESTIONS]
    robots = list(options.robots)
    with precision("f64"), tempfile.TemporaryDirectory() as folder:
        reference = pathlib.Path(folder) / "states.npz"
        write_reference(reference, robots)
        for peer in options.peers:
            for record in measure_peer(peer, "f64", robots, cases, reference, options.effort):
                yield {"peer": peer, "load": load_average(), **record}


def tables(records: list[dict]) -> list[Table]:
    found = []
    for question in QUESTIONS:
        for mode in MODES:
            case = str(Case(question, mode, "closed"))
            rows = [{**r, "label": label(r)} for r in records if r.get("case") == case]
            title = f"{QUESTION_TITLES[question]}, one world, {MODE_TITLES[mode]}, f64"
            found.append(table_by_robot(title, rows, microseconds, NOTE))
            compiled = [r for r in rows if "trace_s" in r]
            found.append(table_by_robot(f"Compile time: {title}", compiled, compile_seconds))
    wrong = [{**r, "label": label(r)} for r in records if r["status"] in ("missing", "failed") and "case" not in r]
    return [*found, table_by_robot("Not measured", wrong, lambda r: r["status"])]


def label(record: dict) -> str:
    flags = f", {record['variant']}" if PEERS[record["peer"]].uses_jax and record.get("variant") else ""
    return f"{PEERS[record['peer']].title}{flags}"


if __name__ == "__main__":
    run_script("one_world", __doc__, records, DEFAULT_PEERS)
