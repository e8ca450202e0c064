"""MuJoDiCo's tasks of contact-implicit planning beside it: goal error by its own scorer, and seconds.

    python -m benchmarks.mujodico --mujodico PYTHON [--tasks PushSphere1d PushBox2d] [--save FILE]

PYTHON is an interpreter with `pip install mujodico cyipopt-wheels mjviser viser plotly`. Each task is read from it, and
stated here on the same MJCF text, with the same costs, limits of the controls and steps, and without a guess. The goal
error is xᵀ Q x of the last planned state. MuJoDiCo's contact is smoothed, so that surfaces push from a distance. There
are two plans here: one smoothed by a length of the same number, though not by the same law, and one that goes on from
it to sharp contact. Times are of the processor, on compiled programs. Of the eleven tasks, the three with an Allegro
hand need files that the package does not hold.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to

TASKS = (
    "PushSphere1d", "PushSphere2d", "PushMultiSphere2d", "PushBox2d", "FingersSphere2d", "FingerCircularKnob",
    "PushCircularKnob", "PushSquareKnob",
)  # fmt: skip
NOT_STATED = {name: "the package has no models/wonik_allegro" for name in ("AllegroBall", "AllegroCube", "AllegroPen")}


class ServoStep:
    """A step whose controls are the desired velocities of the model's servos."""

    def __call__(self, model: mbjax.MultibodyModel, state: mbjax.State, control: jax.Array) -> mbjax.State:
        desired = jnp.concatenate([jnp.zeros_like(control), control])
        return mbjax.step(model, state, mbjax.Inputs(desired_state=desired))[0]


def load(given: dict[str, Any]) -> mbjax.MultibodyModel:
    """The task's model, with Hunt and Crossley's contact and a smoothing length to set."""
    plant = mbjax.MultibodyPlant(
        given["dt"], discrete_contact_approximation="lagged", contact_smoothing_length=given["smoothing"]
    )
    mbjax.Parser(plant, on_unsupported="warn").add_models(given["xml"])
    return plant.finalize()


def problem_of(given: dict[str, Any]) -> to.Problem:
    """The task's costs: xᵀ Q x is half the square of the residual √(2Q) x."""
    model, nq = load(given), len(given["x_0"]) // 2
    start, goal = (
        mbjax.State(jnp.array(given[key][:nq]), jnp.array(given[key][nq:]), jnp.zeros(())) for key in ("x_0", "x_goal")
    )
    Q, Qf, R = (np.sqrt(2.0 * np.diag(given[key])) for key in ("Q", "Qf", "R"))
    running = [to.StateGoal(goal, Q), to.Effort(R, given["u_ref"])]
    limits = jnp.array(given["low"]), jnp.array(given["high"])
    return to.Problem(model, start, given["horizon"], running, to.StateGoal(goal, Qf), limits, dynamics=ServoStep())


def solved(given: dict[str, Any], iterations: int) -> dict[str, dict[str, Any]]:
    """The smoothed plan and the sharp one: goal error, cost, and seconds of a second call, which compiles nothing."""
    problem, solver = problem_of(given), to.FeasibilityDDP(max_iterations=iterations, tolerance=1e-5)
    length = given["smoothing"]

    def run() -> tuple[list[to.Solution], list[float]]:
        begin, plans, times = time.process_time(), [], []
        for lengths in ([length], [0.3 * length, 0.1 * length, 0.01 * length, 0.0]):
            guess = plans[-1] if plans else None
            plan = to.solve_through_contact(problem, guess, solver, smoothing_lengths=lengths)
            plans.append(jax.block_until_ready(plan))
            times.append(time.process_time() - begin)
        return plans, times

    first = run()[1]
    plans, times = run()
    return {
        name: {
            "goal_error": goal_error(given, plan),
            "cost": float(plan.cost),
            "seconds": seconds,
            "compile_seconds": first[1] - times[1],
            "converged": bool(plan.report.converged),
        }
        for name, plan, seconds in zip(("smoothed", "sharp"), plans, times, strict=True)
    }


def goal_error(given: dict[str, Any], plan: to.Solution) -> float:
    """MuJoDiCo's score of the last planned state."""
    last = np.concatenate([plan.states.q[-1], plan.states.v[-1]]) - given["x_goal"]
    return float(last @ np.array(given["Q"]) @ last)


def tasks_of(python: str, names: list[str], limit: int, method: str) -> list[dict[str, Any]]:
    """The tasks, and what MuJoDiCo made of them, in a process of its own."""
    script = str(pathlib.Path(__file__).with_name("mujodico_tasks.py"))
    done = subprocess.run(
        [python, "-P", script, str(limit), method, *names], capture_output=True, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    """Prints a row for each task, and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mujodico", default=sys.executable, help="an interpreter that has MuJoDiCo")
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--method", default="IpoptMultipleShooting", help="one of MuJoDiCo's methods")
    parser.add_argument(
        "--limit", type=int, default=900, help="processor seconds for one task there, compilation included"
    )
    parser.add_argument("--iterations", type=int, default=60, help="at most, for each smoothing length, here")
    parser.add_argument("--read", type=pathlib.Path, help="a file with lines of mujodico_tasks.py, in place of a run")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    if options.read is not None:
        found = [json.loads(line) for line in options.read.read_text().splitlines()]
        found = [given for given in found if given["name"] in options.tasks]
    else:
        found = tasks_of(options.mujodico, list(options.tasks), options.limit, options.method)
    names = "smoothed", "sharp", "MuJoDiCo"
    columns = ["task", *(f"{what}, {name}" for what in ("goal error", "cost", "processor s") for name in names)]
    columns += ["compile s here", "there", "remarks"]
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    both = []
    for given in found:
        if "xml" not in given:
            print(f"| {given['name']} | {given['error']} |")
            continue
        ours = solved(given, options.iterations)
        keys = "goal_error", "cost", "seconds", "compile_seconds"
        each = [*ours.values(), {key: given.get(key, np.nan) for key in keys}]
        if "error" not in given:
            both.append(each)
        numbers = [f"{one[key]:.3g}" for key in keys[:3] for one in each]
        numbers += [f"{each[k]['compile_seconds']:.0f}" for k in (1, 2)]
        remarks = [f"{name} not converged" for name, one in ours.items() if not one["converged"]]
        remarks += [given["error"]] if "error" in given else []
        print("| " + " | ".join([given["name"], *numbers, "; ".join(remarks)]) + " |", flush=True)
    for name, reason in NOT_STATED.items():
        print(f"| {name} | {reason} |")
    for key in ("goal_error", "seconds") if both else ():
        medians = [np.median([each[k][key] for each in both]) for k in range(3)]
        print(f"median {key} of {len(both)}: " + ", ".join(f"{m:.3g} {n}" for n, m in zip(names, medians, strict=True)))


if __name__ == "__main__":
    main()
