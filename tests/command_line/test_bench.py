"""`mbjax bench`: arguments, numbers that agree with one another, files, and what goes wrong."""

import csv
import json

import jax
import numpy as np
import pytest

from mbjax.command_line import bench, main

FAST = ["--functions", "body_poses", "--seconds", "0.01"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--batch", "1,x"], "'x' in '1,x' is no number of worlds"),
        (["--batch", "0"], "whole numbers above 0"),
        (["--batch", "1,,2"], "'' in '1,,2'"),
        (["--batch", "2.5"], "'2.5'"),
        (["--functions", "mass_matrx"], "did you mean mass_matrix?"),
        (["--dtype", "float16"], "float16"),
        (["--output", "results.txt"], ".csv or .json"),
        (["--seconds", "0"], "above 0"),
    ],
)
def test_wrong_arguments_exit_with_2(arguments, says, capsys) -> None:
    with pytest.raises(SystemExit) as done:
        main(["bench", "pendulum", *arguments])
    assert done.value.code == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_help_lists_the_functions_and_exit_codes(capsys) -> None:
    with pytest.raises(SystemExit) as done:
        main(["bench", "--help"])
    assert done.value.code == 0
    text = capsys.readouterr().out
    for name in bench.QUESTIONS:
        assert f"\n  {name} " in text
    assert "exit codes" in text


def test_missing_and_bad_files(tmp_path, capsys) -> None:
    assert main(["bench", "pendulun"]) == 2
    assert "Did you mean 'pendulum'?" in capsys.readouterr().err
    file = tmp_path / "robot.urdf"
    file.write_text("<robot name='r'><link name='a'>")
    assert main(["bench", str(file)]) == 3
    assert "robot.urdf:1" in capsys.readouterr().err


def test_numbers_agree_with_one_another_and_reach_the_json_file(tmp_path, capsys) -> None:
    file = tmp_path / "new" / "results.json"
    assert main(["bench", "pendulum", *FAST, "--batch", "1,6", "--output", str(file)]) == 0
    text = capsys.readouterr().out
    assert "body_poses" in text
    assert "1 positions, 1 velocities, float32" in text
    assert "device: " in text
    written = json.loads(file.read_text())
    assert written["facts"]["dtype"] == "float32"
    assert written["facts"]["device"]
    assert [(row["function"], row["batch"]) for row in written["rows"]] == [("body_poses", 1), ("body_poses", 6)]
    for row in written["rows"]:
        assert 0.0 < row["minimum"] <= row["lower_quartile"] <= row["median"] <= row["upper_quartile"]
        np.testing.assert_allclose(row["evaluations_per_s"] * row["median"], 1.0, rtol=1e-12)
        phases = [row[key] for key in ("trace_s", "lower_s", "compile_s")]
        assert all(phase > 0.0 for phase in phases)
        np.testing.assert_allclose(row["compile_total_s"], sum(phases), rtol=1e-12)
        np.testing.assert_allclose(row["temp_bytes_per_world"] * row["batch"], row["temp_bytes"], rtol=1e-12)


def test_csv_repeats_the_facts_and_the_settings_of_jax_stay(tmp_path) -> None:
    file = tmp_path / "results.csv"
    before = (jax.config.jax_enable_x64, jax.config.jax_enable_compilation_cache)
    assert main(["bench", "pendulum", *FAST, "--batch", "3,3", "--dtype", "float64", "--output", str(file)]) == 0
    assert (jax.config.jax_enable_x64, jax.config.jax_enable_compilation_cache) == before
    with file.open() as stream:
        (row,) = csv.DictReader(stream)
    assert row["batch"] == "3"
    assert row["dtype"] == "float64"
    assert row["velocities"] == "1"
    np.testing.assert_allclose(float(row["evaluations_per_s"]) * float(row["median"]), 1.0, rtol=1e-12)


def test_what_the_device_refuses_is_a_row_and_exits_with_1(monkeypatch, capsys) -> None:
    measured = bench.measure

    def refuse_many(function, args, effort, through_jit):
        if not through_jit:
            raise jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\nmore")
        return measured(function, args, effort, through_jit=through_jit)

    monkeypatch.setattr(bench, "measure", refuse_many)
    assert main(["bench", "pendulum", *FAST, "--batch", "7,1"]) == 1
    text = capsys.readouterr().out
    assert "body_poses, 7 worlds: RESOURCE_EXHAUSTED: Out of memory" in text
    refused, done = (
        line.split() for line in text.splitlines() if line.split()[-1:] == ["failed"] or line.split()[:1] == ["1"]
    )
    assert refused == ["body_poses", "7", "failed"]
    assert float(done[1]) > 0.0  # seconds to compile


def test_what_was_measured_is_shown_when_the_rest_is_stopped(monkeypatch, capsys) -> None:
    measured = iter([{"error": "none yet"}])

    def stop(*_):
        row = next(measured, None)
        if row is None:
            raise KeyboardInterrupt
        return row

    monkeypatch.setattr(bench, "measure_question", stop)
    assert main(["bench", "pendulum", "--batch", "1,2"]) == 130
    captured = capsys.readouterr()
    assert "forward_dynamics, 1 worlds: none yet" in captured.out
    assert "stopped" in captured.err
