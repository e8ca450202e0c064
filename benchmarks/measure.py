"""Timing that can be trusted: compile apart from run, warm-up, blocking, medians with quartiles, static numbers."""

import dataclasses
import datetime
import importlib.metadata
import os
import pathlib
import platform
import re
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

PACKAGES = ("jax", "jaxlib", "frax", "mujoco", "mujoco-mjx", "pin", "example-robot-data", "numpy")


@dataclasses.dataclass(frozen=True)
class Effort:
    """How long to repeat one measurement."""

    seconds: float = 0.6
    min_repeats: int = 5
    max_repeats: int = 60
    block_seconds: float = 2e-3


FULL = Effort()
QUICK = Effort(seconds=0.02, min_repeats=3, max_repeats=5, block_seconds=1e-4)


@dataclasses.dataclass(frozen=True)
class Timing:
    """Seconds of one call over `repeats` blocks of calls.

    `cpu` is the median of the processor time of all threads: other programs on the machine stretch it less.
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
    """`call` must return only when its work is done. Short calls are timed in blocks."""
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
    """Seconds of each phase, the processor time of all three, and what the compiled program is.

    The program's numbers do not depend on the load. Flops and bytes are XLA's own count: the body of a loop may
    be counted once, whatever its trips.
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
    """The compiled program of `function`, and how it came about. The persistent cache must be off."""
    import jax

    cpu_start, start = time.process_time(), time.perf_counter()
    traced = jax.jit(function).trace(*args)
    after_trace = time.perf_counter()
    lowered = traced.lower()
    after_lower = time.perf_counter()
    compiled = lowered.compile()
    after_compile = time.perf_counter()
    cpu = time.process_time() - cpu_start
    text = compiled.as_text() or ""
    cost = compiled.cost_analysis() or {}
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


def count_instructions(hlo: str, opcode: str) -> int:
    """Instructions of one kind, those inside loop bodies included."""
    return len(re.findall(rf" {re.escape(opcode)}\(", hlo))


def warm_up_jax() -> None:
    """Starts the backend and the compiler, whose first use costs time that belongs to no function."""
    import jax
    import jax.numpy as jnp

    jax.block_until_ready(jax.jit(lambda x: jnp.sin(x) @ x)(jnp.ones(3)))


def empty_call_seconds(effort: Effort) -> float:
    """One jitted call that does nothing: the floor of a call from Python."""
    import jax
    import jax.numpy as jnp

    x = jnp.ones(3)
    nothing = jax.jit(lambda x: x + 1.0)
    return time_calls(lambda: jax.block_until_ready(nothing(x)), effort).median


def source_version(package_folder: pathlib.Path) -> str:
    """The commit of a source tree, and whether files in it differ from that commit."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(package_folder), *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
        except (OSError, subprocess.SubprocessError):
            return ""

    commit = git("rev-parse", "--short", "HEAD")
    if not commit:
        return version_of("mbjax")
    return f"commit {commit}" + (" with uncommitted changes" if git("status", "--porcelain", "--", ".") else "")


def load_average() -> str:
    """Load over 1, 5 and 15 minutes."""
    return " ".join(f"{load:.2f}" for load in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def machine() -> dict[str, str]:
    """What was measured, and on what."""
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": processor_name(),
        "XLA_FLAGS of the run": os.environ.get("XLA_FLAGS", "") or "none",
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        "mbjax": source_version(pathlib.Path(__file__).resolve().parents[1] / "mbjax"),
        "versions": ", ".join(f"{name} {version_of(name)}" for name in PACKAGES),
    }


def processor_name() -> str:
    cpuinfo = pathlib.Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or "unknown"


def version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "missing"
