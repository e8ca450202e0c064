"""The tables and the plots, from the records."""

import itertools
import pathlib
from typing import Any

from .problems import OWN_STEPS, TOLERANCE, bounce, cube_toss

Record = dict[str, Any]
STEP = 1e-3  # s, where one step is shown
KINK = 0.05  # part of its change by which a value between two speeds may differ from the mean of the derivatives
CROSSING = 0.1  # part of the median derivative to which errors are relative where the derivative is smaller

HEAD = """# Table of contact gradients

`python -m benchmarks.contact_gradients` wrote this page; [Gradients through contact](contact_gradients.md) says what
follows from it. Errors are those of the derivative, relative to the limit of the same engine and law for small steps
or to a closed form; where there are several knobs of a kind, to the largest limit. Times are of the processor, in
double precision, on 2 cores; where there are none, the program was compiled without optimization. MuJoDiCo and mbjax
have the same stiffness and dissipation; MJX has DiffMJX's soft contact where something is dissipated, and the same
spring where nothing is. Its reverse mode allows one iteration of its solver, so there it is another program. jaxsim has
mbjax's law along the normal and another one of friction; of these problems, it can state two. Limits of engines with
fixed steps are differences over a change of 1e-3, with steps of 2e-5 s; those of mbjax's lagged steps are the
recommended setting's, whose law they have.

## Worst error by any knob, and run time

At a step of 1 ms, or with the default tolerance.
"""


def kind(record: Record) -> str:
    """What the knob is: a coordinate, a speed, a force or a parameter."""
    return record["knob"].split()[0]


def is_timed(record: Record) -> bool:
    """Whether it was compiled as users compile, so that its times count."""
    return "forward_run_s" in record


def name_of(record: Record) -> str:
    """Engine and setting."""
    return f"{record['engine']}, {record['setting']}"


def is_usual(record: Record) -> bool:
    """Whether its step is the one to show where one is shown."""
    return record["step"] == (TOLERANCE if record["setting"] in OWN_STEPS else STEP)


def names_in_order(records: list[Record]) -> list[str]:
    """Engines and settings as they were first run, mbjax first, its recommended setting before all."""
    names = list(dict.fromkeys(name_of(r) for r in records))
    return sorted(names, key=lambda name: (not name.endswith("recommended"), not name.startswith("mbjax")))


def has_limit_of_law(record: Record) -> bool:
    """Whether its limit is that of mbjax's recommended setting."""
    return record["engine"] == "mbjax" and record["setting"].startswith("lagged") and "form" not in record["limit_is"]


def with_errors(records: list[Record]) -> list[Record]:
    """Records with errors relative to the largest limit by a knob of the same kind, absolute where that is 0."""
    of_law = {(r["problem"], r["knob"]): r["limit"] for r in records if r["setting"] in OWN_STEPS}
    records = [r | {"limit": of_law.get((r["problem"], r["knob"]))} if has_limit_of_law(r) else r for r in records]
    records = [r for r in records if r["limit"] is not None]
    sizes: dict[tuple, float] = {}
    for r in records:
        key = (name_of(r), r["problem"], kind(r))
        sizes[key] = max(sizes.get(key, 0.0), abs(r["limit"]))
    scaled = []
    for r in records:
        size = sizes[name_of(r), r["problem"], kind(r)]
        size = size if size > 1e-12 else 1.0
        beside = None if r["differences"] is None else abs(r["forward"] - r["differences"]) / size
        scaled.append(r | {"error": abs(r["forward"] - r["limit"]) / size, "beside": beside, "size": size})
    return scaled


def percent(error: float) -> str:
    """An error with two digits."""
    if not error < float("inf"):
        return "NaN"
    return "> 1e4 %" if error > 100.0 else f"{100.0 * error:.2g} %" if error > 1e-8 else "< 1e-6 %"


def range_of(numbers: list[float]) -> str:
    """The smallest and the largest number, or how far from -1 they are."""
    worst = max(abs(number + 1.0) for number in numbers)
    if worst < 1e-3:
        return f"-1 ± {worst:.0e}"
    low, high = f"{min(numbers):.4g}", f"{max(numbers):.4g}"
    return low if low == high else f"{low} to {high}"


def markdown(head: list[str], rows: list[list[str]]) -> list[str]:
    """A table."""
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)] + [""]


def summary(records: list[Record]) -> list[str]:
    """The worst error by any knob, and the run time in forward mode, for each problem and engine."""
    shown = [r for r in records if is_usual(r)]
    names, rows = names_in_order(shown), []
    for problem in dict.fromkeys(r["problem"] for r in shown):
        row = [problem]
        for name in names:
            own = [r for r in shown if r["problem"] == problem and name_of(r) == name]
            worst = max((r["error"] if r["error"] == r["error"] else float("inf") for r in own), default=None)
            run = f", {own[0]['forward_run_s']:.2g} s" if own and is_timed(own[0]) else ""
            row.append("" if worst is None else percent(worst) + run)
        rows.append(row)
    return markdown(["problem", *names], rows)


