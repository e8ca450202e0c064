"""Records → tables, `RESULTS.md` and the plot.

`python -m benchmarks.report` writes `RESULTS.md` anew from `results.json`.
"""

import dataclasses
import json
import math
import pathlib
import tomllib

from .aims import aims_table
from .measure import Compilation, significant
from .peers import PEERS
from .results import Results, Table, thread_counts, threads_title, titles, verdict

HEAD = (
    "Written by `python -m benchmarks`, and from its records again by `python -m benchmarks.report`; nothing is edited "
    "by hand. What was tried on the way stands in [notes](notes/README.md)."
)
PREDICTIONS = pathlib.Path(__file__).with_name("PREDICTIONS.toml")

QUESTION_TITLES = {"fd": "Forward dynamics", "vjp": "vjp of forward dynamics with respect to (q, v, tau)"}
MODE_TITLES = {
    "batch4096": "batch of 4096",
    "batch256": "batch of 256",
    "single": "one jitted call from Python",
    "loop1000": "inside an on-device loop of 1000",
}


def all_tables(results: Results) -> list[Table]:
    """In the order of RESULTS.md."""
    tables = [aims_table(results)]
    for question in QUESTION_TITLES:
        for mode in MODE_TITLES:
            for threads in thread_counts(results, f"{question}:{mode}:closed"):
                tables.append(timing_table(results, question, mode, threads))
    tables += [processor_time_table(results, question) for question in QUESTION_TITLES]
    tables += [compile_table(results, question) for question in QUESTION_TITLES]
    tables += [static_table(results), agreement_table(results), rollout_table(results), trouble_table(results)]
    tables.append(prediction_table(results))
    return [table for table in tables if table.rows]


def timing_table(results: Results, question: str, mode: str, threads: int) -> Table:
    """Medians with quartiles, and the ratio to the best peer that is not mbjax, of the same dtype."""
    rows = []
    for dtype in ("f32", "f64"):
        for peer in results.peers:
            for model in ("closed", "argument"):
                row = timing_row(results, peer, dtype, f"{question}:{mode}:{model}", threads)
                if row is not None:
                    rows.append(row)
    note = (
        "µs per evaluation: median [least–upper quartile], × the best peer, of the same dtype (C and C++ count "
        "for both)."
    )
    title = f"{QUESTION_TITLES[question]}, {MODE_TITLES[mode]}, {threads_title(threads)}"
    return Table(title, ("implementation", *titles(results)), tuple(rows), note)


def timing_row(results: Results, peer: str, dtype: str, case: str, threads: int) -> tuple[str, ...] | None:
    uses_jax = PEERS[peer].uses_jax
    threads = threads if uses_jax else 0
    keys = {"peer": peer, "dtype": dtype, "case": case, "threads": threads}
    if results.find(**keys) is None:
        return None
    cells = []
    for robot in results.robots:
        record = results.find(robot=robot, **keys)
        if record is None or record["status"] != "measured":
            cells.append("–" if record is None else record["status"])
            continue
        best = best_peer_median(results, dtype, case, robot, threads)
        ratio = "" if best is None else f" ×{significant(record['median'] / best)}"
        low, high = (significant(record[key] * 1e6) for key in ("minimum", "upper_quartile"))
        cells.append(f"{significant(record['median'] * 1e6)} [{low}–{high}]{ratio}")
    model = ", model as argument" if case.endswith("argument") else ""
    how = dtype if uses_jax else f"{dtype}, 1 core"
    derivative = " (whole Jacobian)" if not uses_jax and case.startswith("vjp") else ""
    return (f"{PEERS[peer].title}{derivative}, {how}{model}", *cells)


