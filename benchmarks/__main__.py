"""`python -m benchmarks [--quick] [--robots ...] [--peers ...]`: every peer in its own process, tables, plot.

A full run rewrites `RESULTS.md`, `results.json` and `forward_dynamics.png` beside this file. With `--quick`, or when
only some robots or peers are measured, nothing is written unless `--output` says where.

`python -m benchmarks --only NAME ...` runs the scripts of one question instead, each beside this file as NAME.py;
they write NAME.md, NAME.json and a plot into the folder of `--output`.
"""

import argparse
import dataclasses
import json
import pathlib
import shlex
import sys
import tempfile
import time

from rich.console import Console

from .forward_dynamics import MJX_VJP, Case, default_cases
from .measure import load_average, machine
from .peers import PEERS
from .processes import environment_of_process, print_tables, run_limited
from .report import all_tables, notes_of, write_markdown, write_plot
from .results import Results
from .robots import ALL_ROBOTS, BUNDLED, PIP_NAME, ROBOTS
from .run_scripts import SCRIPT_LIMIT_S, SCRIPTS, run_scripts

TIME_LIMIT_S = 150.0
WIDTH = 118  # of tables in a file or a pipe
HERE = pathlib.Path(__file__).resolve().parent
ONE_THREAD_CASES = (Case("fd", "batch4096", "closed"), Case("vjp", "batch4096", "closed"))


@dataclasses.dataclass(frozen=True)
class Job:
    """One process: a peer in a dtype on a number of threads, 0 for all."""

    peer: str
    dtype: str
    threads: int
    cases: tuple[Case, ...]

    @property
    def title(self) -> str:
        return f"{PEERS[self.peer].title}, {self.dtype}" + (f", {self.threads} thread" if self.threads else "")


def plan(peers: list[str], everything: bool) -> list[Job]:
    """The most telling first; what may run into its time limit last."""
    through_jax = [peer for peer in peers if PEERS[peer].uses_jax]
    quick_to_compile = [peer for peer in through_jax if peer != "mjx"]
    jobs = [Job(p, d, 0, tuple(default_cases(p, d))) for p in peers if p not in through_jax for d in PEERS[p].dtypes]
    jobs += [Job(peer, "f32", 0, tuple(default_cases(peer, "f32"))) for peer in through_jax]
    jobs += [Job(peer, dtype, 1, ONE_THREAD_CASES) for dtype in ("f32", "f64") for peer in quick_to_compile]
    jobs += [Job(peer, "f64", 0, tuple(default_cases(peer, "f64"))) for peer in through_jax]
    if everything and "mjx" in peers:
        jobs += [Job("mjx", "f32", 1, ONE_THREAD_CASES[:1]), Job("mjx", "f32", 0, (MJX_VJP,))]
    return jobs


def run_job(job: Job, reference: pathlib.Path, options: argparse.Namespace) -> list[dict]:
    """The records of one process; what its time limit cut off is recorded as such."""
    command = [sys.executable, "-m", "benchmarks.forward_dynamics", "measure", str(reference)]
    command += ["--peer", job.peer, "--dtype", job.dtype, "--robots", *options.robots]
    command += ["--cases", *map(str, job.cases)] + ["--quick"] * options.quick
    lines, rc, errors = run_limited(command, environment_of_process(job.threads), options.time_limit)
    keys = {"peer": job.peer, "dtype": job.dtype, "threads": job.threads}
    records = [{**json.loads(line), **keys} for line in lines if line.startswith("{")]
    if rc == 0:
        return records
    done = {(r["robot"], r["case"]) for r in records if "case" in r}
    excluded = {r["robot"] for r in records if r["status"] in ("missing", "failed") and "case" not in r}
    status, detail = ("timeout", f"process limit {options.time_limit:g} s") if rc is None else ("failed", errors)
    for case in job.cases:
        for robot in options.robots:
            if (robot, str(case)) not in done and robot not in excluded:
                records.append({**keys, "robot": robot, "case": str(case), "status": status, "detail": detail})
    return records


