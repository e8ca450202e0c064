"""Trajectory optimization beside Crocoddyl: the same problem, cost at convergence, time of an iteration.

    python -m benchmarks.trajectory_optimization [--crocoddyl PYTHON]

PYTHON is an interpreter that has Crocoddyl (`pip install crocoddyl pin==4.0.0`; 3.2.1 crashes beside Pinocchio 4.1).

The problem is an arm (Talos's left, 7 joints) that reaches for a point: costs of the hand's distance, of the state and
of the efforts at every step, and more of the distance at the end. Both integrate by semi-implicit Euler steps and start
from rest without effort. Times are of the processor, all threads together, so that other work matters less.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to

from .robots import Robot, reduced_urdf

ARM = Robot("talos arm", "Talos's left arm (7 dof)", "talos_data/robots/talos_left_arm.urdf", "fixed")
HAND = "gripper_left_joint"
START = np.array([0.173, 0.3, 0.2, -1.3, 0.4, 0.2, -0.1])
TARGET = np.array([0.35, 0.45, 0.1])
DT, STEPS = 0.01, 100
GOAL, STATE, EFFORT, GOAL_AT_END = 1.0, 0.1, 0.01, 100.0


@dataclasses.dataclass
class Result:
    """What one library found, and how long it took."""

    cost: float
    iterations: int
    seconds: float  # of processor time to solve, after compiling
    compile_seconds: float
    efforts: np.ndarray
    states: np.ndarray

    def __str__(self) -> str:
        each = 1e3 * self.seconds / self.iterations
        return (
            f"cost {self.cost:.9f}, {self.iterations} iterations, {1e3 * self.seconds:.2f} ms, {each:.3f} ms each, "
            f"{self.compile_seconds:.1f} s to compile"
        )


def arm_text() -> str:
    """The arm's URDF, reduced to inertias and joints without limits."""
    return reduced_urdf(ARM)


def hand_frame(model: mbjax.MultibodyModel) -> str:
    """The last link."""
    return model.body_names[-1]


def with_crocoddyl(python: str) -> Result:
    """Crocoddyl's FDDP, in a process of its own: its libraries do not load beside Drake's."""
    given = {
        "urdf": arm_text(),
        "frame": hand_frame(load_arm()),
        "start": START.tolist(),
        "target": TARGET.tolist(),
        "dt": DT,
        "steps": STEPS,
        "factors": [GOAL, STATE, EFFORT, GOAL_AT_END],
    }
    script = pathlib.Path(__file__).with_name("crocoddyl_arm.py")
    done = subprocess.run([python, script], input=json.dumps(given), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    return Result(
        found["cost"],
        found["iterations"],
        found["seconds"],
        0.0,
        np.array(found["efforts"]),
        np.array(found["states"]),
    )


def load_arm() -> mbjax.MultibodyModel:
    """The arm here: joints without limits are continuous, and its motors have none."""
    text = re.sub(r"<limit [^>]*/>", "", arm_text()).replace('type="revolute"', 'type="continuous"')
    return mbjax.load(text, time_step=DT, base="fixed", actuators="joints", on_unsupported="warn")


def problem_here(model: mbjax.MultibodyModel) -> to.Problem:
    """The same costs: a residual's factor in a cost is the square of its weight."""
    start = mbjax.State(jnp.asarray(START), jnp.zeros(7), jnp.zeros(()))

    def weight(factor: float) -> float:
        return float(np.sqrt(factor))

    reach = to.PointGoal(hand_frame(model), TARGET, weight(GOAL * DT))
    stay = to.StateGoal(start, weight(STATE * DT))
    end = [to.PointGoal(hand_frame(model), TARGET, weight(GOAL_AT_END)), to.StateGoal(start, weight(STATE))]
    return to.Problem(model, start, STEPS, [reach, stay, to.Effort(weight(EFFORT * DT))], end)


def here() -> Result:
    """FeasibilityDDP of this library."""
    model = load_arm()
    problem, solver = problem_here(model), to.FeasibilityDDP(tolerance=1e-12, max_iterations=100)
    begin = time.process_time()
    plan = jax.block_until_ready(to.solve(problem, solver=solver))
    compile_seconds = time.process_time() - begin
    seconds = np.inf
    for _ in range(30):
        begin = time.process_time()
        plan = jax.block_until_ready(to.solve(problem, solver=solver))
        seconds = min(seconds, time.process_time() - begin)
    states = np.concatenate([plan.states.q, plan.states.v], axis=1)
    return Result(
        float(plan.cost),
        int(plan.report.iterations),
        seconds,
        compile_seconds - seconds,
        np.asarray(plan.efforts),
        states,
    )


def main() -> None:
    """Prints both results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crocoddyl", default=sys.executable, help="an interpreter that has Crocoddyl")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    ours = here()
    print("mbjax    ", ours)
    theirs = with_crocoddyl(options.crocoddyl)
    print("Crocoddyl", theirs)
    print(
        f"cost differs by {abs(ours.cost - theirs.cost) / theirs.cost:.1e} of itself, "
        f"efforts by {np.max(np.abs(ours.efforts - theirs.efforts)):.1e} N m"
    )


if __name__ == "__main__":
    main()
