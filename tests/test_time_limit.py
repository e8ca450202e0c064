"""A test that hangs fails within the limit of pyproject.toml, and the report says where it stands."""

import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent


def test_a_test_that_hangs_fails_and_says_where(tmp_path: pathlib.Path, pytestconfig: pytest.Config) -> None:
    assert 0.0 < float(pytestconfig.getini("timeout")) <= 1800.0
    hanging = tmp_path / "test_hanging.py"
    hanging.write_text("import threading\n\n\ndef test_that_waits():\n    threading.Event().wait(60.0)\n")
    options = (
        "-c",
        str(ROOT / "pyproject.toml"),
        "--rootdir",
        str(tmp_path),
        "-o",
        "timeout=1",
        "-p",
        "no:cacheprovider",
    )
    command = [sys.executable, "-m", "pytest", *options, str(hanging)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=50, cwd=tmp_path)
    said = run.stdout + run.stderr
    assert run.returncode != 0, said
    assert "Timeout" in said, said
    assert "in test_that_waits" in said, said
