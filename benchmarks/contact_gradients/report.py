"""The table and the plots, from the records."""

import pathlib
from typing import Any

Record = dict[str, Any]
CHOOSES_STEPS = ("recommended", "continuous, smoothed")


def relative_error(record: Record) -> float:
    """Of the derivative in forward mode, relative to the limit; the error itself where the limit is zero."""
    limit = record["limit"]
    return abs(record["forward"] - limit) / (abs(limit) if abs(limit) > 1e-12 else 1.0)


def shown_error(record: Record) -> str:
    """In percent."""
    error = 100.0 * relative_error(record)
    return f"{error:.2g} %" if error < 1e4 else "> 1e4 %"


def compile_time(record: Record, mode: str) -> str:
    """In s; what an engine said that has not this mode."""
    time = record[f"{mode}_compile_s"]
    return f"{time:.1f}" if isinstance(time, float) else "none"


def table(records: list[Record]) -> list[str]:
    """A line of Markdown for each problem, knob, engine and step."""
    lines = [
        "| problem, by | engine | step | derivative | limit | error | beside own differences | reverse - forward "
        "| run, both modes (s) | compile, both modes (s) |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in sorted(records, key=lambda r: (r["problem"], r["knob"], r["engine"], r["setting"], -r["step"])):
        step = "own" if r["setting"] in CHOOSES_STEPS else f"{r['step']:.0e}"
        reverse = "" if r["reverse"] is None else f"{abs(r['reverse'] - r['forward']):.0e}"
        run_reverse = "none" if r["reverse_run_s"] is None else f"{r['reverse_run_s']:.2f}"
        lines.append(
            f"| {r['problem']}, {r['knob']} | {r['engine']}, {r['setting']} | {step} | {r['forward']:.5g} "
            f"| {r['limit']:.5g} | {shown_error(r)} | {abs(r['forward'] - r['differences']):.0e} | {reverse} "
            f"| {r['forward_run_s']:.2f}, {run_reverse} "
            f"| {compile_time(r, 'forward')}, {compile_time(r, 'reverse')} |"
        )
    return lines


def table_of_tosses(records: list[Record]) -> list[str]:
    """A line for each shape: errors over all speeds; the worst ones are at kinks, where no derivative is useful."""
    lines = [
        "| object | speeds | median error | 90 % are below | worst | run (s) | compile (s) |",
        "|---|---|---|---|---|---|---|",
    ]
    for shape in sorted({r["shape"] for r in records}):
        own = [r for r in records if r["shape"] == shape]
        errors = sorted(relative_error(r) for r in own)
        quantiles = (errors[len(errors) // 2], errors[int(0.9 * len(errors))], errors[-1])
        texts = " | ".join(f"{100.0 * e:.2g} %" for e in quantiles)
        run = sorted(r["run_s"] for r in own)[len(own) // 2]
        lines.append(f"| {shape} | {len(own)} | {texts} | {run:.2f} | {own[0]['compile_s']:.1f} |")
    return lines


def plots(records: list[Record], tosses: list[Record], folder: pathlib.Path) -> list[str]:
    """Writes the plots that there are records for; their names."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figures: list[tuple[str, Any]] = []
    by_step = [r for r in records if r["problem"] == "cube toss"]
    if by_step:
        figure, axes = plt.subplots(figsize=(5.5, 3.5))
        for name in sorted({(r["engine"], r["setting"]) for r in by_step}):
            own = sorted((r["step"], relative_error(r)) for r in by_step if (r["engine"], r["setting"]) == name)
            label = ", ".join(name)
            if name[1] in CHOOSES_STEPS:
                axes.axhline(
                    max(own[0][1], 1e-5), label=label, linestyle="--", color="k" if name[1] == "recommended" else "gray"
                )
            else:
                axes.loglog(*zip(*own, strict=True), "o-", label=label)
        axes.set(
            xscale="log", yscale="log", xlabel="time step (s)", ylabel="error of the derivative", title="Cube toss"
        )
        axes.legend(fontsize=6)
        figures.append(("contact_gradients_by_step.png", figure))
    sweep = [r for r in records if r["problem"].startswith("bounce") and r["knob"] == "q 0" and r["step"] == 1e-3]
    if sweep:
        figure, axes = plt.subplots(figsize=(5.5, 3.5))
        for name in sorted({(r["engine"], r["setting"]) for r in sweep}):
            of_name = [r for r in sweep if (r["engine"], r["setting"]) == name]
            own = sorted((float(r["problem"].split()[1]), r["forward"]) for r in of_name)
            axes.semilogx(*zip(*own, strict=True), "o-", label=", ".join(name))
        axes.set(
            xlabel="stiffness (N/m)", ylabel="dz(T) / dz(0)", title="Bounce at a step of 1 ms; truth -1", ylim=(-8, 6)
        )
        axes.legend(fontsize=6)
        figures.append(("contact_gradients_by_stiffness.png", figure))
    if tosses:
        figure, axes = plt.subplots(figsize=(5.5, 3.5))
        for shape in sorted({r["shape"] for r in tosses}):
            own = sorted((r["vz"], r["forward"]) for r in tosses if r["shape"] == shape)
            axes.plot(*zip(*own, strict=True), ".-", markersize=2, linewidth=0.7, label=shape)
        axes.set(xlabel="vz at the start (m/s)", ylabel="dy(T) / dvz", title="Tossed objects", ylim=(-2, 2))
        axes.legend(fontsize=6)
        figures.append(("contact_gradients_by_start.png", figure))
    for name, figure in figures:
        figure.tight_layout()
        figure.savefig(folder / name, dpi=90)
        plt.close(figure)
    return [name for name, _ in figures]


def write_report(records: list[Record], usage: pathlib.Path) -> None:
    """Writes the page with the tables, and the plots to the folder of images."""
    of_engines = [r for r in records if "engine" in r]
    tosses = [r for r in records if "shape" in r]
    lines = ["# Table of contact gradients", "", "`python -m benchmarks.contact_gradients` wrote this page.", ""]
    if of_engines:
        lines += [*table(of_engines), ""]
    if tosses:
        lines += ["## Tossed objects", "", *table_of_tosses(tosses), ""]
    (usage / "contact_gradients_table.md").write_text("\n".join(lines))
    plots(of_engines, tosses, usage.parent / "images")
