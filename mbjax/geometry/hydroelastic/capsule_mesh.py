"""Meshes of capsules: circles of latitude on the caps, joined to the two ends of the medial line."""

import math

import numpy as np

from mbjax.geometry.shapes import Capsule

from .mesh_pattern import MeshPattern, oriented
from .prisms import circle, split_prisms, split_pyramids, stacked

FEWEST_ON_CIRCLE, MOST_ON_CIRCLE = 3, 706  # vertices on a circle; the most make about a million tetrahedra
UPPER, LOWER, TOP, BOTTOM = range(4)  # the ends of the medial line, and the poles


def capsule_pattern(shape: Capsule, resolution_hint: float, margin: float) -> MeshPattern:
    """The mesh of a capsule; its first two vertices are the ends of the medial line."""
    count = int(min(max(2.0 * math.pi * (shape.radius + margin) / resolution_hint, FEWEST_ON_CIRCLE), MOST_ON_CIRCLE))
    latitudes = count // 2
    up = np.array([0.0, 0.0, 1.0])
    polar = 0.5 * np.pi * (1.0 - np.arange(latitudes) / latitudes)[:, None, None]
    on_cap = (np.sin(polar) * circle(count) + np.cos(polar) * up).reshape(-1, 3)
    mirror = np.array([1.0, 1.0, -1.0])
    of_radius = np.concatenate([np.zeros((2, 3)), [up, -up], on_cap, on_cap * mirror])
    side = np.concatenate([[1, -1, 1, -1], np.ones(len(on_cap)), -np.ones(len(on_cap))])
    basis = np.stack([of_radius, 0.5 * side[:, None] * up], axis=-1)
    tetrahedra = oriented(capsule_tetrahedra(count, latitudes), basis @ np.array([shape.radius, shape.length]))
    interior = np.arange(len(basis)) < 2
    return MeshPattern(tetrahedra, basis, interior, np.array([1.0, 0.0]), np.array([1.0, 0.0]))


def capsule_tetrahedra(count: int, latitudes: int) -> np.ndarray:
    """Pyramids on the caps, wedges at the poles, and prisms around the medial line; of any orientation."""
    upper = 4 + np.arange(latitudes * count).reshape(latitudes, count)
    lower = upper + latitudes * count
    next_upper, next_lower = np.roll(upper, -1, axis=1), np.roll(lower, -1, axis=1)
    return np.concatenate(
        [
            split_pyramids(upper[1:], next_upper[1:], next_upper[:-1], upper[:-1], UPPER),
            split_pyramids(lower[:-1], next_lower[:-1], next_lower[1:], lower[1:], LOWER),
            stacked((TOP, next_upper[-1], upper[-1], UPPER), (BOTTOM, lower[-1], next_lower[-1], LOWER)),
            split_prisms(LOWER, lower[0], next_lower[0], UPPER, upper[0], next_upper[0]),
        ]
    )
