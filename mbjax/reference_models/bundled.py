"""Robots that come with the package, as URDF files."""

from __future__ import annotations

import difflib
from importlib import resources
from pathlib import Path

REFERENCE_MODELS = ("pendulum", "acrobot", "cart_pole", "four_bar", "arm", "quadruped")


def path(name: str) -> Path:
    """The file of a reference model; an unknown name raises `KeyError` that lists the nearest names."""
    if name not in REFERENCE_MODELS:
        near = difflib.get_close_matches(name, REFERENCE_MODELS, n=3, cutoff=0.5)
        guess = f"Did you mean {' or '.join(repr(match) for match in near)}? " if near else ""
        raise KeyError(f"there is no reference model '{name}'. {guess}The models are: {', '.join(REFERENCE_MODELS)}.")
    return Path(str(resources.files("mbjax.reference_models") / f"{name}.urdf"))
