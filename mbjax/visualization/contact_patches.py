"""Surfaces of contact with their pressure, hydroelastic ones and those of soft bodies, as triangles for each frame."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import numpy as np

from mbjax.geometry.hydroelastic import ContactSurface

from .packed_arrays import PackedArrays, steps_of

POINT_STEPS = 2**21
PRESSURE_STEPS = 65535
MOST_TRIANGLES = 60_000  # of one world; where there are more, every second or third frame has its surface and so on


@dataclasses.dataclass(frozen=True)
class Patches:
    """Triangles (n, 3, 3) in the world with the pressures (n, 3) at their corners in Pa, and their frames (n,)."""

    frames: np.ndarray
    corners: np.ndarray
    pressures: np.ndarray


def contact_patches(surfaces: Iterable[ContactSurface]) -> Patches:
    """The faces of all surfaces of contact, over frames; each is a fan of triangles."""
    frames, corners, pressures = [np.zeros(0, int)], [np.zeros((0, 3, 3))], [np.zeros((0, 3))]
    for surface in surfaces:
        at, pressure = (np.asarray(x, np.float64) for x in (surface.vertices_W, surface.vertex_pressure))
        active, count = np.asarray(surface.active), np.asarray(surface.num_vertices)
        for k in range(1, at.shape[-2] - 1):
            frame, face = np.nonzero(active & (k + 1 < count))
            fan = [0, k, k + 1]
            frames.append(frame)
            corners.append(at[frame, face][:, fan])
            pressures.append(pressure[frame, face][:, fan])
    frame = np.concatenate(frames)
    order = np.argsort(frame, kind="stable")
    return Patches(frame[order], np.concatenate(corners)[order], np.concatenate(pressures)[order])


def patch_record(patches: Patches, packed: PackedArrays) -> dict[str, Any]:
    """The record of all triangles, ordered by frame; `every` says which frames have theirs."""
    every = max(1, -(-len(patches.frames) // MOST_TRIANGLES))
    kept = patches.frames % every == 0
    frames, corners = patches.frames[kept], patches.corners[kept].reshape(-1, 9)
    pressures = np.maximum(patches.pressures[kept], 0.0)  # negative within a margin
    point_step = max(float(np.abs(corners).max(initial=0.0)), 1e-3) / POINT_STEPS
    largest = max(float(pressures.max(initial=0.0)), 1e-30)
    return {
        "every": every,
        "largest": largest,
        "frames": packed.add(frames, "u4", differences=1),
        "points": packed.add(steps_of(corners, point_step), "i4", differences=1),
        "point_step": point_step,
        "pressures": packed.add(steps_of(pressures, largest / PRESSURE_STEPS), "u2"),
    }
