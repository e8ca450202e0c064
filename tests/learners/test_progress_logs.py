"""Progress of learners reaches the logs that people look at."""

import types
from typing import NamedTuple

import pytest

import mbjax
from mbjax.learners.progress_logs import progress_to


class Told(NamedTuple):
    steps: int
    reward: float


def test_both_forms_of_progress_reach_both_kinds_of_logs(tmp_path) -> None:
    written = []
    run = types.SimpleNamespace(log=lambda numbers, step: written.append((step, numbers)))
    progress_to(run)(10, {"eval/episode_reward": 2})
    progress_to(run)(Told(20, 3.0))
    assert written == [(10, {"eval/episode_reward": 2.0}), (20, {"steps": 20.0, "reward": 3.0})]
    tensorboard = pytest.importorskip("tensorboardX")
    with tensorboard.SummaryWriter(str(tmp_path)) as writer:
        progress_to(writer)(10, {"eval/episode_reward": 2.0})
    (file,) = tmp_path.glob("events*")
    assert b"eval/episode_reward" in file.read_bytes()


def test_other_logs_are_refused() -> None:
    with pytest.raises(mbjax.ModelError, match="got list"):
        progress_to([])
