"""One engine on one problem, in a process of its own, which compiles each mode once: a JSON record a line.

    PYTHON -m benchmarks.contact_gradients.measured [--values] [--speeds=N] ENGINE SETTING PROBLEM STEP [STEP ...]

ENGINE is mbjax, mjx, mujodico or jaxsim. STEP is a time step or, of a setting that chooses its steps, a tolerance.
PYTHON may be that of another environment: only JAX, NumPy and the engine are needed. With --values programs are
compiled without optimization, in half the time, and the records have no times. N is how many speeds tosses have.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .problems import (
    OWN_STEPS,
    SPEEDS_OF,
    STARTS,
    SWEEP,
    TOLERANCE,
    TOSS_SPEEDS,
    Problem,
    bounce,
    problems,
)

FINEST = {
    "mbjax": 1e-5,
    "mjx": 2e-5,
    "mujodico": 2e-5,
    "jaxsim": 2e-5,
}  # s, the step whose coarse differences are the engine's limit
FINEST_TOLERANCE = 1e-10
COARSE = 1e-3  # relative change of a knob for those, wide enough to pass over errors of the step
FINE = 1e-6  # and for differences of the same program
FINE_OF_OWN_STEPS = 1e-4  # for a program whose steps change with the start
STEP = 1e-3  # s, of reverse mode, of the sweep and of the many starts
COMPARED = 40  # of the speeds, with a tolerance ten times smaller, which takes twice as long
SLOW = 1.0  # s, runs above which are timed once

VALUES, SPEEDS = "--values", "--speeds="

Record = dict[str, Any]
Forward = Callable[[np.ndarray, np.ndarray, float], tuple[Any, Any]]


def number_of_speeds() -> int:
    """How many speeds tosses have."""
    return next((int(text.removeprefix(SPEEDS)) for text in sys.argv if text.startswith(SPEEDS)), len(TOSS_SPEEDS))


def builder(engine: str) -> Callable[..., Callable]:
    """Builds `values of the knobs, step → coordinate`, given problem, setting and, for reverse mode, the step."""
    if engine == "mbjax":
        from .of_mbjax import build

        return build
    if engine == "jaxsim":
        from .of_jaxsim import build as build_jaxsim

        return build_jaxsim
    from .of_mujoco import build as build_mujoco

    return lambda problem, setting, static_step=None: build_mujoco(problem, setting, engine, static_step)


def timed(function: Callable, *args: Any) -> tuple[Callable, float]:
    """The compiled function, and the processor time that took, in s."""
    import jax

    options = {"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False} if VALUES in sys.argv else {}
    start = time.process_time()
    compiled = jax.jit(function).lower(*args).compile(compiler_options=options)
    return compiled, time.process_time() - start


def run_time(compiled: Callable, *args: Any) -> tuple[Any, float]:
    """The result, and the least processor time of two calls, or the time of one that is slow, in s."""
    import jax

    times: list[float] = []
    while True:
        start = time.process_time()
        result = jax.block_until_ready(compiled(*args))
        times.append(time.process_time() - start)
        if times[0] > SLOW or len(times) == 2:
            return result, min(times)


def differences_by(forward: Forward, x: np.ndarray, k: int, step: float, change: float) -> float:
    """The central difference of values by a knob that changes by so much, relative to its size."""
    h = change * max(1.0, abs(x[k])) * np.eye(len(x))[k]
    return float(forward(x + h, h, step)[0] - forward(x - h, h, step)[0]) / (2.0 * h[k])


def limits(engine: str, setting: str, problem: Problem, forward: Forward) -> list[tuple[float | None, str]]:
    """The derivative by each knob and what it is: a closed form, or coarse differences with the finest steps.

    mbjax's lagged steps have the law, and so the limit, of its recommended setting.
    """
    x, found = problem.values, []
    has_closed_form = problem.solref is None or engine != "mjx"  # MJX's soft contact is another law
    finest = FINEST_TOLERANCE if setting in OWN_STEPS else FINEST[engine]
    change = FINE_OF_OWN_STEPS if setting in OWN_STEPS else COARSE
    for k in range(len(x)):
        truth = problem.truth[k] if has_closed_form and problem.truth else None
        if truth is None and engine == "mbjax" and setting.startswith("lagged"):
            found.append((None, "that of the recommended setting"))
        elif truth is None:
            found.append((differences_by(forward, x, k, finest, change), f"differences at {finest}"))
        else:
            found.append((truth, "closed form"))
    return found


def reverse_mode(build: Callable, problem: Problem, setting: str) -> Record:
    """Derivatives at `STEP` and times of reverse mode, or why there are none."""
    import jax

    step = TOLERANCE if setting in OWN_STEPS else STEP
    try:
        end = build(problem, setting) if setting in OWN_STEPS else build(problem, setting, step)
        reverse, compile_time = timed(jax.grad(lambda x: end(x, step)), problem.values)
        derivative, run = run_time(reverse, problem.values)
    except (TypeError, ValueError, NotImplementedError) as error:  # an engine may have no reverse mode
        return {"reverse_failed": f"{type(error).__name__}: {error}"[:200]}
    return {"reverse": [float(d) for d in derivative], "reverse_run_s": run, "reverse_compile_s": compile_time}


def records(engine: str, setting: str, problem: Problem, steps: list[float]) -> Iterator[Record]:
    """A record for each step and knob: derivatives by both modes, the limit, differences of the program, and times."""
    import jax

    build, x = builder(engine), problem.values
    end, axes = build(problem, setting), np.eye(len(x))
    forward, compile_time = timed(
        lambda x, dx, step: jax.jvp(lambda x: end(x, step), (x,), (dx,)), x, axes[0], steps[0]
    )
    yield from many_starts(forward, engine, setting, problem)
    found = limits(engine, setting, problem, forward)
    reverse = reverse_mode(build, problem, setting) if problem.has_reverse else {}
    by_reverse = reverse.pop("reverse", None)
    change = FINE_OF_OWN_STEPS if setting in OWN_STEPS else FINE
    checked = steps if setting in OWN_STEPS else [STEP]
    for step in steps:
        is_reversed = step == (TOLERANCE if setting in OWN_STEPS else STEP)
        for k, (kind, which) in enumerate(problem.knobs):
            (value, derivative), run = run_time(forward, x, axes[k], step)
            record = {
                "engine": engine,
                "setting": setting,
                "step": step,
                "problem": problem.name,
                "knob": f"{kind} {which}".strip(),
                "value": float(value),
                "forward": float(derivative),
                "limit": found[k][0],
                "limit_is": found[k][1],
                "differences": differences_by(forward, x, k, step, change) if step in checked else None,
                "forward_run_s": run,
                "forward_compile_s": compile_time,
            }
            if is_reversed:
                record |= reverse
            if is_reversed and by_reverse is not None:
                record["reverse"] = by_reverse[k]
            yield record


def many_starts(forward: Forward, engine: str, setting: str, problem: Problem) -> Iterator[Record]:
    """The same program at other starts: bounces of other stiffness from other heights, tosses with other speeds."""
    step = TOLERANCE if setting in OWN_STEPS else STEP
    base = {"engine": engine, "setting": setting, "step": step, "problem": problem.name}
    x = problem.values
    if problem.name == bounce().name:
        for stiffness in SWEEP:
            for start in STARTS:
                values = np.array([x[0] + start, x[1], stiffness])
                derivative = float(forward(values, np.array([1.0, 0.0, 0.0]), step)[1])
                yield base | {"stiffness": stiffness, "start": start, "forward": derivative, "limit": -1.0}
    if (engine, setting) in SPEEDS_OF and problem.knobs == (("v", 2),):
        for i, vz in enumerate(TOSS_SPEEDS[:: len(TOSS_SPEEDS) // number_of_speeds()]):
            (value, derivative), run = run_time(forward, np.array([vz]), np.ones(1), step)
            record = base | {"vz": vz, "value": float(value), "forward": float(derivative), "run_s": run}
            if setting in OWN_STEPS and i % max(1, number_of_speeds() // COMPARED) == 0:
                record["limit"] = float(forward(np.array([vz]), np.ones(1), 0.1 * TOLERANCE)[1])
            yield record


def main() -> int:
    """Prints the records of one run."""
    import jax

    jax.config.update("jax_enable_x64", True)
    engine, setting, name, *steps = (text for text in sys.argv[1:] if not text.startswith("--"))
    for record in records(engine, setting, problems()[name], [float(step) for step in steps]):
        timeless = {key: value for key, value in record.items() if VALUES not in sys.argv or not key.endswith("_s")}
        print(json.dumps(timeless), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
