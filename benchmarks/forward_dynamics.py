"""How long does vdot = FD(q, v, tau) take, and its vjp with respect to (q, v, tau)?

Per evaluation: one jitted call from Python, inside an on-device loop of 1000, in batches of 256 and 4096; with
the model closed over and as an argument. This module measures one peer in one dtype and prints a JSON record a
line, so that what was measured survives a time limit; `python -m benchmarks` runs the processes.

    python -m benchmarks.forward_dynamics reference FILE          random states and mbjax's vdot in float64
    python -m benchmarks.forward_dynamics measure FILE --peer frax --dtype f32
"""

import argparse
import dataclasses
import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .coordinates import relative_difference
from .measure import (
    FULL,
    QUICK,
    Effort,
    device_name,
    empty_call_seconds,
    load_average,
    measure,
    per_evaluation,
    time_calls,
    warm_up_jax,
)
from .peers import PEERS, CompiledProblem, JaxProblem, build_mbjax, load_mbjax, mbjax_joint_names
from .robots import ROBOTS, Robot

MODES = {"batch4096": 4096, "single": 1, "loop1000": 1000, "batch256": 256}
QUESTIONS = ("fd", "vjp")
NUM_STATES = max(MODES.values())
NUM_COMPARED = 16
LOOP_STEP = 1e-9
ALLOWED_DIFFERENCE = {"f32": 1e-2, "f64": 1e-8}


@dataclasses.dataclass(frozen=True)
class Case:
    """`model` is "closed" over or an "argument"."""

    question: str
    mode: str
    model: str

    @staticmethod
    def parse(text: str) -> "Case":
        question, mode, model = text.split(":")
        if question not in QUESTIONS or mode not in MODES or model not in ("closed", "argument"):
            raise ValueError(f"case '{text}': expected {'|'.join(QUESTIONS)}:{'|'.join(MODES)}:closed|argument.")
        return Case(question, mode, model)

    def __str__(self) -> str:
        return f"{self.question}:{self.mode}:{self.model}"


def default_cases(peer: str, dtype: str) -> list[Case]:
    """What to measure, the most telling first: a time limit cuts off the end."""
    questions = ("fd",) if peer == "mjx" else QUESTIONS  # the compile of MJX's vjp takes minutes: MJX_VJP
    modes = ("batch4096", "single") if peer == "mjx" and dtype == "f64" else ("batch4096", "loop1000", "single")
    cases = [Case(question, mode, "closed") for mode in modes for question in questions]
    if peer == "mbjax":
        as_argument = ("batch4096", "single") if dtype == "f32" else ("batch4096",)
        cases += [Case(question, mode, "argument") for mode in as_argument for question in questions]
    if not (peer == "mjx" and dtype == "f64"):
        cases += [Case(question, "batch256", "closed") for question in questions]
    return cases


MJX_VJP = Case("vjp", "batch4096", "closed")


def write_reference(file: pathlib.Path, robots: list[Robot]) -> None:
    """Random states of every robot in common coordinates, and the vdot of mbjax in float64 at the first ones."""
    import jax

    import mbjax

    arrays = {}
    for robot in robots:
        model = load_mbjax(robot, "f64")
        names = tuple(mbjax_joint_names(model))
        random_states = jax.jit(jax.vmap(lambda key, model=model: mbjax.random_state(model, key)))
        states = random_states(jax.random.split(jax.random.key(0), NUM_STATES))
        tau = jax.random.normal(jax.random.key(1), states.v.shape, states.v.dtype)
        problem = build_mbjax(robot, names, "f64")
        compared = (states.q[:NUM_COMPARED], states.v[:NUM_COMPARED], tau[:NUM_COMPARED])
        vdot = jax.jit(jax.vmap(lambda q, v, t, p=problem: p.forward_dynamics(p.model, q, v, t)))(*compared)
        for key, value in {"names": names, "q": states.q, "v": states.v, "tau": tau, "vdot": vdot}.items():
            arrays[f"{robot.name}.{key}"] = np.asarray(value)
    np.savez(file, **arrays)


