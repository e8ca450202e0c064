"""One engine on one problem, in a process of its own: a JSON record for each knob.

    PYTHON -m benchmarks.contact_gradients.measured ENGINE SETTING STEP PROBLEM

ENGINE is mbjax, mjx or mujodico. PYTHON may be that of another environment: only JAX, NumPy and the engine are needed.
"""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .problems import Problem, bounce, cube_toss, problems, toss

FINEST = {"mbjax": 1e-5, "mjx": 1e-4, "mujodico": 1e-4}  # s, the step whose coarse differences are the engine's limit
COARSE = 1e-3  # relative change of a knob for those
FINE = 1e-6  # and for differences of the same program


def problem_named(name: str) -> Problem:
    """A problem of the table, or `bounce 1e5`, or `toss box -2.35`."""
    kind, *numbers = name.split()
    if kind == "bounce" and len(numbers) == 1:
        return bounce(float(numbers[0]))
    return problems()[name]


def builder(engine: str) -> Callable[..., Any]:
    """Builds `values of the knobs → coordinate`, given problem, setting, step and whether it is for reverse mode."""
    if engine == "mbjax":
        from .of_mbjax import build

        return lambda problem, setting, step, is_reverse: build(problem, setting, step)
    from .of_mujoco import build as build_mujoco

    return lambda problem, setting, step, is_reverse: build_mujoco(problem, setting, step, engine, is_reverse)


def timed(function: Callable, *args: Any) -> tuple[Callable, float]:
    """The compiled function, and the processor time that took, in s."""
    import jax

    start = time.process_time()
    compiled = jax.jit(function).lower(*args).compile()
    return compiled, time.process_time() - start


def run_time(compiled: Callable, *args: Any) -> tuple[Any, float]:
    """The result, and the least processor time of two calls, in s."""
    import jax

    times, result = [], None
    for _ in range(2):
        start = time.process_time()
        result = jax.block_until_ready(compiled(*args))
        times.append(time.process_time() - start)
    return result, min(times)


def coarse_limit(value: Callable, x: np.ndarray, k: int) -> float:
    """The derivative by a knob, from differences wide enough to pass over errors of the step."""
    h = COARSE * max(1.0, abs(x[k])) * np.eye(len(x))[k]
    return float((value(x + h) - value(x - h)) / (2.0 * h[k]))


def records(engine: str, setting: str, step: float, name: str) -> list[dict[str, Any]]:
    """A record for each knob: derivatives by both modes, the limit, differences of the same program, and times."""
    import jax

    jax.config.update("jax_enable_x64", True)
    problem, build = problem_named(name), builder(engine)
    x = problem.values
    found: list[dict[str, Any]] = []
    forward_of = build(problem, setting, step, False)
    of_one = np.eye(len(x))
    forward, forward_compile = timed(lambda x, dx: jax.jvp(forward_of, (x,), (dx,)), x, of_one[0])
    try:
        reverse, reverse_compile = timed(jax.value_and_grad(build(problem, setting, step, True)), x)
        (_, by_reverse), reverse_run = run_time(reverse, x)
    except Exception as error:  # an engine may have no reverse mode
        by_reverse, reverse_run, reverse_compile = None, None, f"{type(error).__name__}: {error}"[:200]
    finest = jax.jit(build(problem, setting, FINEST[engine], False)) if setting != "recommended" else None
    for k, knob in enumerate(problem.knobs):
        (value, derivative), forward_run = run_time(forward, x, of_one[k])
        h = FINE * max(1.0, abs(x[k])) * of_one[k]
        differences = float((forward(x + h, h)[0] - forward(x - h, h)[0]) / (2.0 * h[k]))
        limit, kind = problem.truth[k] if k < len(problem.truth) else None, "closed form"
        if limit is None and finest is None:
            limit, kind = coarse_limit(lambda x: float(forward(x, x)[0]), x, k), "coarse differences"
        elif limit is None:
            limit, kind = coarse_limit(finest, x, k), f"coarse differences at {FINEST[engine]} s"
        found.append(
            {
                "engine": engine,
                "setting": setting,
                "step": step,
                "problem": problem.name,
                "knob": " ".join(map(str, knob)).strip(),
                "value": float(value),
                "forward": float(derivative),
                "reverse": None if by_reverse is None else float(by_reverse[k]),
                "limit": limit,
                "limit_is": kind,
                "differences": differences,
                "forward_run_s": forward_run,
                "forward_compile_s": forward_compile,
                "reverse_run_s": reverse_run,
                "reverse_compile_s": reverse_compile,
            }
        )
    return found


def tosses(shape: str, count: int) -> list[dict[str, Any]]:
    """`ContactSolver` on one object with many speeds: each derivative, and that with a tolerance ten times smaller."""
    import jax

    import mbjax

    from .of_mbjax import build_model
    from .problems import OBJECTS, TOSS_SPEEDS

    jax.config.update("jax_enable_x64", True)
    problem = cube_toss if shape == "box" else toss(shape, *OBJECTS[shape])
    model, times = build_model(problem, "recommended", 0.0), np.array([0.0, problem.horizon])

    def end(vz: Any, tolerance: Any) -> Any:
        qvel = jax.numpy.array(problem.qvel).at[2].set(vz)
        state = mbjax.state_from_mujoco(model, np.array(problem.qpos), qvel)
        solver = mbjax.ContactSolver(tolerance)
        after = mbjax.simulate(model, state, save_at=times, solver=solver).final_state
        return mbjax.mujoco_state(model, after)[0][problem.output]

    forward, compile_time = timed(lambda v, tol: jax.jvp(lambda v: end(v, tol), (v,), (1.0,)), -2.0, 1e-9)
    found = []
    for vz in TOSS_SPEEDS[:: max(1, len(TOSS_SPEEDS) // count)]:
        (value, derivative), run = run_time(forward, vz, 1e-9)
        limit = float(forward(vz, 1e-10)[1])
        record = {"shape": shape, "vz": vz, "value": float(value), "forward": float(derivative), "limit": limit}
        found.append(record | {"run_s": run, "compile_s": compile_time})
    return found


def main() -> int:
    """Prints the records of one run."""
    engine, setting, step, name = sys.argv[1:]
    many = tosses(name, int(step)) if setting == "tosses" else records(engine, setting, float(step), name)
    for record in many:
        print(json.dumps(record), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
