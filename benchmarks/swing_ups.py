"""Swing-ups from many cold starts: how many searches converge, and reach the top.

    python -m benchmarks.swing_ups [--starts 100] [--iterations 300] [--hessian exact]

Three systems hang down and are to stand up at rest: a cart-pole and a double pendulum with two motors and an acrobot
with one, at the elbow. Starts are random configurations near hanging, at random speeds, all solved at once by `vmap`
without a guess. "At the top" is within 0.1 rad and 0.5 rad/s of the goal.
"""

import argparse
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to

LINK = """<link name="{name}"><inertial><origin xyz="0 0 -0.5"/><mass value="{mass}"/>
<inertia ixx="{I}" iyy="{I}" izz="0.001" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
HINGE = """<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>
<origin xyz="0 0 {z}"/><axis xyz="0 1 0"/><dynamics damping="0.02"/></joint>"""
CART = """<link name="cart"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial></link><joint name="slide" type="prismatic"><parent link="base"/><child link="cart"/><axis xyz="1 0 0"/>
<limit lower="-50" upper="50" effort="1000" velocity="100"/></joint>"""


def cart_pole() -> str:
    pole = LINK.format(name="pole", mass=0.3, I=0.026) + HINGE.format(name="hinge", parent="cart", child="pole", z=0)
    return f'<robot name="cart_pole"><link name="base"/>{CART}{pole}</robot>'


def double_pendulum() -> str:
    links = LINK.format(name="upper", mass=1.0, I=0.084) + LINK.format(name="lower", mass=1.0, I=0.084)
    shoulder = HINGE.format(name="shoulder", parent="base", child="upper", z=0)
    elbow = HINGE.format(name="elbow", parent="upper", child="lower", z=-1)
    return f'<robot name="double_pendulum"><link name="base"/>{links}{shoulder}{elbow}</robot>'


# name, URDF, goal, limits of the efforts, steps of 0.02 s
SYSTEMS = {
    "cart-pole": (cart_pole(), [0.0, np.pi], [20.0, 0.0], 150),
    "double pendulum": (double_pendulum(), [np.pi, 0.0], [15.0, 8.0], 150),
    "acrobot": (double_pendulum(), [np.pi, 0.0], [0.0, 15.0], 250),
}


def problem_of(name: str) -> to.Problem:
    """The problem of a system that hangs at rest."""
    text, goal, limits, steps = SYSTEMS[name]
    model = mbjax.load(text, time_step=0.02, base="fixed", actuators="joints", on_unsupported="warn")
    running = [to.Effort(0.03), to.VelocityGoal(weight=0.01)]
    terminal = [to.JointGoal(goal, weight=20.0), to.VelocityGoal(weight=5.0)]
    bounds = -jnp.array(limits), jnp.array(limits)
    return to.Problem(model, mbjax.default_state(model), steps, running, terminal, bounds)


def random_starts(problem: to.Problem, count: int) -> mbjax.State:
    """Configurations within 0.5 of hanging, at speeds up to 0.5."""
    rng, nq = np.random.default_rng(0), problem.model.num_positions
    q, v = rng.uniform(-0.5, 0.5, (count, nq)), rng.uniform(-0.5, 0.5, (count, nq))
    return mbjax.State(jnp.asarray(q), jnp.asarray(v), jnp.zeros(count))


def main() -> None:
    """Prints a row for each system."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=100)
    parser.add_argument("--iterations", type=int, default=300)
    parser.add_argument("--hessian", choices=["gauss_newton", "exact"], default="gauss_newton")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=list(SYSTEMS))
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    solver = to.FeasibilityDDP(max_iterations=options.iterations, tolerance=1e-6, hessian=options.hessian)
    columns = "system", "converged", "at the top", "iterations, median", "processor s for all", "compile s"
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    for name in options.systems:
        problem = problem_of(name)
        starts = random_starts(problem, options.starts)
        solve = jax.jit(
            jax.vmap(
                lambda start, problem=problem: to.solve(eqx.tree_at(lambda p: p.start, problem, start), solver=solver)
            )
        )
        begin = time.perf_counter()
        compiled = solve.lower(starts).compile()
        compile_seconds, begin = time.perf_counter() - begin, time.process_time()
        plans = jax.block_until_ready(compiled(starts))
        seconds = time.process_time() - begin
        goal = np.array(SYSTEMS[name][1])
        off = np.abs(np.asarray(plans.states.q[:, -1]) - goal).max(1)
        speed = np.abs(np.asarray(plans.states.v[:, -1])).max(1)
        print(
            f"| {name} | {int(jnp.sum(plans.report.converged))} of {options.starts} "
            f"| {int(np.sum((off < 0.1) & (speed < 0.5)))} | {np.median(plans.report.iterations):.0f} | {seconds:.1f} "
            f"| {compile_seconds:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