@dataclasses.dataclass(frozen=True)
class Reference:
    """The states to evaluate, and the answers at the first `NUM_COMPARED` of them."""

    joint_names: tuple[str, ...]
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    vdot: np.ndarray

    @staticmethod
    def read(file: pathlib.Path, robot: Robot) -> "Reference":
        arrays = np.load(file)
        names = tuple(str(name) for name in arrays[f"{robot.name}.names"])
        return Reference(names, *(arrays[f"{robot.name}.{key}"] for key in ("q", "v", "tau", "vdot")))


def measure_peer(
    name: str, dtype: str, robots: list[Robot], cases: list[Case], reference: pathlib.Path, effort: Effort
) -> Iterator[dict]:
    """One record per robot and case; every robot is first compared with mbjax."""
    peer = PEERS[name]
    problems: dict[str, Any] = {}
    for robot in robots:
        problem = attempt(lambda robot=robot: peer.build(robot, Reference.read(reference, robot).joint_names, dtype))
        if isinstance(problem, str):
            missing = "missing" if problem.startswith(("ModuleNotFoundError", "ImportError")) else "failed"
            detail = f"pip install {peer.pip_name}" if missing == "missing" else problem
            yield {"robot": robot.name, "status": missing, "detail": f"{detail} ({problem})"}
            continue
        difference = attempt(lambda p=problem, r=robot: compare(p, Reference.read(reference, r), dtype))
        if isinstance(difference, str) or not difference <= ALLOWED_DIFFERENCE[dtype]:
            yield {"robot": robot.name, "status": "failed", "detail": f"not the same physics: {difference}"}
            continue
        yield {"robot": robot.name, "status": "compared", "relative_difference": difference}
        problems[robot.name] = problem
    if peer.uses_jax and problems:
        empty = empty_call_seconds(effort)
        yield {"status": "empty call", "median": empty, "device": device_name(), "load": load_average()}
    for case in cases:
        for robot in robots:
            if robot.name not in problems:
                continue
            problem, states = problems[robot.name], Reference.read(reference, robot)
            method = measure_jax if isinstance(problem, JaxProblem) else measure_compiled
            record = attempt(lambda m=method, p=problem, s=states, c=case: m(p, s, c, dtype, effort))
            if record is None:
                continue
            record = {"status": "failed", "detail": record} if isinstance(record, str) else record
            yield {"robot": robot.name, "case": str(case), "status": "measured", "load": load_average(), **record}


def attempt(action: Callable[[], Any]) -> Any:
    """The result, or the error as text: a peer that breaks is a row of the table, not the end of the run."""
    try:
        return action()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def compare(problem: JaxProblem | CompiledProblem, states: Reference, dtype: str) -> float:
    """Relative difference of the peer's vdot from mbjax's in float64, the worst of some random states."""
    q, v, tau = states.q[:NUM_COMPARED], states.v[:NUM_COMPARED], states.tau[:NUM_COMPARED]
    inputs = problem.convention.from_common(q, v, tau)
    if isinstance(problem, JaxProblem):
        import jax

        batch = jax.jit(jax.vmap(lambda *x: problem.forward_dynamics(problem.model, *x)))
        vdot = np.asarray(batch(*as_arrays(inputs, dtype)), dtype=float)
    else:
        vdot = np.array([np.array(problem.evaluate(*state)) for state in zip(*inputs, strict=True)])
    return relative_difference(problem.convention.acceleration_to_common(q, v, vdot), states.vdot)


def as_arrays(inputs: tuple[np.ndarray, ...], dtype: str) -> tuple[Any, ...]:
    import jax.numpy as jnp

    return tuple(jnp.asarray(x, {"f32": jnp.float32, "f64": jnp.float64}[dtype]) for x in inputs)


def measure_jax(problem: JaxProblem, states: Reference, case: Case, dtype: str, effort: Effort) -> dict:
    """Compile and run time of one case, each apart."""
    import jax

    size = 1 if case.mode == "loop1000" else MODES[case.mode]
    inputs = as_arrays(problem.convention.from_common(states.q[:size], states.v[:size], states.tau[:size]), dtype)
    function = evaluated(problem, case.question)
    if case.mode.startswith("batch"):
        function = jax.vmap(function, in_axes=(None, 0, 0, 0))
    else:
        inputs = tuple(x[0] for x in inputs)
    if case.mode == "loop1000":
        function = problem.looped(looped(function, MODES[case.mode], case.question))
    if case.model == "closed":
        chosen, args = (lambda *x: function(problem.model, *x)), inputs
    else:
        chosen, args = function, (problem.model, *inputs)
    return per_evaluation(measure(chosen, args, effort, through_jit=case.mode == "single"), MODES[case.mode])


