"""Does contact hold up? A hundred thousand random drops, and the worst that was seen in them.

    python -m benchmarks.contact_drops [--drops 100000] [--steps 60] [--output FILE.json]

One program a kind of shape, approximation and number type; time steps from 1e-4 to 1e-2 s, sizes, masses, friction,
stiffness, dissipation and motions differ from drop to drop. "stacked" drops have two bodies, one above the other, with
masses up to 1e6 apart.
"""

import argparse
import json
import pathlib
import sys
from collections.abc import Callable, Iterable

import jax
import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from .drops import SHAPES, TIME_STEPS, Drop, build, drop_it, random_start
from .processes import print_tables
from .results import Table

BATCH = 4096
ROUNDING = 1e-5  # of energies in single precision, beside the largest kinetic one
APPROXIMATIONS = ("sap", "lagged", "similar")
DTYPES = ("float64", "float32")
STACKS = (("sphere", "sphere"), ("box", "sphere"), ("capsule", "capsule"), ("box", "box"))
QUICK_TO_COMPILE = {"xla_backend_optimization_level": 0}
DECADES_OF_STEPS = ((1e-4, 1e-3), (1e-3, 1e-2))


def programs() -> list[Drop]:
    """Every shape with every approximation and number type, then the stacks."""
    stacks = [Drop(stack, "sap", dtype) for dtype in DTYPES for stack in STACKS]
    return [Drop((shape,), a, dtype) for a in APPROXIMATIONS for dtype in DTYPES for shape in SHAPES] + stacks


def run(drop: Drop, worlds: int, num_steps: int, seed: int) -> dict[str, np.ndarray]:
    """What was seen in a batch of drops, by name; one program."""
    model = build(drop)

    def one(key: jax.Array) -> dict[str, jax.Array]:
        start = random_start(drop, model, key, num_steps)
        seen = drop_it(start, num_steps)
        masses = start.model.parameters.body_mass
        return {
            "time_step": start.model.parameters.time_step,
            "mass_ratio": masses.max() / masses.min(),
            "finite": seen.is_finite,
            "growth": seen.energy_growth / seen.peak_energy,
            "depth": seen.deepest / start.smallest_length,
            "crossed": seen.crossed,
            "driven": seen.driven,
            "unconverged": seen.unconverged,
            "iterations": seen.most_iterations,
            "touched": seen.touched,
        }

    keys = jax.random.split(jax.random.key(seed), worlds)
    found = jax.jit(jax.vmap(one), compiler_options=QUICK_TO_COMPILE)(keys)
    return {name: np.asarray(x) for name, x in found.items()}


def summary(found: list[dict]) -> dict:
    """The worst of many drops; of those that were driven, only how many, and how many broke down."""
    every = {name: np.concatenate([part[name] for part in found]) for name in found[0]}
    x = {name: numbers[~every["driven"]] for name, numbers in every.items()}
    return {
        "drops": len(every["finite"]),
        "touched": float(every["touched"].mean()),
        "not_finite": int((~x["finite"]).sum()),
        "growth": float(x["growth"].max(initial=0.0)),
        "depth": float(x["depth"].max(initial=0.0)),
        "crossed": int(x["crossed"].sum()),
        "unconverged": int((x["unconverged"] > 0).sum()),
        "iterations": int(x["iterations"].max(initial=0)),
        "driven": int(every["driven"].sum()),
        "driven_not_finite": int((every["driven"] & ~every["finite"]).sum()),
    }


def table(title: str, groups: Iterable[tuple[str, list[dict]]]) -> Table:
    """A row a group of drops."""
    rows = []
    for label, found in groups:
        if found:
            s = summary(found)
            numbers = (
                s["not_finite"],
                f"{s['growth']:.1e}",
                f"{s['depth']:.2f}",
                s["crossed"],
                s["unconverged"],
                s["iterations"],
                s["driven"],
                s["driven_not_finite"],
            )
            rows.append((label, str(s["drops"]), f"{s['touched']:.0%}", *map(str, numbers)))
    columns = (
        "",
        "drops",
        "touched",
        "NaN",
        "energy growth",
        "depth",
        "through",
        "unconverged",
        "iterations",
        "driven",
        "NaN of these",
    )
    note = (
        "Energy growth: largest rise over the largest kinetic energy. Depth: over the smallest half length. "
        "Driven: moved or turned by more than half of that in a step, and not counted in the columns before."
    )
    return Table(title, columns, tuple(rows), note)


def tables(results: list[tuple[Drop, dict]]) -> list[Table]:
    """By shape, by approximation and number type, by time step, by mass ratio."""

    def by(label: Callable[[Drop], str]) -> list[tuple[str, list[dict]]]:
        labels = dict.fromkeys(label(drop) for drop, _ in results)
        return [(name, [x for drop, x in results if label(drop) == name]) for name in labels]

    def where(name: str, low: float, high: float) -> list[dict]:
        parts = [{k: y[(x[name] >= low) & (x[name] < high)] for k, y in x.items()} for _, x in results]
        return [part for part in parts if len(part["finite"])]

    steps = [(f"{low:g} to {high:g} s", where("time_step", low, high * 1.0001)) for low, high in DECADES_OF_STEPS]
    ratios = [(f"{low:g} to {low * 100:g}", where("mass_ratio", low, low * 100.0)) for low in (1.0, 1e2, 1e4)]
    return [
        table("Drops by shape", by(lambda drop: " under ".join(drop.shapes))),
        table("Drops by approximation and number type", by(lambda drop: f"{drop.approximation}, {drop.dtype}")),
        table(f"Drops by time step, {TIME_STEPS[0]:g} to {TIME_STEPS[1]:g} s", steps),
        table("Drops by mass ratio", ratios),
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.contact_drops", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--drops", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--output", type=pathlib.Path, help="the summary of every program, as JSON")
    options = parser.parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    console = Console()
    results: list[tuple[Drop, dict]] = []
    try:
        drop_all(options, console, results)
    finally:  # what was seen is shown when the rest is stopped, too
        if results:
            print_tables(tables(results), console)
    worst = summary([found for _, found in results])
    return int(worst["not_finite"] > 0 or worst["crossed"] > 0 or worst["growth"] > ROUNDING)


def drop_all(options: argparse.Namespace, console: Console, results: list[tuple[Drop, dict]]) -> None:
    """Appends what each batch has found, and writes the summary of every program."""
    chosen, records = programs(), []
    each = -(-options.drops // len(chosen))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("drops", total=each * len(chosen))
        for drop in chosen:
            progress.update(task, description=f"{' under '.join(drop.shapes)}, {drop.approximation}, {drop.dtype}")
            for first in range(0, each, BATCH):
                worlds = min(BATCH, each - first)
                results.append((drop, run(drop, worlds, options.steps, seed=first)))
                progress.advance(task, worlds)
            records.append({**vars(drop), **summary([found for of, found in results if of == drop])})
            if options.output is not None:
                options.output.write_text(json.dumps(records, indent=1) + "\n")
            jax.clear_caches()


if __name__ == "__main__":
    sys.exit(main())
