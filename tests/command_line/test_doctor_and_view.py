"""`mbjax doctor` says what is there and what is missing; `mbjax view` serves a robot."""

import json
import pathlib
import sys
import threading
import tomllib
import urllib.request

import pytest

from mbjax.command_line import doctor, main, view

PROJECT = pathlib.Path(__file__).parents[2] / "pyproject.toml"


@pytest.mark.whole_run("what doctor says of a step, below, and steps themselves in tests/simulation/test_step.py")
def test_doctor_checks_a_step(capsys, monkeypatch) -> None:
    check_step = doctor.check_step
    monkeypatch.setattr(doctor, "check_step", lambda: check_step("pendulum"))  # compiles faster than the arm
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step"]["is_right"]
    assert found["step"]["residual"] < 1e-8
    assert found["versions"]["jax"]
    assert found["kernels"].startswith(("on", "off", "GPU kernels are interpreted"))


def test_doctor_says_what_is_missing(capsys, monkeypatch) -> None:
    monkeypatch.setattr(doctor, "check_step", lambda: doctor.StepCheck(1.0, 50.0, 1e-3, 1e-9))
    monkeypatch.setitem(doctor.EXTRAS, "view", (("no_such_module",), "the live view"))
    assert main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert 'view: no_such_module missing; for the live view: pip install "mbjax[view]"' in text
    assert "WRONG" in text


def test_doctor_knows_all_extras() -> None:
    extras = tomllib.loads(PROJECT.read_text())["project"]["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(extras) - {"all", "docs", "test"}


@pytest.mark.whole_run("view writes a page, below; the live view in tests/visualization/test_live_view.py")
def test_view_serves_a_robot(capsys, monkeypatch) -> None:
    seen = threading.Event()

    def wait(viewer):
        with urllib.request.urlopen(viewer.url, timeout=20) as page:
            assert b"<html" in page.read().lower()
        seen.set()

    monkeypatch.setattr(view.Viewer, "wait", wait)
    assert main(["view", "pendulum", "--port", "0", "--no-browser"]) == 0
    assert seen.is_set()
    assert "pendulum.urdf: http://127.0.0.1:" in capsys.readouterr().out


def test_view_writes_a_page(tmp_path, capsys) -> None:
    assert main(["view", "pendulum", "--save", str(tmp_path / "page.html")]) == 0
    assert "mbjax-data" in (tmp_path / "page.html").read_text()


def test_what_is_missing_ends_with_code_5(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    monkeypatch.delenv("MBJAX_CHROMIUM", raising=False)
    monkeypatch.setitem(sys.modules, "viser", None)
    for arguments, words in (
        (["--save", str(tmp_path / "pose.png")], "no Chromium"),
        ([], 'pip install "mbjax[view]"'),
    ):
        assert main(["view", "pendulum", *arguments]) == 5
        said = capsys.readouterr().err
        assert said.startswith("mbjax: error: ")
        assert words in said
    assert main(["view", "pendulum", "--save", str(tmp_path / "no" / "page.html")]) == 1
