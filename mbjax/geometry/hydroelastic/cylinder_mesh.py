"""Meshes of cylinders whose tetrahedra end at the medial axis: a line, a point or a disk in the middle."""

import math

import numpy as np

from mbjax.geometry.shapes import Cylinder

from .box_mesh import EQUAL
from .mesh_pattern import MeshPattern, oriented
from .prisms import circle, split_prisms, split_pyramids, stacked

UP = np.array([0.0, 0.0, 1.0])


def cylinder_pattern(shape: Cylinder, resolution_hint: float, margin: float) -> MeshPattern:
    """The mesh of a cylinder: where it is long, where its half length equals its radius, or where it is short.

    The vertices are the centres of the bottom and the top, then their circles, then the medial axis.
    """
    count = max(3, math.ceil(2.0 * math.pi * (shape.radius + margin) / resolution_hint))
    half, tolerance = 0.5 * shape.length, EQUAL * max(1.0, min(0.5 * shape.length, shape.radius))
    bottom, top = 2 + np.arange(count), 2 + count + np.arange(count)
    medial = 2 + 2 * count
    ring = circle(count)
    if half - shape.radius > tolerance:
        tetrahedra, depth = long_cylinder(bottom, top, medial), np.array([1.0, 0.0])
        inner = np.stack([[UP, -UP], [-0.5 * UP, 0.5 * UP]], axis=-1)
    elif shape.radius - half > tolerance:
        tetrahedra, depth = short_cylinder(bottom, top, medial), np.array([0.0, 0.5])
        inner = np.concatenate([np.zeros((1, 3, 2)), np.stack([ring, -0.5 * ring], axis=-1)])
    else:
        tetrahedra, depth, inner = medium_cylinder(bottom, top, medial), np.array([0.5, 0.25]), np.zeros((1, 3, 2))
    disk, height = np.concatenate([np.zeros((1, 3)), ring]), np.broadcast_to(0.5 * UP, (count + 1, 3))
    lower, upper = np.stack([disk, -height], axis=-1), np.stack([disk, height], axis=-1)
    basis = np.concatenate([lower[:1], upper[:1], lower[1:], upper[1:], inner])
    interior = np.arange(len(basis)) >= medial
    lengths = np.array([shape.radius, shape.length])
    return MeshPattern(oriented(tetrahedra, basis @ lengths), basis, interior, depth, np.array([1.0, 2.0]))


def long_cylinder(bottom: np.ndarray, top: np.ndarray, medial: int) -> np.ndarray:
    """A cone on each end, and prisms around the medial line in between."""
    b, t = np.roll(bottom, 1), np.roll(top, 1)
    low, high = medial, medial + 1
    return np.concatenate([stacked((0, b, bottom, low), (1, top, t, high)), split_prisms(low, b, bottom, high, t, top)])


def medium_cylinder(bottom: np.ndarray, top: np.ndarray, medial: int) -> np.ndarray:
    """A cone on each end, and pyramids around the medial point in between."""
    b, t = np.roll(bottom, 1), np.roll(top, 1)
    return np.concatenate(
        [stacked((0, b, bottom, medial), (1, top, t, medial)), split_pyramids(t, top, bottom, b, medial)]
    )


def short_cylinder(bottom: np.ndarray, top: np.ndarray, medial: int) -> np.ndarray:
    """Prisms below the medial disk, above it, and around it."""
    ring = medial + 1 + np.arange(len(bottom))
    b, t, m = np.roll(bottom, 1), np.roll(top, 1), np.roll(ring, 1)
    below = split_prisms(0, b, bottom, medial, m, ring)
    above = split_prisms(medial, m, ring, 1, t, top)
    return np.concatenate([below, above, split_prisms(b, m, t, bottom, ring, top)])