def processor_time_table(results: Results, question: str) -> Table:
    """What other programs on the machine disturb least."""
    case, rows = f"{question}:batch4096:closed", []
    for dtype in ("f32", "f64"):
        for threads in thread_counts(results, case):
            for peer in results.peers:
                keys = {"peer": peer, "dtype": dtype, "case": case, "threads": threads, "status": "measured"}
                found = [results.find(robot=robot, **keys) for robot in results.robots]
                if any(found):
                    cells = ["–" if record is None else significant(record["cpu"] * 1e6) for record in found]
                    how = threads_title(threads) if PEERS[peer].uses_jax else "1 core"
                    rows.append((f"{PEERS[peer].title}, {dtype}, {how}", *cells))
    title = f"Processor time, batch of 4096: {QUESTION_TITLES[question]}"
    note = "µs of processor time per evaluation, all threads together, median: a shared machine stretches it less."
    return Table(title, ("implementation", *titles(results)), tuple(rows), note)


def best_peer_median(results: Results, dtype: str, case: str, robot: str, threads: int) -> float | None:
    closed = case.replace("argument", "closed")
    medians = [
        results.median(peer, dtype if PEERS[peer].uses_jax else "f64", closed, robot, t)
        for peer in results.peers
        if peer != "mbjax"
        for t in ([threads] if PEERS[peer].uses_jax else [0])
    ]
    return min((m for m in medians if m is not None), default=None)


def prediction_table(results: Results) -> Table:
    rows = []
    for prediction in tomllib.loads(PREDICTIONS.read_text())["prediction"]:
        cells = []
        for robot in results.robots:
            median = results.median("mbjax", prediction["dtype"], prediction["case"], robot, 0)
            if median is None or robot not in prediction:
                cells.append("–")
                continue
            ratio = significant(median * 1e6 / prediction[robot])
            cells.append(f"{prediction[robot]:g} → {significant(median * 1e6)} (×{ratio})")
        rows.append((f"{prediction['case']} {prediction['dtype']}: {prediction['by']}", *cells))
    note = "µs per evaluation, predicted → measured (measured over predicted)."
    return Table("Prediction and outcome", ("what and who", *titles(results)), tuple(rows), note)


def compile_table(results: Results, question: str) -> Table:
    rows = []
    for peer in results.peers:
        for dtype in ("f32", "f64"):
            for mode in MODE_TITLES:
                case = f"{question}:{mode}:closed"
                found = [
                    results.find(peer=peer, dtype=dtype, case=case, robot=r, threads=0, status="measured")
                    for r in results.robots
                ]
                if not any(record and "trace_s" in record for record in found):
                    continue
                cells = ["–" if r is None else seconds_of_phases(r) for r in found]
                rows.append((f"{PEERS[peer].title}, {dtype}, {mode}", *cells))
    return Table(
        f"Compile time: {QUESTION_TITLES[question]}",
        ("implementation", *titles(results)),
        tuple(rows),
        "Seconds in all (trace + lower + compile; processor time); the persistent cache is off.",
    )


def seconds_of_phases(record: dict) -> str:
    phases = " + ".join(f"{record[key]:.2f}" for key in ("trace_s", "lower_s", "compile_s"))
    return f"{record['compile_total_s']:.2f} ({phases}; {record['compile_cpu_s']:.2f})"


def static_table(results: Results) -> Table:
    """Numbers of the compiled program, which no load changes."""
    rows = []
    names = {field.name for field in dataclasses.fields(Compilation)}
    for question in QUESTION_TITLES:
        for peer in results.peers:
            cells = []
            for robot in results.robots:
                record = results.find(
                    peer=peer, dtype="f32", case=f"{question}:batch4096:closed", robot=robot, threads=0
                )
                if record is None or not names <= record.keys():
                    cells.append("–")
                    continue
                flops, traffic, temp = (
                    "?" if record[key] is None else significant(record[key] / 4096 / 1e3)
                    for key in ("flops", "bytes_accessed", "temp_bytes")
                )
                counts = f"{record['fusions']} / {record['whiles']} / {record['custom_calls']}"
                cells.append(f"{counts}; {flops} kflop, {traffic} kB, {temp} kB temp")
            if set(cells) != {"–"}:
                rows.append((f"{question}, {PEERS[peer].title}", *cells))
    note = (
        "Fusions / while loops / custom calls in the HLO; then per world by XLA's count, which takes a loop body once. "
        "The compiler's view of bytes, not of the cache."
    )
    return Table("The compiled programs, batch 4096, f32", ("program", *titles(results)), tuple(rows), note)


