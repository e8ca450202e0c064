"""Drones beside Crocoddyl: the same costs, iterations, processor time of an iteration, and searches from many starts.

    python -m benchmarks.drones --crocoddyl PYTHON [--starts 100]

PYTHON is an interpreter that has Crocoddyl (`pip install crocoddyl==3.2.1 pin==4.0.0`). A free body with four
propellers flies from a turned start to hover at a point, with thrusts free, and between zero and a limit; a drone with
an arm of two joints does the same. Both integrate by semi-implicit Euler steps, here along the world's axes and there
along a twist of the body, so optimal costs differ a little. Both have the state's distance in the body's own frame as
cost.
"""

import argparse
import dataclasses
import json
import pathlib
import subprocess
import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to

BODY = """<link name="body"><inertial><mass value="1.0"/>
<inertia ixx="0.01" iyy="0.012" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
LINK = """<link name="{0}"><inertial><origin xyz="0 0 -0.1"/><mass value="0.1"/>
<inertia ixx="0.0005" iyy="0.0005" izz="0.0001" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{0}" type="continuous"><parent link="{1}"/><child link="{0}"/><origin xyz="0 0 {2}"/><axis xyz="{3}"/>
</joint>"""
DRONE = f'<robot name="drone">{BODY}</robot>'
FLYING_ARM = (
    f'<robot name="flying_arm">{BODY}{LINK.format("upper", "body", -0.05, "0 1 0")}'
    f"{LINK.format('lower', 'upper', -0.2, '1 0 0')}</robot>"
)
POINTS = [[0.2, 0.0, 0.0], [0.0, 0.2, 0.0], [-0.2, 0.0, 0.0], [0.0, -0.2, 0.0]]
DRAG = [0.02, -0.02, 0.02, -0.02]
HIGH = 6.0
DT, STEPS, MOST, TOLERANCE = 0.02, 100, 300, 1e-9
FACTORS, EFFORT, END = (1.0, 0.1), 0.1, 50.0  # of positions and velocities, of efforts, and of the state at the end


@dataclasses.dataclass(frozen=True)
class Case:
    """A robot and whether its thrusts have limits."""

    name: str
    text: str
    limited: bool


CASES = (
    Case("drone", DRONE, False),
    Case("drone with limits", DRONE, True),
    Case("flying arm", FLYING_ARM, False),
)


def starts_of(joints: int, count: int) -> np.ndarray:
    """Starts at rest, turned by up to 3 rad about any axis and some metres away: quaternion w first, point, joints."""
    rng = np.random.default_rng(7)
    axes = rng.normal(size=(count, 3))
    axes /= np.linalg.norm(axes, axis=1, keepdims=True)
    angles = rng.uniform(0.5, 3.0, size=(count, 1))
    points = rng.uniform(-1.5, 1.5, size=(count, 3))
    first = np.concatenate([[np.cos(0.6)], [np.sin(0.6), 0.0, 0.0], [1.0, -0.5, 0.4]])
    q = np.concatenate([np.cos(angles / 2), axes * np.sin(angles / 2), points], axis=1)
    q[0] = first
    return np.concatenate([q, np.tile(0.3 * np.ones(joints), (count, 1))], axis=1)


def problem_here(case: Case, q: np.ndarray) -> to.Problem:
    """The problem from one start."""
    model = mbjax.load(case.text, base="floating", time_step=DT, actuators="joints")
    joints = model.num_velocities - 6
    rotors = mbjax.WrenchActuators.propellers(
        ["body"] * 4,
        np.array(POINTS),
        drag=np.array(DRAG),
        low=0.0 if case.limited else -np.inf,
        high=HIGH if case.limited else np.inf,
    )
    hover = np.concatenate([np.zeros(joints), np.full(4, float(mbjax.total_mass(model)) * 9.81 / 4)])
    goal = mbjax.State(mbjax.default_state(model).q, jnp.zeros(model.num_velocities))
    factors = jnp.repeat(jnp.array(FACTORS), model.num_velocities, total_repeat_length=2 * model.num_velocities)
    state = to.StateGoal(goal, factor=factors, in_frame="own")
    end = to.StateGoal(goal, factor=END * factors, in_frame="own")
    start = mbjax.State(jnp.asarray(q), jnp.zeros(model.num_velocities))
    effort = to.Effort(factor=EFFORT, reference=hover)
    return to.Problem(model, start, STEPS, [state, effort], end, dynamics=to.WithWrenches(rotors), per="second")


def guess_of(problem: to.Problem) -> tuple:
    """The start held, and the thrusts of hovering."""
    states = jax.tree.map(lambda x: jnp.repeat(jnp.asarray(x)[None], STEPS + 1, axis=0), problem.start)
    return states, jnp.tile(problem.running[1].reference, (STEPS, 1))


def here(case: Case, count: int) -> list[dict]:
    """What this library finds from each start."""
    found, compile_seconds = [], 0.0
    solver = to.FeasibilityDDP(tolerance=TOLERANCE, max_iterations=MOST)
    joints = 0 if case.text == DRONE else 2
    problem = problem_here(case, starts_of(joints, count)[0])
    for k, q in enumerate(starts_of(joints, count)):
        problem = eqx.tree_at(lambda p: p.start.q, problem, jnp.asarray(q))
        seconds, guess = np.inf, guess_of(problem)
        for i in range(31 if k == 0 else 1):
            begin = time.process_time()
            plan = jax.block_until_ready(to.solve(problem, guess, solver))
            spent = time.process_time() - begin
            if k == i == 0:
                compile_seconds = spent
            else:
                seconds = min(seconds, spent)
        found.append(
            {
                "cost": float(plan.cost),
                "iterations": int(plan.report.iterations) - 1,  # the first only evaluates the guess
                "seconds": seconds,
                "converged": bool(plan.report.converged),
                "compile": compile_seconds,
            }
        )
    return found


def there(case: Case, python: str, count: int) -> list[dict]:
    """What Crocoddyl finds, in a process of its own; its quaternions have w last and its thrusters come first."""
    joints = 0 if case.text == DRONE else 2
    q = starts_of(joints, count)
    states = np.concatenate([q[:, 4:7], q[:, 1:4], q[:, :1], q[:, 7:], np.zeros((count, 6 + joints))], axis=1)
    mass = 1.0 + 0.1 * joints
    given = {
        "urdf": case.text,
        "points": POINTS,
        "drag": DRAG,
        "high": HIGH,
        "limited": case.limited,
        "hover": [mass * 9.81 / 4] * 4 + [0.0] * joints,
        "weights": FACTORS,
        "effort": EFFORT,
        "end": END,
        "dt": DT,
        "steps": STEPS,
        "most": MOST,
        "tolerance": TOLERANCE,
        "starts": states.tolist(),
    }
    script = pathlib.Path(__file__).with_name("crocoddyl_drones.py")
    done = subprocess.run([python, script], input=json.dumps(given), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> None:
    """Prints both, case by case, and how many searches converged."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crocoddyl", default=sys.executable, help="an interpreter that has Crocoddyl")
    parser.add_argument("--starts", type=int, default=1, help="number of starts")
    parser.add_argument("--cases", nargs="*", default=[case.name for case in CASES])
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    for case in CASES:
        if case.name not in options.cases:
            continue
        for name, found in (
            ("mbjax", here(case, options.starts)),
            ("Crocoddyl", there(case, options.crocoddyl, options.starts)),
        ):
            one, iterations = found[0], [f["iterations"] for f in found if f["converged"]]
            print(
                f"{case.name}, {name}: cost {one['cost']:.6f}, {one['iterations']} iterations, "
                f"{1e3 * one['seconds'] / max(one['iterations'], 1):.3f} ms each, "
                f"compile {one.get('compile', 0.0):.0f} s; "
                f"{sum(f['converged'] for f in found)} of {len(found)} converged in {MOST}, "
                f"{np.median(iterations) if iterations else np.nan:.0f} iterations in the median",
                flush=True,
            )


if __name__ == "__main__":
    main()