def evaluated(problem: JaxProblem, question: str) -> Callable:
    """(model, q, v, tau) -> vdot, or the pullback of ones: (dq, dv, dtau)."""
    if question == "fd":
        return problem.forward_dynamics

    def pullback(model: Any, q: Any, v: Any, tau: Any) -> Any:
        import jax
        import jax.numpy as jnp

        vdot, vjp = jax.vjp(lambda *x: problem.forward_dynamics(model, *x), q, v, tau)
        return vjp(jnp.ones_like(vdot))

    return pullback


def looped(function: Callable, steps: int, question: str) -> Callable:
    """`steps` evaluations on the device, each at the state the last one moved: nothing can be hoisted."""

    def loop(model: Any, q: Any, v: Any, tau: Any) -> Any:
        import jax
        import jax.numpy as jnp

        def advance(_: Any, state: tuple) -> tuple:
            change = function(model, *state)
            if question == "fd":
                extra = state[0].shape[0] - change.shape[0]
                change = (jnp.concatenate([change, change[:extra]]) if extra else change, change, change)
            return tuple(x + LOOP_STEP * dx for x, dx in zip(state, change, strict=True))

        return jax.lax.fori_loop(0, steps, advance, (q, v, tau))

    return loop


def measure_compiled(
    problem: CompiledProblem, states: Reference, case: Case, dtype: str, effort: Effort
) -> dict | None:
    """A C or C++ library, one state after another; the derivatives are the whole Jacobians, not one pullback."""
    evaluate = problem.evaluate if case.question == "fd" else problem.derivatives
    trivial = problem.trivial if case.question == "fd" else problem.trivial_derivatives
    if evaluate is None or trivial is None:
        return None
    size = MODES[case.mode]
    inputs = problem.convention.from_common(states.q[:size], states.v[:size], states.tau[:size])
    worlds = [tuple(np.ascontiguousarray(x) for x in world) for world in zip(*inputs, strict=True)]
    return time_compiled(evaluate, trivial, worlds, effort, with_binding=case.mode == "single")


def time_compiled(
    evaluate: Callable, trivial: Callable, worlds: list[tuple], effort: Effort, with_binding: bool = False
) -> dict:
    """Per world, in a loop over them. The binding's cost, from a trivial call, is taken off unless it shall stay."""

    def run(function: Callable) -> None:
        for q, v, tau in worlds:
            function(q, v, tau)

    overhead = time_calls(lambda: run(trivial), effort).median / len(worlds)
    timing = time_calls(lambda: run(evaluate), effort).per(len(worlds))
    raw = timing.median
    timing = timing if with_binding else timing.minus(overhead)
    return {**dataclasses.asdict(timing), "with_binding": raw, "binding": overhead}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.forward_dynamics", description=__doc__)
    parser.add_argument("action", choices=("reference", "measure"))
    parser.add_argument("file", type=pathlib.Path, help="the .npz of states, written by `reference`")
    parser.add_argument("--robots", nargs="+", choices=ROBOTS, default=list(ROBOTS))
    parser.add_argument("--peer", choices=PEERS)
    parser.add_argument("--dtype", choices=("f32", "f64"), default="f64")
    parser.add_argument("--cases", nargs="+", type=Case.parse, help="such as fd:batch4096:closed")
    parser.add_argument("--quick", action="store_true", help="few repetitions")
    options = parser.parse_args(arguments)
    robots = [ROBOTS[name] for name in options.robots]
    uses_jax = options.action == "reference" or (options.peer and PEERS[options.peer].uses_jax)
    if uses_jax:
        import jax

        jax.config.update("jax_enable_x64", options.action == "reference" or options.dtype == "f64")
        jax.config.update("jax_enable_compilation_cache", False)
        warm_up_jax()
    if options.action == "reference":
        write_reference(options.file, robots)
        return
    if options.peer is None:
        parser.error("measure: choose a --peer")
    cases = options.cases or default_cases(options.peer, options.dtype)
    effort = QUICK if options.quick else FULL
    for record in measure_peer(options.peer, options.dtype, robots, cases, options.file, effort):
        print(json.dumps(record), flush=True)


if __name__ == "__main__":
    sys.exit(main())
