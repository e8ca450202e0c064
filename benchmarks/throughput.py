"""Evaluations per second against the number of worlds, 1 to 65536, f32: forward dynamics, its vjp and steps of mbjax.

A step is of 1 ms, discrete, and keeps joints within their limits; no peer has the same. On whatever device JAX computes
by default, CPU or GPU; the output names it. Pinocchio, on one core and in f64, has no batches: one number. A peer that
is not installed is reported and left out.
"""

import pathlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from .forward_dynamics import as_arrays, attempt, evaluated, time_compiled
from .measure import Effort, with_prefix
from .peers import PEERS, CompiledProblem, load_mbjax, mbjax_joint_names
from .report import QUESTION_TITLES
from .results import Table
from .robots import ALL_ROBOTS
from .script import Options, failed, outcome, precision, run_script, timed

SIZES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
QUICK_SIZES = (1, 8)
DEFAULT_PEERS = ("mbjax", "frax", "pinocchio")
PINOCCHIO_WORLDS = 256
TIME_STEP = 1e-3
TITLES = QUESTION_TITLES | {"step": "A step with joint limits"}
COLORS = ("#d1495b", "#00798c", "#edae49", "#52489c", "#8d99ae")
STYLES = {"mbjax": "-o", "frax": "--s", "mjx": "-.^"}


def records(options: Options) -> Iterator[dict]:
    sizes = QUICK_SIZES if options.quick else SIZES
    for robot in options.robots:
        with precision("f64"):
            names, common = random_states(robot, max(*sizes, PINOCCHIO_WORLDS))
        for peer in options.peers:
            dtype = "f32" if PEERS[peer].uses_jax else "f64"
            with precision(dtype):
                keys = {"robot": robot.name, "peer": peer, "dtype": dtype}
                problem = attempt(partial(PEERS[peer].build, robot, names, dtype))
                if isinstance(problem, str):
                    yield {**keys, "worlds": 0, "question": "fd", "status": "failed", "detail": problem}
                    continue
                inputs = problem.convention.from_common(*common)
                if isinstance(problem, CompiledProblem):
                    yield from measure_library(problem, inputs, keys, options.effort)
                    continue
                programs = {
                    question: partial(evaluated(problem, question), problem.model) for question in QUESTION_TITLES
                }
                if peer == "mbjax":
                    programs["step"] = partial(step, load_mbjax(robot, dtype, TIME_STEP))
                yield from measure_batches(programs, as_arrays(inputs, dtype), sizes, keys, options.effort)


def random_states(robot: Any, count: int) -> tuple[tuple[str, ...], tuple[np.ndarray, ...]]:
    """Names of the joints, and (q, v, tau) in common coordinates."""
    from mbjax.command_line.questions import random_worlds

    model = load_mbjax(robot, "f64")
    worlds = random_worlds(model, count)
    return tuple(mbjax_joint_names(model)), tuple(np.asarray(x) for x in (worlds.q, worlds.v, worlds.tau))


def step(model: Any, q: Any, v: Any, tau: Any) -> tuple:
    """The next q and v."""
    import mbjax

    state = mbjax.State(q, v, np.zeros((), q.dtype))
    after, _ = mbjax.step(model, state, mbjax.Inputs(applied_generalized_force=tau))
    return after.q, after.v


def measure_batches(programs: dict, inputs: tuple, sizes: tuple, keys: dict, effort: Effort) -> Iterator[dict]:
    import jax

    for question, one in programs.items():
        for size in sizes:
            args = tuple(x[0] if size == 1 else x[:size] for x in inputs)
            program = one if size == 1 else jax.vmap(one)
            yield timed({**keys, "question": question, "worlds": size}, (program, args), size, effort)


