"""Long work says what it is at, once a second person would wonder; short, traced and unwatched work is silent."""

import io
import re
import sys
import threading
import time

import jax
import jax.numpy as jnp
import pytest

import mbjax
from mbjax import progress
from mbjax import trajectory_optimization as to
from mbjax.progress import telling
from tests.trajectory_optimization.problems import linear_quadratic


class Terminal(io.StringIO):
    """A stream that people see."""

    def isatty(self) -> bool:
        return True


def terminal_in_place_of_stderr(monkeypatch) -> Terminal:
    """A terminal, and hasty lines. A fixture would come too early: pytest sets sys.stderr again after it."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PERIOD", 0.01)
    monkeypatch.setattr(progress, "QUIET_AT_FIRST", 0.05)
    monkeypatch.delenv(progress.VARIABLE, raising=False)
    return stream


def wait_for(stream: io.StringIO, text: str) -> None:
    """Returns once this and the seconds, few or many, were written; fails after half a minute."""
    end = time.monotonic() + 30.0
    while not re.search(rf"{re.escape(text)} … \d+ s", stream.getvalue()):
        assert time.monotonic() < end, f"{text!r} is not in {stream.getvalue()!r}"
        time.sleep(0.005)


def test_a_line_tells_compiling_from_running_and_the_last_one_stays(monkeypatch) -> None:
    terminal = terminal_in_place_of_stderr(monkeypatch)

    def slow_to_trace(x):
        wait_for(terminal, "work: compiling")
        return x + 1.0

    with telling("work") as teller:
        jax.jit(slow_to_trace)(1.0)
        wait_for(terminal, "work: running")
        teller.say("step 3")
        wait_for(terminal, "work: step 3")
    *lines, last, nothing = terminal.getvalue().replace("\n", "\r").split("\r")
    assert all(line.startswith("work: ") for line in lines if line.strip())
    assert last.startswith("work: ")
    assert last.rstrip().endswith("; step 3")
    assert nothing == ""
    assert "mbjax progress" not in [thread.name for thread in threading.enumerate()]


def test_short_work_and_work_within_work_say_nothing(monkeypatch) -> None:
    terminal = terminal_in_place_of_stderr(monkeypatch)
    with telling("outer", progress=True), telling("inner", progress=True):
        wait_for(terminal, "outer: running")
    assert "inner" not in terminal.getvalue()
    before = terminal.getvalue()
    monkeypatch.setattr(progress, "QUIET_AT_FIRST", 100.0)
    with telling("short", progress=True):
        time.sleep(0.05)
    assert terminal.getvalue() == before


@pytest.mark.parametrize("transformation", [jax.jit, jax.vmap, jax.grad, jax.make_jaxpr])
def test_nothing_is_said_from_traced_code(monkeypatch, transformation) -> None:
    terminal = terminal_in_place_of_stderr(monkeypatch)

    def traced(x):
        with telling("traced", progress=True):
            time.sleep(0.1)
            return x * 2.0

    transformation(traced)(jnp.ones(2) if transformation is jax.vmap else 1.0)
    assert terminal.getvalue() == ""


def test_only_who_watches_or_asks_is_told(monkeypatch) -> None:
    monkeypatch.setattr(progress, "PERIOD", 0.01)
    monkeypatch.setattr(progress, "QUIET_AT_FIRST", 0.0)
    for variable, asked, speaks in ((None, None, False), ("1", None, True), ("0", True, True), (None, False, False)):
        stream = io.StringIO()
        monkeypatch.setattr(sys, "stderr", stream)
        monkeypatch.delenv(progress.VARIABLE, raising=False)
        if variable:
            monkeypatch.setenv(progress.VARIABLE, variable)
        with telling("log", asked):
            if speaks:
                wait_for(stream, "log: running")
            else:
                time.sleep(0.05)
        assert ("\r" in stream.getvalue(), bool(stream.getvalue())) == (False, speaks)


@pytest.mark.whole_run(
    "a line tells compiling from running, above; progress in tests/simulation/test_rollout_policy.py"
)
def test_solve_and_simulate_speak_and_compile_no_more_for_it(monkeypatch) -> None:
    """The second call, with a line, finds the first call's program."""
    terminal = terminal_in_place_of_stderr(monkeypatch)
    problem = linear_quadratic()
    to.solve(problem, progress=False)
    assert terminal.getvalue() == ""
    plan = to.solve(problem, progress=True)
    assert plan.report.converged
    assert "compiling" not in terminal.getvalue()
    continuous = mbjax.load("pendulum")
    times = jnp.linspace(0.0, 0.1, 2)
    found = mbjax.simulate(continuous, mbjax.default_state(continuous), save_at=times, progress=True)
    assert found.q.shape == (2, 1)
    assert "simulate: compiling …" in terminal.getvalue()
