"""Runs the engines on the problems and writes the table and the plots.

    python -m benchmarks.contact_gradients [--quick] [--engine NAME=PYTHON ...] [--only PART ...] [--report]

Records go to `results.json` beside this file; a run replaces those that it made again. `--report` only writes
`docs/usage/contact_gradients_table.md` and the plots beside it. MuJoDiCo comes with an MJX of its own, so give it an
environment of its own: `--engine mujodico=/path/to/python`. Every run is a process of its own, one at a time.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

from .problems import OBJECTS, SWEEP, problems
from .report import write_report

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
RESULTS = HERE / "results.json"
TIMEOUT = 1800  # s, of one run
SETTINGS = {
    "mbjax": ("recommended", "lagged", "lagged, contact_prediction", "sap", "continuous, smoothed"),
    "mjx": ("Euler", "RK4"),
    "mujodico": ("Hunt-Crossley", "Hunt-Crossley, smoothed"),
}
STEPS = {"mbjax": (1e-2, 1e-3, 1e-4), "mjx": (1e-2, 1e-3, 1e-4), "mujodico": (1e-2, 1e-3, 1e-4)}
CHOOSES_STEPS = {"recommended", "continuous, smoothed"}


def runs(engines: list[str], quick: bool) -> list[tuple[str, str, str, str]]:
    """Engine, setting, step and problem of each run; quick ones have one step and no sweep."""
    found = []
    for engine in engines:
        for setting in SETTINGS[engine][: 1 if quick and engine != "mbjax" else None]:
            steps = (1e-3,) if quick or setting in CHOOSES_STEPS else STEPS[engine]
            found += [(engine, setting, str(step), name) for name in problems() for step in steps]
            if not quick:
                found += [(engine, setting, "0.001", f"bounce {k:.0e}") for k in SWEEP]
    if "mbjax" in engines and not quick:
        found += [("mbjax", "tosses", "200", shape) for shape in OBJECTS]
    return found


def key(record: dict[str, Any]) -> tuple:
    """What makes a record another one."""
    return tuple(str(record.get(name)) for name in ("engine", "setting", "step", "problem", "knob", "shape", "vz"))


def main() -> int:
    """Runs what was asked for, and writes the report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one step for each setting, no sweep, no tosses")
    parser.add_argument("--engine", action="append", default=[], help="NAME or NAME=PYTHON; mbjax and mjx by default")
    parser.add_argument(
        "--only", nargs="+", default=[], help="runs whose engine, setting, step or problem has this text"
    )
    parser.add_argument("--report", action="store_true", help="write the report from the records that there are")
    options = parser.parse_args()
    pythons = dict(name.split("=", 1) if "=" in name else (name, sys.executable) for name in options.engine)
    pythons = pythons or {"mbjax": sys.executable, "mjx": sys.executable}
    kept = {key(record): record for record in (json.loads(RESULTS.read_text()) if RESULTS.exists() else [])}
    for run in [] if options.report else runs(list(pythons), options.quick):
        if not all(any(text in part for part in run) for text in options.only):
            continue
        command = [pythons[run[0]], "-m", "benchmarks.contact_gradients.measured", *run]
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
        for record in map(json.loads, lines):
            kept[key(record)] = record
        RESULTS.write_text(json.dumps(list(kept.values()), indent=1) + "\n")
    write_report(list(kept.values()), ROOT / "docs" / "usage")
    return 0


if __name__ == "__main__":
    sys.exit(main())
