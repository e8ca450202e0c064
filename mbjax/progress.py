"""Progress of long work: one line that says what is being done and for how long, beside the work.

A thread of its own writes the line to stderr. It adds nothing to what is compiled, and says nothing while a function is
traced.
"""

import contextlib
import os
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, TextIO

from jax.extend.core import get_opaque_trace_state

QUIET_AT_FIRST = 1.5  # s; what is done by then is not worth a line
PERIOD = 0.25  # s between looks at what is being done
PERIOD_OF_LINES = 10.0  # s between lines where they cannot be overwritten
COMPILERS = ("jax._src.compiler", "jax._src.interpreters.partial_eval", "jax._src.interpreters.mlir")
OUTSIDE_OF_TRACES = get_opaque_trace_state()
VARIABLE = "MBJAX_PROGRESS"

_busy = threading.local()  # whether the thread's work has a line already


class Teller:
    """What a line of progress says: the work, what it is at, and for how long."""

    def __init__(self, what: str):
        self.what = what
        self.detail = ""
        self.started = time.monotonic()
        self.compiling = 0.0  # s

    def say(self, detail: str) -> None:
        """Shows this instead of "running" from now on, like `step 3, cost 0.12`."""
        self.detail = detail

    def line(self, is_compiling: bool) -> str:
        """The line of now."""
        doing = "compiling" if is_compiling else self.detail or "running"
        return f"{self.what}: {doing} … {time.monotonic() - self.started:.0f} s"

    def last_line(self) -> str:
        """The line that stays."""
        compiling = f", {self.compiling:.0f} s of it to compile" if self.compiling >= 1.0 else ""
        detail = f"; {self.detail}" if self.detail else ""
        return f"{self.what}: {time.monotonic() - self.started:.0f} s{compiling}{detail}"


@contextlib.contextmanager
def telling(what: str, progress: bool | None = None) -> Iterator[Teller]:
    """Shows a line of progress beside the work inside, if it takes more than a moment.

    None shows it on a terminal and in a notebook only, True anywhere, False nowhere. The environment variable
    MBJAX_PROGRESS, 0 or 1, decides in place of None. Work within work that has a line, and work that is being traced by
    `jit`, `vmap` or `grad`, has none.
    """
    teller = Teller(what)
    stream = sys.stderr
    is_free = not getattr(_busy, "now", False) and get_opaque_trace_state() == OUTSIDE_OF_TRACES
    if not (is_free and (is_watched(stream) if progress is None else progress)):
        yield teller
        return
    done = threading.Event()
    arguments = (teller, done, stream, threading.get_ident())
    thread = threading.Thread(target=tell, args=arguments, name="mbjax progress", daemon=True)
    thread.start()
    _busy.now = True
    try:
        yield teller
    finally:
        _busy.now = False
        done.set()
        thread.join()


def is_watched(stream: Any) -> bool:
    """Whether somebody sees lines as they come: on a terminal, in a notebook, or where MBJAX_PROGRESS says so."""
    wanted = os.environ.get(VARIABLE, "")
    return wanted == "1" if wanted in ("0", "1") else is_overwritten(stream)


def is_overwritten(stream: Any) -> bool:
    """Whether a line can be written over: on a terminal and in a notebook."""
    is_notebook = type(stream).__module__.startswith("ipykernel")
    return is_notebook or bool(getattr(stream, "isatty", lambda: False)())


def tell(teller: Teller, done: threading.Event, stream: TextIO, worker: int) -> None:
    """Writes the line again and again until the work of the thread `worker` is done; then the line that stays."""
    overwrites, shown, next_line = is_overwritten(stream), "", QUIET_AT_FIRST
    looked = teller.started
    with contextlib.suppress(OSError, ValueError):  # the stream was closed: nobody sees it any more
        while not done.wait(PERIOD):
            is_compiling, now = compiles(worker), time.monotonic()
            teller.compiling += now - looked if is_compiling else 0.0
            looked = now
            if now - teller.started < next_line:
                continue
            if overwrites:
                shown = overwrite(stream, shown, teller.line(is_compiling))
            else:
                shown = teller.line(is_compiling)
                stream.write(shown + "\n")
                next_line += PERIOD_OF_LINES
            stream.flush()
        if shown:
            overwrite(stream, shown if overwrites else "", teller.last_line())
            stream.write("\n")
            stream.flush()


def overwrite(stream: TextIO, before: str, line: str) -> str:
    """Writes a line over the one before, cut to the width of the terminal; returns it."""
    width = shutil.get_terminal_size().columns - 1
    line = line if len(line) <= width or width < 20 else line[: width - 1] + "…"
    stream.write(f"\r{line:<{len(before)}}" if before else line)
    return line


def compiles(worker: int) -> bool:
    """Whether that thread is within JAX's tracing, lowering or compiling, as its stack tells."""
    frame = sys._current_frames().get(worker)
    while frame is not None:
        if frame.f_globals.get("__name__") in COMPILERS:
            return True
        frame = frame.f_back
    return False
