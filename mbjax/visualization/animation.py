"""Writes recorded motion as one HTML file that plays in a browser without a server or a network."""

from __future__ import annotations

import dataclasses
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

from .animation_data import RecordedMotion, animation_record, frames_that_fit
from .packed_arrays import PackedArrays, deflated
from .video import film

VIEWER_SCRIPTS = (
    "three.min.js",
    "shapes.js",
    "arrows.js",
    "patches.js",
    "deformables.js",
    "joints.js",
    "scene.js",
    "player.js",
)


@dataclasses.dataclass(frozen=True)
class Animation:
    """An animated page that plays in any browser without a network; a notebook shows it in place.

    `html` is the whole page, `num_frames` the number of frames of its first trajectory, and `height` the height in
    pixels at which a notebook shows it.
    """

    html: str = dataclasses.field(repr=False)
    num_frames: int
    height: int = 520

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        width: int = 960,
        height: int = 540,
        frames_per_second: float = 30.0,
        speed: float = 1.0,
        time: float | None = None,
    ) -> Path:
        """Writes the animation to a file of the kind that its suffix names; returns the file's path.

        `.html` is the page itself. `.mp4`, `.webm` and `.gif` are videos, `.png` and `.jpg` pictures at `time` in s, by
        default at the end: a Chromium without a window films the page at `width` by `height` pixels. Videos need
        `pip install "mbjax[video]"`. `speed` is how many seconds of the animation pass in one second of the video.
        """
        path = Path(path)
        if path.suffix.lower() in ("", ".html", ".htm"):
            path.write_text(self.html, encoding="utf-8")
            return path
        options = {"width": width, "height": height, "frames_per_second": frames_per_second, "speed": speed}
        return film(self.html, path, time=time, **options)

    def _repr_html_(self) -> str:
        page = html.escape(self.html, quote=True)
        style = f"width: 100%; height: {self.height}px; border: 0; border-radius: 10px"
        return f'<iframe srcdoc="{page}" sandbox="allow-scripts" style="{style}" title="mbjax animation"></iframe>'


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
    """Writes the motion of nb bodies (world first) as a page of less than 5 MB; returns its path.

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
    kept = frames_that_fit(*translation.shape[:3])
    motions = [
        RecordedMotion(times[kept], rotation[w, kept], translation[w, kept], len(times))
        for w in range(len(translation))
    ]
    record, packed = animation_record(geometries, body_names, parents, motions, title)
    path = Path(path)
    path.write_text(page(record, packed), encoding="utf-8")
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
    for world in range(len(translation)):
        require_finite_trajectory("write_animation", body_names, rotation[world], translation[world], times, world)


def require_finite_trajectory(
    call: str,
    body_names: Sequence[str],
    rotation: np.ndarray,
    translation: np.ndarray,
    times: np.ndarray,
    world: int,
) -> None:
    """Raises `ValueError` for the first non-finite pose of a world; rotation (T, nb, 3, 3), translation (T, nb, 3)."""
    is_finite = np.isfinite(translation).all(-1) & np.isfinite(rotation).all((-2, -1))
    if not is_finite.all():
        frame, body = np.argwhere(~is_finite)[0]
        raise ValueError(
            f"{call}: the pose of body '{body_names[body]}' is not finite at "
            f"t = {times[frame]:.6g} s (frame {frame}, world {world}). The simulation diverged: "
            "pass the frames before it, or reduce the time step."
        )


def page(record: dict[str, Any], packed: PackedArrays) -> str:
    """The HTML page of a record; the viewer and the arrays are deflated, and the browser inflates them."""
    viewer = resources.files("mbjax.visualization") / "viewer"

    def read(name: str) -> str:
        return (viewer / name).read_text(encoding="utf-8")

    # "<" is escaped, so that no name in the record can end the script element.
    data = json.dumps(record, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    parts = {
        "title": html.escape(record["title"]),
        "three_license": read("three.LICENSE.txt"),
        "style": read("style.css"),
        "unpack": read("unpack.js"),
        "viewer": deflated("\n".join(read(name) for name in VIEWER_SCRIPTS).encode()),
        "data": data,
        "arrays": packed.text(),
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], read("page.html"))
