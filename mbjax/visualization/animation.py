"""Recorded motion to one HTML file that plays in a browser without a server or a network."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from mbjax.geometry import Geometry

from .animation_data import animation_record

VIEWER_SCRIPTS = ("three.min.js", "shapes.js", "scene.js", "player.js")


def write_animation(
    path: str | os.PathLike[str],
    *,
    geometries: Sequence[Sequence[Geometry]],
    body_names: Sequence[str],
    X_WB_rotation: np.ndarray,
    X_WB_translation: np.ndarray,
    times: np.ndarray,
    title: str,
    parents: Sequence[int] | None = None,
) -> Path:
    """Write the motion of nb bodies (world first) as a page of less than 5 MB; returns its path.

    X_WB_rotation (T, nb, 3, 3), X_WB_translation (T, nb, 3) in m, times (T,) in s, increasing. With
    a leading axis W the worlds are laid over one another: the first opaque, the others translucent.
    `geometries` holds those of each body, `parents` the index of each body's parent (-1 for the
    world); with it, bodies without geometry are joined by sticks. Meshes that cannot be read are
    left out and listed in one warning. Recordings too long for the page lose frames, evenly spread.
    """
    rotation = np.asarray(X_WB_rotation, dtype=np.float64)
    translation = np.asarray(X_WB_translation, dtype=np.float64)
    times = np.asarray(times, dtype=np.float64)
    if rotation.ndim == 4:
        rotation = rotation[None]
    if translation.ndim == 3:
        translation = translation[None]
    parents = [-1] * len(body_names) if parents is None else list(parents)
    _check(geometries, body_names, parents, rotation, translation, times)
    record = animation_record(geometries, body_names, parents, rotation, translation, times, title)
    path = Path(path)
    path.write_text(_page(record), encoding="utf-8")
    return path


def _check(
    geometries: Sequence[Sequence[Geometry]],
    body_names: Sequence[str],
    parents: Sequence[int],
    rotation: np.ndarray,
    translation: np.ndarray,
    times: np.ndarray,
) -> None:
    nb = len(body_names)
    if not (len(geometries) == len(parents) == nb):
        raise ValueError(
            f"write_animation: {nb} body_names, {len(geometries)} geometries, "
            f"{len(parents)} parents. Give one entry a body in each, world first."
        )
    if times.ndim != 1 or len(times) == 0 or not np.all(np.diff(times) > 0.0):
        raise ValueError(
            f"write_animation: times of shape {times.shape} must be a non-empty list of increasing seconds."
        )
    expected = (translation.shape[0], len(times), nb, 3)
    if translation.shape != expected or rotation.shape != (*expected, 3) or expected[0] == 0:
        raise ValueError(
            f"write_animation: X_WB_translation has shape {translation.shape} and X_WB_rotation "
            f"{rotation.shape}; {len(times)} times and {nb} bodies need "
            f"(W, {len(times)}, {nb}, 3) and (W, {len(times)}, {nb}, 3, 3). "
            "The axis W may be left out."
        )
    is_finite = np.isfinite(translation).all(-1) & np.isfinite(rotation).all((-2, -1))
    if not is_finite.all():
        world, frame, body = np.argwhere(~is_finite)[0]
        raise ValueError(
            f"write_animation: the pose of body '{body_names[body]}' is not finite at "
            f"t = {times[frame]:.6g} s (frame {frame}, world {world}). The simulation diverged: "
            "pass the frames before it, or reduce the time step."
        )


def _page(record: dict[str, Any]) -> str:
    viewer = resources.files("mbjax.visualization") / "viewer"

    def read(name: str) -> str:
        return (viewer / name).read_text(encoding="utf-8")

    # "<" written as an escape: no name in the record can end the script element.
    data = json.dumps(record, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": html.escape(record["title"]),
        "three_license": read("three.LICENSE.txt"),
        "style": read("style.css"),
        "scripts": "\n".join(f"<script>{read(name)}</script>" for name in VIEWER_SCRIPTS),
        "data": data,
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], read("page.html"))
