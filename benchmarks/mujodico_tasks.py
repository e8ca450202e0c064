"""MuJoDiCo's part of `benchmarks/mujodico.py`: its tasks, its solver, its scorer; a line of JSON for each task.

    PYTHON -P benchmarks/mujodico_tasks.py SECONDS METHOD TASK ...

With -P, as the file beside this one has the package's name. Each task is solved once: `solve` is compiled code, as
methods compile when they are made. SECONDS is the most of processor time for one task.
"""

import contextlib
import json
import os
import signal
import sys
import time
import types
from typing import Any

import jax
import numpy as np

jax.config.update("jax_enable_x64", True)


def leave_out_julia() -> None:
    """Two of its files need Python 3.12, and their methods Julia: they are replaced by empty names."""
    names = [f"Ccopt{kind}ContactImplicit" for kind in ("Crossover", "Penalty", "Relaxation")]
    for module, classes in (("ccopt", names), ("ciopt", ["CioptContactImplicit"])):
        empty = types.ModuleType(module)
        for name in classes:
            setattr(empty, name, type(name, (), {}))
        sys.modules[f"mujodico.examples.methods.{module}_contact_implicit"] = empty


def facts_of(task: Any) -> dict[str, Any]:
    """All numbers of a task; its model is the text in its module."""
    low, high = task.u_bounds
    return {
        "xml": getattr(sys.modules[type(task).__module__], "_XML", "").strip(),
        "horizon": task.horizon,
        "dt": task.model.opt.timestep,
        **{name: getattr(task, name).tolist() for name in ("x_0", "x_goal", "Q", "Qf", "u_ref", "R", "xs_init")},
        "low": low.tolist(),
        "high": high.tolist(),
        "smoothing": task.contact_smoothing,
    }


def cost_of(task: Any, xs: np.ndarray, us: np.ndarray) -> float:
    """The task's own objective along a trajectory."""
    from mujodico.examples.methods import util

    running = sum(
        util.state_cost(task.Q, task.x_goal, x.copy(), task.quaternion_w_idxs)
        + util.control_cost(task.R, task.u_ref, u)
        for x, u in zip(xs[:-1], us, strict=True)
    )
    return float(running + util.state_cost(task.Qf, task.x_goal, xs[-1].copy(), task.quaternion_w_idxs))


def solved(task: Any, method_name: str) -> dict[str, Any]:
    """The method's plan, and what its own scorer makes of it."""
    from mujodico.examples import methods
    from mujodico.examples.methods import util

    begin = time.process_time()
    method = methods.parse_method_name(method_name)(task)
    compile_seconds, begin, wall = time.process_time() - begin, time.process_time(), time.perf_counter()
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
        plan = method.solve(traj_init={"xs": task.xs_init, "us": task.us_init}, iterations=500)
    seconds, wall = time.process_time() - begin, time.perf_counter() - wall
    xs, us = np.array(plan["xs"]), np.array(plan["us"])
    error = util.state_cost(task.Q, task.x_goal, xs[-1].copy(), task.quaternion_w_idxs)
    return {
        "goal_error": float(error),
        "cost": cost_of(task, xs, us),
        "seconds": seconds,
        "wall": wall,
        "compile_seconds": compile_seconds,
        "xs": xs.tolist(),
        "us": us.tolist(),
    }


def too_long(*_: Any) -> None:
    raise TimeoutError("it took too long")


def main() -> None:
    """Solves the named tasks, with seed 0."""
    if sys.version_info < (3, 12):
        leave_out_julia()
    from mujodico.examples import tasks

    limit, method, *names = sys.argv[1:]
    print_to = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # IPOPT prints what it does
    signal.signal(signal.SIGPROF, too_long)
    for name in names:
        found: dict[str, Any] = {"name": name}
        signal.setitimer(signal.ITIMER_PROF, float(limit))
        try:
            task = tasks.parse_task_name(name)(0)
            found |= facts_of(task)
            found |= solved(task, method)
        except Exception as error:  # a task that fails is a row that says so
            found["error"] = f"{type(error).__name__}: {error}"
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        print_to.write(json.dumps(found) + "\n")
        print_to.flush()


if __name__ == "__main__":
    main()
