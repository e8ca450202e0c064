"""Plans of many problems at once beside one after the other.

    python -m benchmarks.many_plans [problems]

The bundled arm, f64, 50 steps of 0.02 s to random goals of its joints. Each plan ends by itself; at once, the slowest
ends all. The least of three runs, on the clock, compiled before.
"""

import sys
import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import mbjax
from mbjax import trajectory_optimization as to


def main() -> None:
    """Prints seconds and iterations of both ways."""
    jax.config.update("jax_enable_x64", True)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    model = mbjax.load("arm", time_step=0.02)
    start = mbjax.default_state(model)
    goals = 0.6 * jax.random.uniform(jax.random.key(0), (count, model.num_positions), minval=-1.0, maxval=1.0)

    def plan(goal: jax.Array) -> to.Solution:
        costs = [to.JointGoal(goal, 10.0), to.VelocityGoal()]
        return to.solve(to.Problem(model, start, 50, [to.Effort(0.01), to.VelocityGoal(weight=0.1)], costs))

    one, many = eqx.filter_jit(plan), eqx.filter_jit(jax.vmap(plan))
    found: dict[str, tuple[float, np.ndarray, np.ndarray]] = {}
    for name, run in (("one after the other", lambda: [one(goal) for goal in goals]), ("at once", lambda: many(goals))):
        began = time.perf_counter()
        jax.block_until_ready(run())
        first, least = time.perf_counter() - began, float("inf")
        for _ in range(3):
            began = time.perf_counter()
            plans = jax.block_until_ready(run())
            least = min(least, time.perf_counter() - began)
        plans = plans if name == "at once" else jax.tree.map(lambda *x: jnp.stack(x), *plans)
        iterations = np.asarray(plans.report.iterations)
        found[name] = least, np.asarray(plans.cost), iterations
        converged = int(np.sum(np.asarray(plans.report.converged)))
        print(
            f"{count} plans {name}: {least:.3f} s, {converged} converged, {iterations.min()} to {iterations.max()} "
            f"iterations (mean {iterations.mean():.1f}); the first time {first:.1f} s with compiling",
            flush=True,
        )
    costs = [cost for _, cost, _ in found.values()]
    print(f"largest difference of costs: {np.max(np.abs(costs[0] - costs[1]) / costs[0]):.1e}")


if __name__ == "__main__":
    main()