def agreement_table(results: Results) -> Table:
    rows = []
    for dtype in ("f32", "f64"):
        for peer in results.peers:
            found = [results.find(peer=peer, dtype=dtype, robot=r, status="compared") for r in results.robots]
            if any(found):
                cells = ["–" if r is None else f"{r['relative_difference']:.1e}" for r in found]
                rows.append((f"{PEERS[peer].title}, {dtype}", *cells))
    return Table(
        "Same physics",
        ("implementation", *titles(results)),
        tuple(rows),
        "Largest difference of vdot from mbjax in f64, over its largest entry; the worst of 16 random states.",
    )


def rollout_table(results: Results) -> Table:
    from .rollout_memory import TARGET_BYTES

    rows = []
    for record in results.rollout:
        temp = record["temp_bytes"]
        target = TARGET_BYTES[record["checkpoint"]]
        memory = "unknown" if temp is None else verdict(temp / 1e6, target / 1e6, f"MB (target {target / 1e6:g})")
        rows.append(
            (
                record["checkpoint"],
                memory,
                seconds_of_phases(record),
                f"{significant(record['median'] * 1e3)} ms",
                f"{record['difference']:.1e}",
            )
        )
    columns = ("checkpoint", "temporary memory", "compile", "run", "difference from plain")
    steps = results.rollout[0]["steps"] if results.rollout else 0
    return Table(f"Gradient of a rollout of {steps} steps of the seven-joint arm, f64", columns, tuple(rows))


def trouble_table(results: Results) -> Table:
    """Missing peers, time limits, failures: reported, never hidden."""
    robots_of: dict[tuple[str, ...], list[str]] = {}
    for r in results.records:
        if r["status"] in ("missing", "failed", "timeout"):
            name = f"{PEERS[r['peer']].title}, {r['dtype']}, {threads_title(r['threads'])}"
            key = (name, r.get("case", "everything"), r["status"], r.get("detail", ""))
            robots_of.setdefault(key, []).append(r["robot"])
    rows = [(name, case, ", ".join(robots), status, why) for (name, case, status, why), robots in robots_of.items()]
    return Table("Not measured", ("implementation", "case", "robots", "status", "why"), tuple(rows))


def notes_of(results: Results) -> list[str]:
    """Facts without which the numbers mean little."""
    empty = [r for r in results.records if r["status"] == "empty call"]
    bindings = [r for r in results.records if "binding" in r and r["case"] == "fd:loop1000:closed"]
    lines = [
        'Every peer runs in its own process per dtype. XLA\'s defaults use all cores; "one thread" is a pool of one '
        "with the XLA flags that frax recommends, for mbjax as for the others. C and C++ run on one core.",
        "C and C++ loop over states in Python; the cost of a trivial call through the same binding is taken off, "
        "except in the single call.",
    ]
    if empty:
        median = sorted(r["median"] for r in empty)[len(empty) // 2]
        devices = ", ".join(dict.fromkeys(r["device"] for r in empty if "device" in r))
        lines.append(f"One jitted call that does nothing takes {significant(median * 1e6)} µs.")
        lines += [f"JAX computed on {devices}."] * bool(devices)
    for peer in dict.fromkeys(r["peer"] for r in bindings):
        costs = [r["binding"] * 1e6 for r in bindings if r["peer"] == peer]
        lines.append(
            f"{PEERS[peer].title}: its binding costs {significant(min(costs))}–{significant(max(costs))} µs a call."
        )
    return lines


def write_markdown(results: Results, file: pathlib.Path) -> None:
    """Writes the page of all tables."""
    facts = {**results.machine, **results.loads, "command": f"`{results.command}`"}
    lines = ["# Results", "", HEAD, ""]
    lines += [f"- {key}: {value}" for key, value in facts.items()]
    lines += ["", "![forward dynamics](forward_dynamics.png)", "", "## How to read it", ""]
    lines += [f"- {note}" for note in notes_of(results)]
    for table in all_tables(results):
        lines += ["", *markdown_table(table)]
    file.write_text("\n".join(lines) + "\n")


def read_results(file: pathlib.Path) -> Results:
    """The records of a run, as `python -m benchmarks` wrote them."""
    saved = json.loads(file.read_text())
    return Results(**{**saved, "robots": tuple(saved["robots"])})


def markdown_table(table: Table) -> list[str]:
    """Heading, note, table."""
    lines = [f"## {table.title}", ""]
    if table.note:
        lines += [table.note, ""]
    lines.append("| " + " | ".join(table.columns) + " |")
    lines.append("|" + "---|" * len(table.columns))
    return lines + ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in table.rows]


