"""Controllers: a whole-body program of a humanoid, and MPPI on a cart-pole and on a block that is pushed.

    python -m benchmarks.controllers [--keys 8]

Times are of the processor, in f64, for one control step; compile in processor seconds. The humanoid is G1 of
example-robot-data, which stands on eight points with four tasks; set OPENBLAS_NUM_THREADS=1 where others compute too.
"""

import argparse
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import controllers
from tests.controllers.test_sampling import push_block, swing_up

from .measure import processor_seconds

CONTROL_STEPS = 200  # of a run of MPPI
CALLS = 50


def standing_humanoid() -> Callable:
    """From a state to the efforts of a G1 that stands."""
    model = mbjax.load("g1_29dof_rev_1_0", base="floating", actuators="joints", time_step=0.005, on_unsupported="warn")
    q = mbjax.default_state(model).q
    corners = jnp.array([[-0.05, 0.025, -0.035], [-0.05, -0.025, -0.035], [0.12, 0.03, -0.035], [0.12, -0.03, -0.035]])
    feet = ("left_ankle_roll_link", "right_ankle_roll_link")
    contacts = controllers.ContactPoints([foot for foot in feet for _ in corners], jnp.tile(corners, (2, 1)))
    trunk = mbjax.relative_transform(model, q, "world", "torso_link")
    tasks = [
        controllers.CenterOfMassTask(mbjax.center_of_mass_position_in_world(model, q), weight=10.0),
        controllers.FrameTask("torso_link", trunk, axes=(0, 1, 2), weight=3.0),
        controllers.MomentumTask(weight=0.1),
        controllers.PostureTask(q, weight=0.1),
    ]

    def control(key: Any) -> Any:
        v = 0.2 * jax.random.normal(key, (model.num_velocities,))
        found = controllers.whole_body(model, mbjax.State(q, v), tasks, contacts)
        return found.effort, found.converged

    return control


def main() -> None:
    """Prints a row for each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keys", type=int, default=8)
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    print("| controller | compile, s | a control step, ms | outcome |\n|---|---|---|---|")
    key = jax.random.key(0)
    program, compiled = processor_seconds(jax.jit(standing_humanoid()).lower(key).compile)
    calls = [processor_seconds(program, each) for each in jax.random.split(key, CALLS)]
    solved = sum(bool(converged) for (_, converged), _ in calls)
    least = 1e3 * float(np.median([seconds for _, seconds in calls]))
    print(f"| whole-body program of G1 | {compiled:.1f} | {least:.1f} | {solved} of {CALLS} solved |", flush=True)
    for name, run, outcome in (
        ("MPPI, cart-pole, 64 samples of 50 steps", swing_up(), standing),
        ("MPPI, block, 64 samples of 30 steps", push_block(64), placed),
        ("MPPI, block, 128 samples of 30 steps", push_block(128), placed),
    ):
        program, compiled = processor_seconds(jax.jit(run).lower(key).compile)
        ends = [processor_seconds(program, each) for each in jax.random.split(key, options.keys)]
        step = 1e3 * float(np.median([seconds for _, seconds in ends])) / CONTROL_STEPS
        print(f"| {name} | {compiled:.1f} | {step:.1f} | {outcome([end for end, _ in ends])} |", flush=True)


def standing(runs: list) -> str:
    """How many poles stand through the last half second."""
    up = [bool((jnp.cos(q[-25:, 1]) > 0.95).all()) for q, _ in runs]
    return f"{sum(up)} of {len(up)} stand"


def placed(runs: list) -> str:
    """How far blocks are off."""
    far = sorted(1e2 * float(jnp.linalg.norm(off[:2])) for off in runs)
    turned = sorted(abs(float(off[2])) for off in runs)
    middle = len(far) // 2
    return f"off by {far[middle]:.1f} cm, {turned[middle]:.2f} rad; at worst {far[-1]:.1f} cm, {turned[-1]:.2f} rad"


if __name__ == "__main__":
    main()
