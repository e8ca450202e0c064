"""What an iteration's parts take: each as a program of its own, about a plan."""

import dataclasses
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbjax.errors import ModelError
from mbjax.execution import is_traced

from .expansion import expand, expand_running, expand_terminal, linearize_problem, motion_slopes_of
from .feasibility_ddp import room_of
from .problem import Problem, prepared
from .riccati import solve_riccati
from .rolled_out import rolled_out
from .solution import Solution


@dataclasses.dataclass(frozen=True)
class PhaseTimes:
    """Seconds of each phase of an iteration, by its name, and what its program took to compile."""

    seconds: dict[str, float]
    compile_seconds: dict[str, float]

    def __str__(self) -> str:
        width = max(len(name) for name in self.seconds)
        lines = [f"{'phase':{width}}        ms   to compile, s"]
        for name, value in self.seconds.items():
            lines.append(f"{name:{width}}{1e3 * value:10.3f}{self.compile_seconds[name]:16.1f}")
        return "\n".join(lines)


def phase_times(problem: Problem, plan: Solution, repeats: int = 5) -> PhaseTimes:
    """Times of the phases of an iteration about a plan: steps, their derivatives, those of costs, and the feedback.

    Each phase is compiled by itself, which takes about as long as compiling `solve`; the quickest of `repeats` runs
    counts. In a search the phases are one program, which may be quicker than their sum. Constraints are left out.
    """
    problem = prepared(problem)
    if is_traced(jax.tree.leaves((eqx.filter(problem, eqx.is_array), plan))):
        raise ModelError("phase_times: it measures time, so it cannot stand within jit, vmap or grad.")
    before = jax.tree.map(lambda x: x[:-1], plan.states)
    reached, last = (jax.tree.map(lambda x, p=p: x[p], plan.states) for p in (slice(1, None), -1))
    stages, steps = jax.tree.map(lambda x: x[:-1], problem.stages), jnp.arange(problem.num_steps)

    def of_costs(problem: Problem) -> Any:
        motions = motion_slopes_of(problem, before, plan.efforts, stages)
        one = jax.vmap(lambda x, u, stage, k, motion: expand_running(problem, x, u, stage, k, None, motion))
        return one(before, plan.efforts, stages, steps, motions), expand_terminal(problem, last, None)

    expansion = eqx.filter_jit(expand)(problem, plan.states, plan.efforts, reached, None)
    small = jnp.asarray(1e-9, plan.efforts.dtype)
    phases: dict[str, tuple[Callable, tuple]] = {
        "steps": (rolled_out, (problem, plan.efforts)),
        "derivatives of steps": (linearize_problem, (problem, before, plan.efforts, stages, reached)),
        "derivatives of costs": (of_costs, (problem,)),
        "Riccati recursion": (solve_riccati, (expansion, small, room_of(problem, plan.efforts))),
    }
    measured = {name: measure(eqx.filter_jit(function), given, repeats) for name, (function, given) in phases.items()}
    return PhaseTimes({name: m[0] for name, m in measured.items()}, {name: m[1] for name, m in measured.items()})


def measure(function: Callable, given: tuple, repeats: int) -> tuple[float, float]:
    """The quickest run of a compiled function, and what the first one took longer."""
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        jax.block_until_ready(function(*given))
        times.append(time.perf_counter() - begin)
    return min(times[1:]), times[0] - min(times[1:])
