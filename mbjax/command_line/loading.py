"""Loads a file for a command that asks for no time step."""

from pathlib import Path
from typing import Any

from mbjax.formats import load
from mbjax.formats.records.plant_building import NeedsTimeStepError
from mbjax.model import MultibodyModel

STEP = 0.005  # s


def load_as_it_must_be(file: str | Path, **options: Any) -> MultibodyModel:
    """The continuous model of a file, or the discrete one where it has deformable bodies, which need a step."""
    try:
        return load(file, **options)
    except NeedsTimeStepError:
        return load(file, time_step=STEP, **options)