def measure_library(problem: CompiledProblem, inputs: tuple, keys: dict, effort: Effort) -> Iterator[dict]:
    states = [tuple(map(np.ascontiguousarray, s)) for s in zip(*(x[:PINOCCHIO_WORLDS] for x in inputs), strict=True)]
    calls = {"fd": (problem.evaluate, problem.trivial), "vjp": (problem.derivatives, problem.trivial_derivatives)}
    for question, (evaluate, trivial) in calls.items():
        if evaluate is not None and trivial is not None:
            yield outcome({**keys, "question": question, "worlds": 1}, time_compiled, evaluate, trivial, states, effort)


def tables(records: list[dict]) -> list[Table]:
    device = next((r["device"] for r in records if r["status"] == "device"), "unknown device")
    records = [r for r in records if r["status"] != "device"]
    found = []
    for question, title in TITLES.items():
        asked = [r for r in records if r["question"] == question]
        lines = {(r["robot"], r["peer"], r["dtype"]): r for r in asked}
        sizes = sorted({r["worlds"] for r in asked} - {0})
        rates, compile_times = [], []
        for robot, peer, dtype in lines:
            name = f"{ALL_ROBOTS[robot].title}, {PEERS[peer].title}, {dtype}"
            of_line = {r["worlds"]: r for r in asked if (r["robot"], r["peer"], r["dtype"]) == (robot, peer, dtype)}
            rates.append((name, *(rate(of_line.get(size)) for size in sizes)))
            if any("trace_s" in r for r in of_line.values()):
                compile_times.append((name, *(compile_time(of_line.get(size)) for size in sizes)))
        columns = ("worlds", *map(str, sizes))
        note = f"Evaluations per second on {device}; Pinocchio: on one core, f64, the whole Jacobian for the vjp."
        found.append(Table(f"{title}, throughput", columns, tuple(rates), note))
        found.append(
            Table(f"{title}, compile time", columns, tuple(compile_times), "Seconds: trace, lower and compile.")
        )
    missing = tuple((PEERS[r["peer"]].title, r["robot"], r["detail"]) for r in records if failed(r))
    return [*found, Table("Not measured", ("implementation", "robot", "why"), missing)]


def rate(record: dict | None) -> str:
    if record is None:
        return "–"
    return record["status"] if failed(record) else with_prefix(1.0 / record["median"], "")


def compile_time(record: dict | None) -> str:
    return "–" if record is None or failed(record) or "trace_s" not in record else f"{record['compile_total_s']:.2f}"


def write_plot(records: list[dict], file: pathlib.Path) -> None:
    """A panel per function: evaluations per second against worlds, a colour per robot, a line style per peer."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    device = next((r["device"] for r in records if r["status"] == "device"), "unknown device")
    measured = [r for r in records if r["status"] == "measured"]
    robots = list(dict.fromkeys(r["robot"] for r in measured))
    figure = Figure(figsize=(15, 5), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(TITLES))
    for axis, (question, title) in zip(panels, TITLES.items(), strict=True):
        asked = [r for r in measured if r["question"] == question]
        for robot, peer in dict.fromkeys((r["robot"], r["peer"]) for r in asked):
            line = [r for r in asked if (r["robot"], r["peer"]) == (robot, peer)]
            color = COLORS[robots.index(robot) % len(COLORS)]
            label = f"{ALL_ROBOTS[robot].title}, {PEERS[peer].title.split(' ')[0]} {line[0]['dtype']}"
            if PEERS[peer].uses_jax:
                axis.plot(
                    [r["worlds"] for r in line], [1.0 / r["median"] for r in line], STYLES[peer],
                    color=color, label=label, markersize=4,
                )  # fmt: skip
            else:
                axis.axhline(1.0 / line[0]["median"], color=color, linestyle=":", label=f"{label}, 1 core")
        axis.set(xscale="log", yscale="log", xlabel="worlds", ylabel="evaluations per second")
        axis.set_title(title, fontsize=10)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.suptitle(device, fontsize=11)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(file, dpi=150)


if __name__ == "__main__":
    run_script("throughput", __doc__, records, DEFAULT_PEERS)