def sweep_table(records: list[Record]) -> list[str]:
    """dz(T) / dz(0) of the bounce for each stiffness and engine, over the starts."""
    names = names_in_order(records)
    rows = []
    for stiffness in sorted({r["stiffness"] for r in records}):
        row = [f"{stiffness:.0e} N/m"]
        for name in names:
            row.append(range_of([r["forward"] for r in records if r["stiffness"] == stiffness and name_of(r) == name]))
        rows.append(row)
    return markdown(["stiffness", *names], rows)


def toss_errors(records: list[Record]) -> tuple[list[float | None], list[bool]]:
    """The error at each speed that has a limit, and whether the derivative jumps between it and a neighbour."""
    slopes = [r["forward"] for r in records]
    median = sorted(map(abs, slopes))[len(slopes) // 2]
    errors = [
        abs(r["forward"] - r["limit"]) / max(abs(r["limit"]), CROSSING * median) if "limit" in r else None
        for r in records
    ]
    at_kink = [False] * len(records)
    for i, (a, b) in enumerate(itertools.pairwise(records)):
        change = (b["value"] - a["value"]) / (b["vz"] - a["vz"])
        size = max(abs(slopes[i]), abs(slopes[i + 1]), median)
        if abs(change - 0.5 * (slopes[i] + slopes[i + 1])) > KINK * size:
            at_kink[i] = at_kink[i + 1] = True
    return errors, at_kink


def toss_table(records: list[Record], compile_times: dict[str, float]) -> list[str]:
    """A line for each object: errors over speeds, and over those between which and whose neighbours nothing jumps."""
    rows = []
    for problem in dict.fromkeys(r["problem"] for r in records):
        own = sorted((r for r in records if r["problem"] == problem), key=lambda r: r["vz"])
        errors, at_kink = toss_errors(own)
        ranked = sorted(e for e in errors if e is not None)
        smooth = sorted(e for e, jumps in zip(errors, at_kink, strict=True) if e is not None and not jumps)
        runs = sorted(r["run_s"] for r in own if "run_s" in r)
        rows.append(
            [
                problem,
                f"{len(own)}, {len(ranked)}",
                percent(ranked[len(ranked) // 2]),
                percent(ranked[int(0.9 * len(ranked))]),
                percent(ranked[-1]),
                str(sum(at_kink)),
                percent(smooth[-1]) if smooth else "",
                f"{runs[len(runs) // 2]:.2f}, {runs[-1]:.2f}" if runs else "",
                f"{compile_times[problem]:.0f}" if problem in compile_times else "",
            ]
        )
    head = ["object", "speeds, compared", "median error", "90 % are below", "worst", "beside kinks"]
    return markdown([*head, "worst of the others", "run: median, worst (s)", "compile (s)"], rows)


def table(records: list[Record]) -> list[str]:
    """A table for each problem: a line for each knob, engine and step."""
    head = ["by", "engine", "step", "derivative", "limit", "error", "beside own differences", "reverse - forward"]
    head += ["run: forward, reverse (s)", "compile: forward, reverse (s)"]
    lines, names = [], names_in_order(records)
    for problem in dict.fromkeys(r["problem"] for r in records):
        own = [r for r in records if r["problem"] == problem]
        rows = []
        for r in sorted(own, key=lambda r: (r["knob"], names.index(name_of(r)), -r["step"])):
            both = "" if r.get("reverse") is None else percent(abs(r["reverse"] - r["forward"]) / r["size"])
            step = f"{r['step']:.0e}" + (" (tolerance)" if r["setting"] in OWN_STEPS else " s")
            times = [
                ", ".join(f"{r[key]:.2g}" for mode in ("forward", "reverse") if (key := f"{mode}_{what}_s") in r)
                for what in ("run", "compile")
            ]
            both = "none" if "reverse_failed" in r else both
            derivatives = [f"{r['forward']:.6g}", f"{r['limit']:.6g}", percent(r["error"])]
            derivatives.append("" if r["beside"] is None else percent(r["beside"]))
            rows.append([r["knob"], name_of(r), step, *derivatives, both, *times])
        lines += [f"### {problem[0].upper()}{problem[1:]}", "", *markdown(head, rows)]
    return lines


def plot_by_step(records: list[Record]) -> Any:
    """Errors of the cube's derivative by step and by run time."""
    import matplotlib.pyplot as plt

    figure, (by_step, by_time) = plt.subplots(1, 2, figsize=(10, 3.8), sharey=True)
    for i, name in enumerate(names_in_order(records)):
        own = sorted((r for r in records if name_of(r) == name and r["error"] < 1e6), key=lambda r: r["step"])
        errors, is_own = [r["error"] for r in own], own[0]["setting"] in OWN_STEPS
        style = {"marker": "*" if is_own else "o", "color": f"C{i}", "label": name}
        if all(is_timed(r) for r in own):
            by_time.loglog([r["forward_run_s"] for r in own], errors, **style)
        if is_own:
            usual = next(r for r in own if is_usual(r))
            by_step.axhline(usual["error"], linestyle="--", color=f"C{i}", label=f"{name} (its own steps)")
        else:
            by_step.loglog([r["step"] for r in own], errors, **style)
    by_step.set(xscale="log", yscale="log", xlabel="time step (s)", ylabel="relative error of dy(1 s) / dvz(0)")
    by_time.set(xlabel="run time with the derivative (s)")
    by_step.set_title("Cube toss, by step", fontsize=10)
    by_time.set_title("and by run time (steps or tolerances)", fontsize=10)
    for axes in (by_step, by_time):
        axes.axhline(0.01, color="gray", linewidth=0.6)
        axes.grid(alpha=0.3)
    by_step.legend(fontsize=7)
    return figure


def plot_by_stiffness(records: list[Record]) -> Any:
    """The worst error over starts by stiffness."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.5, 3.8))
    for name in names_in_order(records):
        own = [r for r in records if name_of(r) == name]
        at = sorted({r["stiffness"] for r in own})
        worst = [max(abs(r["forward"] + 1.0) for r in own if r["stiffness"] == k) for k in at]
        axes.loglog(at, worst, "o-", label=name)
    axes.axhline(1.0, color="gray", linewidth=0.6)
    axes.set(xlabel="stiffness (N/m)", ylabel="worst error of dz(T) / dz(0), truth -1")
    axes.set_title("Bounce at a step of 1 ms, over starts; above 1 the sign may be wrong", fontsize=10)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)
    return figure


def plot_by_start(records: list[Record]) -> Any:
    """The derivative by the first speed, of each object."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(r["problem"] for r in records))
    figure, panels = plt.subplots(len(names), 1, figsize=(7, 1.7 * len(names) + 0.6), sharex=True, squeeze=False)
    for axes, problem in zip(panels[:, 0], names, strict=True):
        for name in reversed(names_in_order(records)):
            own = sorted((r["vz"], r["forward"]) for r in records if r["problem"] == problem and name_of(r) == name)
            is_recommended = name.endswith("recommended")
            if own:
                style = {"color": "C0", "zorder": 2} if is_recommended else {"color": "C1", "alpha": 0.6}
                axes.plot(*zip(*own, strict=True), ".", markersize=4, **style, label=name)
        good = sorted(r["forward"] for r in records if r["problem"] == problem and r["setting"] in OWN_STEPS)
        if good:
            low, high = good[len(good) // 10], good[-1 - len(good) // 10]
            room = max(0.8 * (high - low), 1e-4)
            axes.set_ylim(low - room, high + room)
        axes.set_title(problem, fontsize=9)
        axes.set_ylabel("dy / dvz", fontsize=8)
        axes.grid(alpha=0.3)
    panels[0, 0].legend(fontsize=7, loc="upper left")
    panels[-1, 0].set_xlabel("vz at the start (m/s)")
    return figure


def plots(records: list[Record], sweep: list[Record], speeds: list[Record], folder: pathlib.Path) -> list[str]:
    """Writes the plots that there are records for; their names."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    of_cube = [r for r in records if r["problem"] == cube_toss.name]
    figures = {
        "contact_gradients_by_step.png": plot_by_step(of_cube) if of_cube else None,
        "contact_gradients_by_stiffness.png": plot_by_stiffness(sweep) if sweep else None,
        "contact_gradients_by_start.png": plot_by_start(speeds) if speeds else None,
    }
    written = {name: figure for name, figure in figures.items() if figure is not None}
    for name, figure in written.items():
        figure.tight_layout()
        figure.savefig(folder / name, dpi=100)
        plt.close(figure)
    return list(written)


def write_report(records: list[Record], usage: pathlib.Path) -> None:
    """Writes the page with the tables, and the plots to the folder of images."""
    of_knobs = with_errors([r for r in records if "knob" in r])
    sweep, speeds = [r for r in records if "stiffness" in r], [r for r in records if "vz" in r]
    tosses = [r for r in speeds if r["setting"] in OWN_STEPS]
    compile_times = {
        r["problem"]: r["forward_compile_s"] for r in of_knobs if is_timed(r) and r["setting"] in OWN_STEPS
    }
    lines = [HEAD, *summary(of_knobs)]
    if sweep:
        lines += [f"## {bounce().name.split(',')[0].capitalize()}s by stiffness: dz(T) / dz(0), truth -1", ""]
        lines += ["At a step of 1 ms, over five starts.", "", *sweep_table(sweep)]
    if tosses:
        lines += ["## Tossed objects over speeds", ""]
        lines += [
            "A speed is beside a kink if the change of the value to the next one is not that of the derivatives.",
            "",
        ]
        lines += toss_table(tosses, compile_times)
    lines += ["## All derivatives", "", *table(of_knobs)]
    (usage / "contact_gradients_table.md").write_text("\n".join(lines).rstrip() + "\n")
    plots(of_knobs, sweep, speeds, usage.parent / "images")
