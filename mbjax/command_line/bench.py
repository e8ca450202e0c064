"""`mbjax bench FILE`: measures the cost of compiling and running a robot's functions on this machine."""

import argparse
import contextlib
import csv
import difflib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from mbjax.formats import load
from mbjax.model import MultibodyModel
from mbjax.model.whole_table import Column, WholeTable

from .machine import describe_machine, device_name, load_average, version_of
from .measurement import Effort, measure, per_evaluation, significant, warm_up_jax, with_prefix
from .questions import QUESTIONS, random_worlds

PACKAGES = ("jax", "jaxlib", "equinox", "numpy")
OUTPUT_SUFFIXES = (".csv", ".json")


def bench_model(options: argparse.Namespace, console: Console) -> bool:
    """Measures, prints the table and writes the output; returns whether every measurement succeeded."""
    with jax.enable_x64(options.dtype == "float64"), without_compilation_cache():
        model = load(
            options.file, time_step=options.time_step, base=options.base, package_map=options.package_map,
            on_unsupported=options.on_unsupported, mimic=options.mimic, dtype=np.dtype(options.dtype),
            xacro_arguments=options.xacro_arguments, actuators=options.actuators,
        )  # fmt: skip
        warm_up_jax()
        facts = {
            "model": options.file.stem,
            "mbjax": "from source" if version_of("mbjax") == "missing" else version_of("mbjax"),
            "positions": str(model.num_positions),
            "velocities": str(model.num_velocities),
            "dtype": options.dtype,
            "device": device_name(),
            **describe_machine(PACKAGES),
            "load before": load_average(),
        }
        rows: list[dict[str, Any]] = []
        try:
            for row in measure_with_progress(model, options, console):
                rows.append(row)
        finally:  # results are shown even if the rest is interrupted
            facts["load after"] = load_average()
            if rows:
                report(rows, facts, options, console)
    return not any("error" in row for row in rows)


@contextlib.contextmanager
def without_compilation_cache() -> Iterator[None]:
    """Turns JAX's persistent cache off, as a program found there is not compiled and has no compile time."""
    before = jax.config.jax_enable_compilation_cache  # type: ignore[attr-defined]
    jax.config.update("jax_enable_compilation_cache", False)
    try:
        yield
    finally:
        jax.config.update("jax_enable_compilation_cache", before)


def measure_with_progress(
    model: MultibodyModel, options: argparse.Namespace, console: Console
) -> Iterator[dict[str, Any]]:
    """Measures with a progress bar; yields one row per function and batch size."""
    columns = (TextColumn("measuring"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[at]}"))
    effort = Effort(seconds=options.seconds)
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("measuring", total=len(options.functions) * len(options.batch), at="")
        for name in options.functions:
            for batch in options.batch:
                progress.update(task, at=f"{name}, {batch} worlds" if batch > 1 else f"{name}, one world")
                yield {"function": name, "batch": batch, **measure_question(model, name, batch, effort)}
                progress.advance(task)


def measure_question(model: MultibodyModel, name: str, batch: int, effort: Effort) -> dict[str, Any]:
    """Times per evaluation and memory per world, or the device's error, most often because of too many worlds."""
    try:
        worlds = random_worlds(model, None if batch == 1 else batch)
        function, args = QUESTIONS[name].program(model, worlds)
        record = measure(function, args, effort, through_jit=batch == 1)
    except jax.errors.JaxRuntimeError as error:
        return {"error": str(error).splitlines()[0]}
    temp = record["temp_bytes"]
    return {
        **per_evaluation(record, batch),
        "evaluations_per_s": batch / record["median"],
        "temp_bytes_per_world": None if temp is None else temp / batch,
    }


def report(rows: list[dict[str, Any]], facts: dict[str, str], options: argparse.Namespace, console: Console) -> None:
    """Prints the table and the facts about the machine, and writes the output file."""
    console.print(result_table(rows, facts))
    console.print("worlds 1: one jitted call from Python; compile and run apart; the model closed over", style="dim")
    for key in ("device", "mbjax", "versions", "XLA_FLAGS of the run", "load before", "load after"):
        console.print(f"{key}: {facts[key]}", style="dim", markup=False, soft_wrap=True)
    for row in rows:
        if "error" in row:
            console.print(f"{row['function']}, {row['batch']} worlds: {row['error']}", style="red", markup=False)
    if options.output is not None:
        write_output(rows, facts, options.output)
        console.print(f"wrote {options.output}", markup=False)


def result_table(rows: list[dict[str, Any]], facts: dict[str, str]) -> WholeTable:
    """Table of compile time, run time, throughput and memory of each function and batch size."""
    title = f"{facts['model']}: {facts['positions']} positions, {facts['velocities']} velocities, {facts['dtype']}"
    numbers = [("failed", "", "", "") if "error" in row else cells(row) for row in rows]
    headings = (
        "compile s\n(trace + lower + XLA)", "run µs per evaluation\n[quartiles]", "evaluations\nper s",
        "temporary memory\nper world",
    )  # fmt: skip
    return WholeTable(
        title,
        (
            Column("function", [row["function"] for row in rows], is_text=True, once=True),
            Column("worlds", [str(row["batch"]) for row in rows]),
            *(Column(heading, [row[i] for row in numbers]) for i, heading in enumerate(headings)),
        ),
    )


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Texts of the columns after the function's name and the number of worlds."""
    phases = " + ".join(f"{row[key]:.2f}" for key in ("trace_s", "lower_s", "compile_s"))
    median, lower, upper = (significant(row[key] * 1e6) for key in ("median", "lower_quartile", "upper_quartile"))
    temp = row["temp_bytes_per_world"]
    return (
        f"{row['compile_total_s']:.2f} ({phases})",
        f"{median} [{lower}–{upper}]",
        with_prefix(row["evaluations_per_s"], ""),
        "unknown" if temp is None else with_prefix(temp, "B"),
    )


def write_output(rows: list[dict[str, Any]], facts: dict[str, str], file: Path) -> None:
    """Writes JSON with the facts and the rows, or CSV with the facts in every row; times are in seconds."""
    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".json":
        file.write_text(json.dumps({"facts": facts, "rows": rows}, indent=1) + "\n", encoding="utf-8")
        return
    records = [{**row, **facts} for row in rows]
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(key for record in records for key in record)))
        writer.writeheader()
        writer.writerows(records)


def batch_sizes(text: str) -> list[int]:
    """Parses numbers of worlds such as `1,64,4096`."""
    sizes = []
    for part in text.split(","):
        if not (part.strip().isdecimal() and int(part) > 0):
            raise argparse.ArgumentTypeError(
                f"'{part}' in '{text}' is no number of worlds: write whole numbers above 0, such as 1,64,4096"
            )
        sizes.append(int(part))
    return list(dict.fromkeys(sizes))


def function_names(text: str) -> list[str]:
    """Parses names of functions such as `forward_dynamics,step`."""
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in QUESTIONS:
            close = difflib.get_close_matches(name, QUESTIONS, n=1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise argparse.ArgumentTypeError(f"'{name}' is none of {', '.join(QUESTIONS)}{hint}")
    return list(dict.fromkeys(names))


def output_file(text: str) -> Path:
    """Parses the output file, whose suffix gives the format."""
    file = Path(text)
    if file.suffix not in OUTPUT_SUFFIXES or file.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' must be a file that ends in {' or '.join(OUTPUT_SUFFIXES)}")
    return file
