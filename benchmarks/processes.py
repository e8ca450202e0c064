"""Running a process within a time limit, and showing tables."""

import os
import pathlib
import subprocess
import tempfile
import threading
from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as RichTable

from .results import Table

ROOT = pathlib.Path(__file__).resolve().parents[1]


KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296"}
ONE_THREAD_FLAGS = "--xla_cpu_multi_thread_eigen=false --xla_cpu_scheduler_type=CPU_SCHEDULER_TYPE_MEMORY_OPTIMIZED"


def environment_of_process(threads: int, keeps_memory: bool = False) -> dict[str, str]:
    """XLA as it comes (0 threads), or on one thread with the flags that frax recommends: the same for every peer.

    With `keeps_memory` the C library of Linux gives no memory back, else it does after each call of what has 32 MB.
    """
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1", PYTHONWARNINGS="ignore")
    environment |= KEEPS_MEMORY if keeps_memory else {}
    if threads:
        environment["PJRT_NPROC"] = environment["NPROC"] = str(threads)
        environment["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {ONE_THREAD_FLAGS}".strip()
    return environment


def run_limited(
    command: list[str], environment: dict[str, str] | None, limit: float
) -> tuple[list[str], int | None, str]:
    """Lines printed, exit status (None after the time limit), and the last line of the errors."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
        assert process.stdout is not None
        expired = threading.Event()
        timer = threading.Timer(limit, lambda: (expired.set(), process.kill()))
        timer.start()
        lines = process.stdout.read().splitlines()
        rc = process.wait()
        timer.cancel()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or [""])[-1]
    return lines, (None if expired.is_set() else rc), last


def print_tables(tables: Iterable[Table], console: Console) -> None:
    """mbjax's rows stand out."""
    for table in tables:
        shown = RichTable(*table.columns, title=table.title, caption=escape(table.note), box=box.SIMPLE_HEAD)
        for row in table.rows:
            shown.add_row(*map(escape, row), style="bold" if row[0].startswith("mbjax") else None)
        console.print(shown)