def measure_everything(options: argparse.Namespace, console: Console) -> Results:
    loads = {"load before": load_average()}
    started = time.monotonic()
    records: list[dict] = []
    during: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        reference = pathlib.Path(folder) / "states.npz"
        with console.status("random states and reference answers"):
            command = [sys.executable, "-m", "benchmarks.forward_dynamics", "reference", str(reference)]
            _, rc, error = run_limited([*command, "--robots", *options.robots], None, options.time_limit)
        if rc != 0:
            raise SystemExit(f"the reference states could not be computed: {error or 'time limit'}")
        for job in plan(options.peers, options.all):
            with console.status(job.title):
                job_started = time.monotonic()
                found = run_job(job, reference, options)
            records += found
            during.append(load_average().split()[0])
            outcome = ", ".join(
                f"{sum(r['status'] == status for r in found)} {status}"
                for status in ("measured", "missing", "failed", "timeout")
                if any(r["status"] == status for r in found)
            )
            console.print(f"{job.title}: {outcome} in {time.monotonic() - job_started:.0f} s, load {load_average()}")
    with console.status("rollout memory"):
        command = [sys.executable, "-m", "benchmarks.rollout_memory"] + ["--quick"] * options.quick
        lines, rc, error = run_limited(command, None, options.time_limit)
        if rc != 0:
            console.print(f"[red]rollout memory: {error or 'time limit'}")
    loads["load after each process (1 min; our own included, 1 to 2)"] = " ".join(during)
    loads["load after"] = load_average()
    loads["whole run"] = f"{time.monotonic() - started:.0f} s"
    rollout = [json.loads(line) for line in lines if line.startswith("{")]
    return Results(machine(), tuple(options.robots), records, rollout, loads, shlex.join(options.command))


def print_results(results: Results, console: Console) -> None:
    print_tables(all_tables(results), console)
    for note in notes_of(results):
        console.print(f"- {note}", highlight=False)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    scripts = "\n".join(f"  {name:15} {script.about}" for name, script in SCRIPTS.items())
    parser.epilog = f"scripts of one question:\n{scripts}"
    parser.add_argument("--only", nargs="+", choices=SCRIPTS, metavar="NAME", help="run these scripts, listed below")
    parser.add_argument("--quick", action="store_true", help="few repetitions: to see that it works, not to quote")
    parser.add_argument(
        "--robots", nargs="+", choices=ALL_ROBOTS, default=list(ROBOTS),
        help=f"of {', '.join(ALL_ROBOTS)}; {' and '.join(BUNDLED)} come with mbjax and are for --only",
    )  # fmt: skip
    parser.add_argument("--peers", nargs="+", choices=PEERS, help="(default: all, or what the script compares with)")
    parser.add_argument("--all", action="store_true", help="also MJX on one thread and its vjp, minutes to compile")
    parser.add_argument(
        "--time-limit",
        type=float,
        help=f"seconds per process (default {TIME_LIMIT_S:g}; {SCRIPT_LIMIT_S:g} with --only)",
    )
    parser.add_argument("--output", type=pathlib.Path, help="folder for RESULTS.md, the plot and the raw records")
    options = parser.parse_args(arguments)
    options.command = ["python", "-m", "benchmarks", *(sys.argv[1:] if arguments is None else arguments)]
    if options.only:
        return options
    if set(options.robots) & set(BUNDLED):
        parser.error(f"--robots {' '.join(BUNDLED)}: for --only NAME.")
    options.peers = options.peers or list(PEERS)
    options.time_limit = options.time_limit or TIME_LIMIT_S
    is_full = not options.quick and set(options.robots) == set(ROBOTS) and set(options.peers) == set(PEERS)
    if options.output is None and is_full:
        options.output = HERE
    return options


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    absent = [ALL_ROBOTS[name].title for name in options.robots if not ALL_ROBOTS[name].path.is_file()]
    if absent:
        console.print(f"[red]no file of {', '.join(absent)}: pip install {PIP_NAME}")
        return 1
    if options.only:
        return run_scripts(options.only, options, console)
    results = measure_everything(options, console)
    print_results(results, console)
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "results.json").write_text(json.dumps(dataclasses.asdict(results), indent=1))
        write_markdown(results, options.output / "RESULTS.md")
        try:
            write_plot(results, options.output / "forward_dynamics.png")
        except ImportError:
            console.print("[red]no plot: pip install matplotlib")
    return 0


if __name__ == "__main__":
    sys.exit(main())
