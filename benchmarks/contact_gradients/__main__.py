"""Runs the engines on the problems and writes the table and the plots.

    python -m benchmarks.contact_gradients [--quick] [--values] [--speeds N] [--engine NAME=PYTHON ...] [--only TEXT]

Records go to `results.json` beside this file; a run replaces those that it made again. With `--report` it only writes
`docs/usage/contact_gradients_table.md` and the plots in `docs/images`. MuJoDiCo comes with an MJX of its own, so give
it an environment of its own, and jaxsim too: `--engine mujodico=/path/to/python --engine jaxsim=/path/to/python`. Every
run is a process of its own, one at a time.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from .problems import OWN_STEPS, TOLERANCE, billiards, bounce, cube_toss, problems
from .report import write_report

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results.json"
TIMEOUT = 1800  # s, of one run
SETTINGS = {
    "mbjax": ("recommended", "lagged", "lagged, contact_prediction", "sap"),
    "mjx": ("Euler", "RK4"),
    "mujodico": ("smoothing 1e-5", "smoothing 1e-3"),
    "jaxsim": ("semi-implicit Euler", "RK4"),
}
FEW = (cube_toss.name, billiards().name, bounce().name)
OF_FEW = {  # settings that are measured on few problems
    "lagged, contact_prediction": FEW,
    "smoothing 1e-3": FEW,
    "sap": FEW[:1],
    "RK4": FEW[:1],
    "semi-implicit Euler": FEW[::2],
}
STEPS = (1e-2, 1e-3, 1e-4)  # s
TOLERANCES = (10.0 * TOLERANCE, TOLERANCE, 0.1 * TOLERANCE)


def runs(engines: list[str], quick: bool) -> list[tuple[str, ...]]:
    """Engine, setting, problem and steps of each run; quick ones have one step and each engine's first setting."""
    found = []
    for engine in engines:
        for setting in SETTINGS[engine][: 1 if quick else None]:
            steps = TOLERANCES if setting in OWN_STEPS else STEPS
            steps = [f"{step:.0e}" for step in (steps[1:2] if quick else steps)]
            found += [(engine, setting, name, *steps) for name in OF_FEW.get(setting, problems())]
    return found


def read() -> list[dict[str, Any]]:
    """The records that there are."""
    return json.loads(RESULTS.read_text()) if RESULTS.exists() else []


def main() -> int:
    """Runs what was asked for, and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="each engine's first setting with one step")
    parser.add_argument("--engine", action="append", default=[], help="NAME or NAME=PYTHON; mbjax and mjx by default")
    parser.add_argument("--only", nargs="+", default=[], help="runs whose engine, setting or problem has every text")
    parser.add_argument("--values", action="store_true", help="compile without optimization, and keep no times")
    parser.add_argument("--speeds", type=int, default=200, help="how many speeds tosses have")
    parser.add_argument("--report", action="store_true", help="write the report from the records that there are")
    options = parser.parse_args()
    pythons = dict(name.split("=", 1) if "=" in name else (name, sys.executable) for name in options.engine)
    pythons = pythons or {"mbjax": sys.executable, "mjx": sys.executable}
    for run in [] if options.report else runs(list(pythons), options.quick):
        if not all(any(text in part for part in run[:3]) for text in options.only):
            continue
        flags = ["--values"] * options.values + [f"--speeds={options.speeds}"]
        command = [pythons[run[0]], "-m", "benchmarks.contact_gradients.measured", *flags, *run]
        environment = os.environ | {"PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"}
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
            )
            lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
            failure = "" if done.returncode == 0 else done.stderr.strip().splitlines()[-1]
        except subprocess.TimeoutExpired:
            lines, failure = [], f"not done within {TIMEOUT} s"
        print(*run, failure or f"{len(lines)} records", flush=True)
        if lines:  # of a file that another run may have written meanwhile
            kept = [r for r in read() if (r["engine"], r["setting"], r["problem"]) != run[:3]]
            kept += map(json.loads, lines)
            RESULTS.write_text("[\n" + ",\n".join(map(json.dumps, kept)) + "\n]\n")
    write_report(read(), ROOT / "docs" / "usage")
    return 0


if __name__ == "__main__":
    sys.exit(main())
