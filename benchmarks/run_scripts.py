"""`python -m benchmarks --only NAME ...`: the scripts of one question, each in a process of its own."""

import argparse
import dataclasses
import importlib
import json
import pathlib
import sys
import time

from rich.console import Console

from .measure import load_average, machine
from .processes import environment_of_process, print_tables, run_limited
from .report import markdown_table
from .results import Table


@dataclasses.dataclass(frozen=True)
class Variant:
    """How JAX is set up: as it comes, by options of the script, or on one thread with flags that frax recommends.

    With `keeps_memory` results of more than 32 MB are not written to new pages at every call.
    """

    title: str = ""
    threads: int = 0
    options: tuple[str, ...] = ()
    keeps_memory: bool = False


DEFAULTS, ONE_THREAD = Variant("XLA's defaults"), Variant("one thread", threads=1)
MEMORY_KEPT = Variant("one thread, freed memory kept", threads=1, keeps_memory=True)


@dataclasses.dataclass(frozen=True)
class Script:
    """`benchmarks/NAME.py`. The script runs once with each of the variants."""

    about: str
    takes_peers: bool = False
    takes_robots: bool = True
    variants: tuple[Variant, ...] = (Variant(),)


SCRIPTS = {
    "quantities": Script(
        "inverse dynamics, mass matrix and body poses, batch 4096, beside frax and Pinocchio", takes_peers=True,
        variants=(DEFAULTS, ONE_THREAD, MEMORY_KEPT),
    ),
    "cores": Script("batch 4096 on one core, and shared out to all cores of a CPU by shard_map"),
    "jacobian": Script("the whole Jacobian of forward dynamics, batch 1024, beside Pinocchio's derivatives"),
    "model_gradient": Script("the gradient by every leaf of the model, shared by all worlds and one per world"),
    "chains": Script("compile and run time of chains of 10, 100 and 1000 bodies", takes_robots=False),
    "memory": Script("temporary memory per world, and of the gradient of 1000 steps"),
    "one_world": Script(
        "an on-device loop and a single call from Python, one world, f64", takes_peers=True,
        variants=(DEFAULTS, Variant("calls not queued", options=("--no-queue",))),
    ),
    "constraints": Script("constrained forward dynamics of A1 on four contacts, beside Pinocchio", takes_robots=False),
    "contact": Script(
        "a step with contact of an ant and a humanoid, beside MJX and MuJoCo", takes_robots=False,
        variants=(ONE_THREAD,),
    ),
    "touching_bodies": Script(
        "a step of bodies that touch each other, beside MJX and MuJoCo", takes_robots=False, variants=(ONE_THREAD,),
    ),
    "piles": Script("a step of piles of 10, 30 and 100 bodies, beside MuJoCo and Drake", takes_robots=False),
    "gpu_program": Script("kernels and memory traffic on an H200, compiled without one"),
    "gpu_registers": Script("registers, spills, shared memory and occupancy of our GPU kernels, without a GPU"),
    "throughput": Script("evaluations per second of 1 to 65536 worlds, with a plot, on CPU or GPU", takes_peers=True),
}  # fmt: skip
SCRIPT_LIMIT_S = 1200.0


def run_scripts(names: list[str], options: argparse.Namespace, console: Console) -> int:
    """Runs, prints and, with `--output`, writes NAME.md, NAME.json and the plot of each; 1 if one did not end well."""
    status = 0
    for name in names:
        facts = {**machine(), "load before": load_average()}
        started = time.monotonic()
        records, trouble = run_script_process(name, options, console)
        facts["load after"] = load_average()
        facts["whole run"] = f"{time.monotonic() - started:.0f} s"
        facts["device"] = next((r["device"] for r in records if r["status"] == "device"), "unknown")
        for message in trouble:
            console.print(f"{name}: {message}", style="red", markup=False)
            status = 1
        module = importlib.import_module(f"benchmarks.{name}")
        tables = [table for table in module.tables(records) if table.rows]
        print_tables(tables, console)
        console.print(f"device: {facts['device']}", markup=False)
        if options.output is not None:
            write_files(
                name, SCRIPTS[name], module, records, facts | {"trouble": "; ".join(trouble) or "none"}, options
            )
            console.print(f"wrote {options.output / name}.md", markup=False)
    return status


def run_script_process(name: str, options: argparse.Namespace, console: Console) -> tuple[list[dict], list[str]]:
    """The records of every variant, and what went wrong."""
    script = SCRIPTS[name]
    command = [sys.executable, "-m", f"benchmarks.{name}"] + ["--quick"] * options.quick
    command += ["--robots", *options.robots] * script.takes_robots
    if script.takes_peers and options.peers is not None:
        command += ["--peers", *options.peers]
    records: list[dict] = []
    trouble: list[str] = []
    limit = options.time_limit or SCRIPT_LIMIT_S
    for variant in script.variants:
        with console.status(f"{name}: {script.about}" + f" ({variant.title})" * bool(variant.title)):
            environment = environment_of_process(variant.threads, variant.keeps_memory)
            lines, rc, error = run_limited([*command, *variant.options], environment, limit)
        records += [{**json.loads(line), "variant": variant.title} for line in lines if line.startswith("{")]
        if rc is None:
            trouble.append(f"cut off after {limit:g} s (--time-limit)")
        elif rc != 0:
            trouble.append(error)
    return records, trouble


def write_files(name: str, script: Script, module, records: list[dict], facts: dict, options) -> None:
    """NAME.json with all records, NAME.md with the tables, NAME.png where there is a plot."""
    folder: pathlib.Path = options.output
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps({"facts": facts, "records": records}, indent=1) + "\n")
    lines = [f"# {name}: {script.about}", "", f"Written by `python -m benchmarks --only {name}`.", ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    if hasattr(module, "write_plot"):
        try:
            module.write_plot(records, folder / f"{name}.png")
            lines += ["", f"![{name}]({name}.png)"]
        except ImportError:
            lines += ["", "No plot: `pip install matplotlib`."]
    tables: list[Table] = module.tables(records)
    for table in tables:
        if table.rows:
            lines += ["", *markdown_table(table)]
    (folder / f"{name}.md").write_text("\n".join(lines) + "\n")
