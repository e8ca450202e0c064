"""Arrows, frames and the centre of mass, drawn over the bodies of a live view."""

from __future__ import annotations

from typing import Any

import numpy as np

from .scene import Rgb, quaternions_wxyz

CONTACT_COLOR: Rgb = (228, 87, 46)
GRADIENT_COLOR: Rgb = (46, 134, 87)
DRAG_COLOR: Rgb = (123, 45, 142)
LONGEST = 0.5  # of the scene's size


class Overlays:
    """Things that are drawn over the bodies, each on request."""

    def __init__(self, server: Any, size: float) -> None:
        self.server = server
        self.size = size
        self.arrow_sets: dict[str, Any] = {}
        self.axes: Any = None
        self.mass_center: Any = None

    def arrows(self, name: str, points: np.ndarray, vectors: np.ndarray, color: Rgb) -> int:
        """Draws arrows of the lengths given, in m, instead of those of this name so far; returns their number."""
        points, vectors = np.asarray(points, float).reshape(-1, 3), np.asarray(vectors, float).reshape(-1, 3)
        length = np.linalg.norm(vectors, axis=1)
        seen = np.isfinite(length) & (length > 1e-4 * self.size)
        longest = LONGEST * self.size
        short = np.minimum(1.0, longest / np.where(seen, length, 1.0))
        tips = np.stack([points, points + vectors * short[:, None]], axis=1)[seen]
        old = self.arrow_sets.pop(name, None)
        if old is not None and len(tips) == len(old.points):
            old.points = tips.astype(np.float32)
            self.arrow_sets[name] = old
            return len(tips)
        if old is not None:
            old.remove()
        if len(tips):
            self.arrow_sets[name] = self.server.scene.add_arrows(
                f"/arrows/{name}", tips, color, shaft_radius=0.006 * self.size, head_radius=0.016 * self.size,
                head_length=0.04 * self.size,
            )  # fmt: skip
        return len(tips)

    def frames(self, rotation: np.ndarray | None, translation: np.ndarray | None) -> None:
        """Draws the bodies' frames, or none of them."""
        if rotation is None or translation is None:
            if self.axes is not None:
                self.axes.visible = False
            return
        wxyz = quaternions_wxyz(rotation)
        if self.axes is None:
            self.axes = self.server.scene.add_batched_axes(
                "/frames", wxyz, translation, axes_length=0.08 * self.size, axes_radius=0.004 * self.size
            )
        self.axes.visible = True
        self.axes.batched_wxyzs, self.axes.batched_positions = wxyz, translation

    def center(self, position: np.ndarray | None) -> None:
        """Draws the centre of mass as a ball, or not at all."""
        if position is None:
            if self.mass_center is not None:
                self.mass_center.visible = False
            return
        if self.mass_center is None:
            self.mass_center = self.server.scene.add_icosphere(
                "/center of mass", radius=0.03 * self.size, color=(240, 180, 40)
            )
        self.mass_center.visible = True
        self.mass_center.position = position
