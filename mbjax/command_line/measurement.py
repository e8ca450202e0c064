"""Reliable timing: compile and run apart, warm-up, blocking, medians with quartiles, static numbers of programs."""

import dataclasses
import math
import re
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from mbjax.execution import forget_traces


@dataclasses.dataclass(frozen=True)
class Effort:
    """Effort of one measurement: how long, and how often at least and at most, it is repeated."""

    seconds: float = 0.6
    min_repeats: int = 5
    max_repeats: int = 60
    block_seconds: float = 2e-3


FULL = Effort()
QUICK = Effort(seconds=0.02, min_repeats=3, max_repeats=5, block_seconds=1e-4)


@dataclasses.dataclass(frozen=True)
class Timing:
    """Statistics of the seconds that one call takes, over `repeats` blocks of calls.

    `cpu` is the median processor time of all threads of this process, which other programs stretch less.
    """

    median: float
    minimum: float
    lower_quartile: float
    upper_quartile: float
    cpu: float
    repeats: int

    def per(self, evaluations: int) -> "Timing":
        return self._mapped(lambda seconds: seconds / evaluations)

    def minus(self, overhead: float) -> "Timing":
        return self._mapped(lambda seconds: seconds - overhead)

    def _mapped(self, change: Callable[[float], float]) -> "Timing":
        return Timing(*(change(getattr(self, name)) for name in TIMES), repeats=self.repeats)


TIMES = ("median", "minimum", "lower_quartile", "upper_quartile", "cpu")


def time_calls(call: Callable[[], Any], effort: Effort) -> Timing:
    """Times `call`, which must return only when its work is done; short calls are timed in blocks."""
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    number = max(1, int(effort.block_seconds / max(once, 1e-9)))
    samples: list[float] = []
    cpu_samples: list[float] = []
    deadline = time.perf_counter() + effort.seconds
    while len(samples) < effort.min_repeats or (time.perf_counter() < deadline and len(samples) < effort.max_repeats):
        cpu_start, start = time.process_time(), time.perf_counter()
        for _ in range(number):
            call()
        samples.append((time.perf_counter() - start) / number)
        cpu_samples.append((time.process_time() - cpu_start) / number)
    lower, median, upper = statistics.quantiles(samples, n=4, method="inclusive")
    return Timing(median, min(samples), lower, upper, statistics.median(cpu_samples), len(samples))


@dataclasses.dataclass(frozen=True)
class Compilation:
    """Seconds of each compile phase, processor time of all three, and static numbers of the compiled program.

    The static numbers do not depend on the machine's load. Flops and bytes are XLA's own count, which may count the
    body of a loop once, whatever its trip count. `temp_bytes` is the memory needed besides arguments and results.
    """

    trace_s: float
    lower_s: float
    compile_s: float
    compile_cpu_s: float
    fusions: int
    whiles: int
    custom_calls: int
    flops: float | None
    bytes_accessed: float | None
    temp_bytes: int | None

    @property
    def total_s(self) -> float:
        return self.trace_s + self.lower_s + self.compile_s


def compile_apart(function: Callable, args: tuple) -> tuple[Any, Compilation]:
    """Compiles `function` as in a new process; returns the program and its `Compilation`.

    The persistent cache must be off.
    """
    forget_programs()
    cpu_start, start = time.process_time(), time.perf_counter()
    traced = jax.jit(function).trace(*args)
    after_trace = time.perf_counter()
    lowered = traced.lower()
    after_lower = time.perf_counter()
    compiled = lowered.compile()
    after_compile = time.perf_counter()
    cpu = time.process_time() - cpu_start
    text = compiled.as_text() or ""
    cost: Any = compiled.cost_analysis() or {}
    memory = compiled.memory_analysis()
    return compiled, Compilation(
        after_trace - start,
        after_lower - after_trace,
        after_compile - after_lower,
        cpu,
        count_instructions(text, "fusion"),
        count_instructions(text, "while"),
        count_instructions(text, "custom-call"),
        cost.get("flops"),
        cost.get("bytes accessed"),
        getattr(memory, "temp_size_in_bytes", None),
    )


def forget_programs() -> None:
    """Forgets all that this process has traced and compiled."""
    jax.clear_caches()
    forget_traces()


def count_instructions(hlo: str, opcode: str) -> int:
    """Number of instructions with an opcode, including those inside loop bodies."""
    return len(re.findall(rf" {re.escape(opcode)}\(", hlo))


def measure(function: Callable, args: tuple, effort: Effort, *, through_jit: bool = False) -> dict[str, Any]:
    """Measures `function(*args)`; returns the fields of `Timing` and `Compilation`, and `compile_total_s`.

    `through_jit` times the jitted call that a user makes, which compiles once more. A compiled program called directly
    is dispatched more slowly, which matters for calls of a few microseconds only.
    """
    compiled, compilation = compile_apart(function, args)
    call = jax.jit(function) if through_jit else compiled
    timing = time_calls(lambda: jax.block_until_ready(call(*args)), effort)
    return {**dataclasses.asdict(timing), **dataclasses.asdict(compilation), "compile_total_s": compilation.total_s}


def per_evaluation(record: dict[str, Any], evaluations: int) -> dict[str, Any]:
    """A record of `measure` with its times divided by the number of evaluations in a call."""
    return {**record, **{name: record[name] / evaluations for name in TIMES}}


def warm_up_jax() -> None:
    """Starts the backend and the compiler, so that the cost of their first use is not charged to a function."""
    jax.block_until_ready(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones(3)))


def empty_call_seconds(effort: Effort) -> float:
    """Seconds of a jitted call with negligible work, the least that a call from Python costs."""
    x = jnp.ones(3)
    nothing = jax.jit(lambda x: x + 1.0)
    return time_calls(lambda: jax.block_until_ready(nothing(x)), effort).median


def significant(x: float, digits: int = 3) -> str:
    """Text of a number with `digits` significant digits, without an exponent."""
    if x == 0 or not math.isfinite(x):
        return str(x)
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(x))))
    return f"{x:.{decimals}f}"


def with_prefix(x: float, unit: str) -> str:
    """Text of a number with three significant digits, a fitting prefix and the unit: "1.23 kB"."""
    for factor, prefix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= factor:
            return f"{significant(x / factor)} {prefix}{unit}"
    return f"{significant(x)} {unit}".rstrip()
