"""The script for a GPU runs, small, where the tests run."""

import jax
import pytest

from benchmarks import gpu_walking


@pytest.mark.whole_run("its settings, below, and brax's wrappers in tests/environments/test_adapters.py")
def test_the_script_trains_and_tells(tmp_path, capsys: pytest.CaptureFixture) -> None:
    policy = tmp_path / "walk.npz"
    small = {"worlds": 8, "unrolls": 8, "steps": 128, "rows": 1, "commands": 2, "seconds": 1.6, "policy": policy}
    with jax.numpy_dtype_promotion("standard"):
        gpu_walking.main([word for name, value in small.items() for word in (f"--{name}", str(value))])
    told = capsys.readouterr().out
    assert "bare physics:" in told
    assert "environment:" in told
    assert told.count("steps,") == 2
    assert "% of 2 fell" in told
    assert policy.is_file()


def test_batches_are_made_of_whole_worlds(capsys: pytest.CaptureFixture) -> None:
    found = gpu_walking.settings("quadruped", 30_000_000, 4096, 8192, 20)
    assert found["batch_size"] * found["num_minibatches"] == 8192
    assert found["num_envs"] == 4096
    with pytest.raises(SystemExit):
        gpu_walking.main(["--worlds", "100"])
    assert "a multiple of 8 and of the worlds, got 8192" in capsys.readouterr().err
