"""Compiled programs are found by the next process, those that are kernels of our own too."""

import os
import subprocess
import sys

import jax
import pytest

import mbjax
from tests.gradients.checks import WHOLE_RUN

PROGRAM = """
import sys
import jax, jax.numpy as jnp
import mbjax

found = []
jax.monitoring.register_event_listener(lambda name, **_: found.append(name.rpartition("/")[2]))
assert str(mbjax.keep_compiled_programs(sys.argv[1])) == sys.argv[1]
model = mbjax.load("pendulum", time_step=0.01)

def end(q):
    return mbjax.rollout(model, mbjax.State(q, jnp.zeros(1), 0.0), num_steps=3).final_state.q[0]

fast = lambda q: mbjax.forward_dynamics(model, q, q, q)[0]
program = jax.jit(jax.grad(end) if sys.argv[2] == "whole" else fast).lower(jnp.ones(1))
assert "xla_cpu_small_call" in program.as_text()
found.clear()
program.compile()
print(found.count("cache_hits"), found.count("cache_misses"))
"""


@pytest.mark.whole_run("the folder and the settings that JAX is given, below")
def test_the_next_process_finds_a_program(tmp_path) -> None:
    """Dynamics are lowered to the same text in each process, whatever the order of its sets.

    Whole run: a gradient of a rollout.
    """
    counts = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "JAX_ENABLE_COMPILATION_CACHE": "true"}
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(tmp_path), "whole" if WHOLE_RUN else "trimmed"],
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )
        assert done.returncode == 0, done.stderr
        counts.append(done.stdout.split())
    assert counts == [["0", "1"], ["1", "0"]]


def test_a_folder_that_jax_was_given_stays(tmp_path, monkeypatch) -> None:
    names = ("dir", "min_compile_time_secs", "min_entry_size_bytes")
    names = [f"jax_{'compilation' if name == 'dir' else 'persistent'}_cache_{name}" for name in names]
    before = [getattr(jax.config, name) for name in names]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    try:
        jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
        assert mbjax.keep_compiled_programs() == tmp_path / "own"
        jax.config.update("jax_compilation_cache_dir", None)
        assert mbjax.keep_compiled_programs() == tmp_path / "cache" / "mbjax"
        assert [getattr(jax.config, name) for name in names] == [str(tmp_path / "cache" / "mbjax"), 0.0, -1]
    finally:
        for name, value in zip(names, before, strict=True):
            jax.config.update(name, value)