def write_plot(results: Results, file: pathlib.Path) -> None:
    """Bars of batch 4096 per robot: forward dynamics, its vjp, and what compiling each costs."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import ScalarFormatter

    figure = Figure(figsize=(13, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(1, 3)
    panels = (
        ("fd:batch4096:closed", "median", 1e6, "FD, batch 4096", "µs per evaluation"),
        ("vjp:batch4096:closed", "median", 1e6, "vjp of FD, batch 4096", "µs per evaluation"),
        ("vjp:batch4096:closed", "compile_total_s", 1.0, "Compile time of the vjp", "s"),
    )
    for axis, (case, key, scale, title, unit) in zip(axes, panels, strict=True):
        draw_bars(axis, results, case, key, scale)
        if unit != "s" and any(bar.get_height() > 0 for bar in axis.patches):
            axis.set_yscale("log")
            axis.yaxis.set_major_formatter(ScalarFormatter())
        axis.set_title(title, fontsize=11)
        axis.set_ylabel(unit)
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=max(1, len(labels)), frameon=False, fontsize=9)
    figure.savefig(file, dpi=150)


def draw_bars(axis, results: Results, case: str, key: str, scale: float) -> None:
    """One group a robot, one bar an implementation; a missing measurement leaves its place empty."""
    colors = {"mbjax": "#d1495b", "frax": "#00798c", "mjx": "#edae49", "mujoco": "#8d99ae", "pinocchio": "#52489c"}
    peers = results.peers
    width = 0.8 / max(1, len(peers))
    for i, peer in enumerate(peers):
        dtype = "f32" if PEERS[peer].uses_jax else "f64"
        heights = []
        for robot in results.robots:
            record = results.find(peer=peer, dtype=dtype, case=case, robot=robot, threads=0, status="measured") or {}
            heights.append(record.get(key, math.nan) * scale)
        places = [group + (i - (len(peers) - 1) / 2) * width for group in range(len(results.robots))]
        how = dtype if PEERS[peer].uses_jax else f"{dtype}, 1 core"
        label = f"{PEERS[peer].title.split(',')[0].split(' /')[0]} ({how})"
        bars = axis.bar(places, heights, 0.92 * width, label=label, color=colors[peer])
        texts = ["" if math.isnan(height) else significant(height, 2) for height in heights]
        axis.bar_label(bars, labels=texts, fontsize=7, padding=1.5)
    axis.set_xticks(range(len(results.robots)), titles(results))
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", alpha=0.25)
    axis.set_axisbelow(True)


if __name__ == "__main__":
    HERE = pathlib.Path(__file__).parent
    write_markdown(read_results(HERE / "results.json"), HERE / "RESULTS.md")
