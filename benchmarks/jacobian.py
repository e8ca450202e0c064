"""What does the whole Jacobian of forward dynamics with respect to (q, v) take, batch 1024?

In closed form, by forward and by reverse mode, beside forward differences and Pinocchio's `computeABADerivatives`,
which yields M⁻¹ besides. JAX differentiates by the numbers of q, four of them a quaternion on a floating base; the
closed form and Pinocchio by the tangent. On the joints both mean the same, and there they are compared.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from .coordinates import Convention
from .forward_dynamics import NUM_COMPARED, time_compiled
from .measure import Effort
from .peers import build_pinocchio, load_mbjax, mbjax_joint_names
from .results import Table
from .robots import Robot
from .script import (
    DTYPES,
    Options,
    compile_seconds,
    microseconds,
    outcome,
    precision,
    run_script,
    table_by_robot,
    timed,
)

BATCH = 1024
DIFFERENCE_STEP = {"f32": 1e-3, "f64": 1e-7}
PINOCCHIO = "Pinocchio computeABADerivatives, f64, 1 core"


def records(options: Options) -> Iterator[dict]:
    batch = 32 if options.quick else BATCH
    for robot in options.robots:
        for dtype in DTYPES:
            with precision(dtype):
                yield from measure_mbjax(robot, dtype, batch, options.effort)
        with precision("f64"):
            keys = {"robot": robot.name, "label": PINOCCHIO, "batch": batch}
            yield outcome(keys, measure_pinocchio, robot, batch, options.effort)


def measure_mbjax(robot: Robot, dtype: str, batch: int, effort: Effort) -> Iterator[dict]:
    import jax

    from mbjax.command_line.questions import random_worlds

    model = load_mbjax(robot, dtype)
    worlds = random_worlds(model, batch)
    for label, one in ways(model, DIFFERENCE_STEP[dtype]).items():
        keys = {"robot": robot.name, "label": f"mbjax {label}, {dtype}", "batch": batch}
        yield timed(keys, (jax.vmap(one), (worlds.q, worlds.v, worlds.tau)), batch, effort)


def ways(model: Any, difference_step: float) -> dict[str, Any]:
    """Functions of (q, v, tau) of one world: vdot itself, then its Jacobian."""
    import jax
    import jax.numpy as jnp

    import mbjax
    from mbjax.dynamics import forward_dynamics_derivatives

    def vdot(q: Any, v: Any, tau: Any) -> Any:
        state = mbjax.State(q, v, jnp.zeros((), q.dtype))
        return mbjax.time_derivatives(model, state, mbjax.Inputs(applied_generalized_force=tau))[1]

    def forward_differences(q: Any, v: Any, tau: Any) -> Any:
        at, h = vdot(q, v, tau), jnp.asarray(difference_step, q.dtype)
        by_q = jax.vmap(lambda e: (vdot(q + h * e, v, tau) - at) / h, out_axes=1)(jnp.eye(q.size, dtype=q.dtype))
        by_v = jax.vmap(lambda e: (vdot(q, v + h * e, tau) - at) / h, out_axes=1)(jnp.eye(v.size, dtype=q.dtype))
        return by_q, by_v

    def closed_form(q: Any, v: Any, tau: Any) -> Any:
        found = forward_dynamics_derivatives(model, q, v, tau, force_elements=True)
        return found.dq, found.dv

    return {
        "forward dynamics alone": vdot,
        "closed form": closed_form,
        "jacfwd": jax.jacfwd(vdot, (0, 1)),
        "jacrev": jax.jacrev(vdot, (0, 1)),
        "forward differences": forward_differences,
    }


def measure_pinocchio(robot: Robot, batch: int, effort: Effort) -> dict:
    """Its time, and how far mbjax's Jacobian is from its."""
    import jax

    from mbjax.command_line.questions import random_worlds

    model = load_mbjax(robot, "f64")
    names = tuple(mbjax_joint_names(model))
    problem = build_pinocchio(robot, names, "f64")
    worlds = random_worlds(model, batch)
    common = tuple(np.asarray(x) for x in (worlds.q, worlds.v, worlds.tau))
    assert problem.derivatives is not None
    assert problem.trivial_derivatives is not None
    states = [tuple(map(np.ascontiguousarray, s)) for s in zip(*problem.convention.from_common(*common), strict=True)]
    timing = time_compiled(problem.derivatives, problem.trivial_derivatives, states, effort)
    jacobian = jax.jit(jax.vmap(ways(model, 1e-7)["jacfwd"]))
    ours = [np.asarray(J) for J in jacobian(*(x[:NUM_COMPARED] for x in common))]
    worst = 0.0
    for i, state in enumerate(states[:NUM_COMPARED]):
        theirs = [joint_block(J, problem.convention) for J in problem.derivatives(*state)[:2]]
        for our, their in zip(ours, theirs, strict=True):
            n = their.shape[0]
            worst = np.maximum(worst, np.abs(our[i, -n:, -n:] - their).max() / np.abs(their).max())
    return {**timing, "difference": float(worst)}


def joint_block(jacobian: np.ndarray, convention: Convention) -> np.ndarray:
    """Of joint accelerations by joint coordinates, in the common order."""
    order = list(convention.joint_order)
    block = np.empty((len(order), len(order)))
    block[np.ix_(order, order)] = jacobian[-len(order) :, -len(order) :]
    return block


def tables(records: list[dict]) -> list[Table]:
    batch = next((r["batch"] for r in records if "batch" in r), BATCH)
    compared = [{**r, "label": "joint by joint"} for r in records if "difference" in r]
    return [
        table_by_robot(
            f"Jacobian of forward dynamics with respect to (q, v), batch of {batch}", records, microseconds,
            "µs per evaluation: median [least–upper quartile].",
        ),
        table_by_robot("Compile time of the Jacobian", records, compile_seconds, "Seconds: trace + lower + compile."),
        table_by_robot(
            "The Jacobians of mbjax and Pinocchio", compared, lambda r: f"{r['difference']:.1e}",
            f"Largest difference over the largest entry, f64, the worst of {NUM_COMPARED} random states.",
        ),
    ]  # fmt: skip


if __name__ == "__main__":
    run_script("jacobian", __doc__, records)
