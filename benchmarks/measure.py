"""The timing of `mbjax bench`, and what one run of the benchmarks was taken on."""

import pathlib
import subprocess
import time
from collections.abc import Callable
from typing import Any

import jax

from mbjax.command_line.machine import describe_machine, version_of
from mbjax.command_line.machine import device_name as device_name
from mbjax.command_line.machine import load_average as load_average
from mbjax.command_line.measurement import FULL as FULL
from mbjax.command_line.measurement import QUICK as QUICK
from mbjax.command_line.measurement import Compilation as Compilation
from mbjax.command_line.measurement import Effort as Effort
from mbjax.command_line.measurement import Timing as Timing
from mbjax.command_line.measurement import compile_apart as compile_apart
from mbjax.command_line.measurement import empty_call_seconds as empty_call_seconds
from mbjax.command_line.measurement import measure as measure
from mbjax.command_line.measurement import per_evaluation as per_evaluation
from mbjax.command_line.measurement import significant as significant
from mbjax.command_line.measurement import time_calls as time_calls
from mbjax.command_line.measurement import warm_up_jax as warm_up_jax
from mbjax.command_line.measurement import with_prefix as with_prefix

PACKAGES = ("jax", "jaxlib", "frax", "mujoco", "mujoco-mjx", "pin", "example-robot-data", "numpy")


def processor_seconds(function: Callable, *args: Any) -> tuple[Any, float]:
    """The result and the processor's seconds."""
    start = time.process_time()
    return jax.block_until_ready(function(*args)), time.process_time() - start


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


def machine() -> dict[str, str]:
    """What was measured, and on what; the device is named by the processes that compute on it."""
    return {
        **describe_machine(PACKAGES),
        "mbjax": source_version(pathlib.Path(__file__).resolve().parents[1] / "mbjax"),
    }
