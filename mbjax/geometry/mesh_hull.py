"""Reduces mesh files to a few vertices of their convex hulls; needs `pip install "mbjax[mesh]"`."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mbjax.number_rules import as_numbers, shown
from mbjax.optional_packages import imported

MAX_VERTICES = 32
FLATNESS = 1e-9  # thickness, relative to the mesh's size, below which a hull counts as flat


class MeshHull(NamedTuple):
    """Kept vertices (m, 3), the number left out, and how far in m these reach at most beyond the kept ones' hull."""

    vertices: np.ndarray
    num_left_out: int
    cut: float


def read_mesh_hull(path: str | os.PathLike[str], scale: float | Sequence[float], max_vertices: int) -> MeshHull:
    """Reads the scaled hull of all surfaces in a file; `ValueError` if it cannot be read or spans no volume.

    A hull with more than `max_vertices` keeps the vertices that reach farthest out. It starts with four that span a
    volume, then repeatedly adds the vertex farthest beyond the planes of the hull of those kept. The result lies within
    the whole hull.
    """
    if isinstance(max_vertices, bool) or not isinstance(max_vertices, int | np.integer) or max_vertices < 4:
        raise ValueError(f"max_vertices is {shown(max_vertices)}; give an integer >= 4, as a hull has at least four.")
    factors = as_numbers(scale)
    if factors is None or factors.shape not in ((), (3,)) or not np.all(np.isfinite(factors) & (factors != 0.0)):
        raise ValueError(f"scale is {shown(scale)}; give one or three finite factors other than zero.")
    return hull_of_points(read_points(path) * factors, path, max_vertices)


def hull_of_points(points: np.ndarray, path: str | os.PathLike[str], max_vertices: int) -> MeshHull:
    """The hull of points (m, 3) in m, that `path` is the source of; ValueError where they span no volume."""
    if len(points) < 4 or not np.all(np.isfinite(points)):
        raise ValueError(f"mesh '{path}' has {len(points)} points, or some that are not finite; a hull needs four.")
    hull = points[hull_of(points, path).vertices]
    kept = spanning_four(hull)
    while len(kept) < min(max_vertices, len(hull)):
        outside = distances_outside(hull, kept, path)
        if outside.max() <= FLATNESS * np.ptp(hull, axis=0).max():
            break
        kept.append(int(np.argmax(outside)))
    cut = float(max(distances_outside(hull, kept, path).max(), 0.0)) if len(kept) < len(hull) else 0.0
    return MeshHull(hull[sorted(kept)], len(hull) - len(kept), cut)


def describe_cut(hull: MeshHull) -> str:
    """Describes in words what a reduced hull left out."""
    return (
        f"{len(hull.vertices)} of the hull's {len(hull.vertices) + hull.num_left_out} vertices are kept, "
        f"the others reach up to {1e3 * hull.cut:.3g} mm beyond them"
    )


def read_points(path: str | os.PathLike[str]) -> np.ndarray:
    """Vertices (m, 3) of all surfaces in a file, in the poses that the file gives."""
    return np.asarray(getattr(read_surface(path), "vertices", ()), float).reshape(-1, 3)


def read_surface(path: str | os.PathLike[str]) -> Any:
    """All surfaces in a file as one `trimesh.Trimesh`, in the poses that the file gives."""
    trimesh = imported("trimesh", f"reading the mesh '{path}' needs trimesh", "mesh")
    logging.getLogger("trimesh").setLevel(logging.ERROR)
    try:
        return trimesh.load(os.fspath(path), force="mesh", skip_materials=True)
    except Exception as error:  # readers raise errors of any type; each means that the file cannot be read
        raise ValueError(f"mesh '{path}' cannot be read: {type(error).__name__}: {error}") from None


def hull_of(points: np.ndarray, path: str | os.PathLike[str]) -> Any:
    """The `scipy.spatial.ConvexHull` of points; `ValueError` if they lie in a plane."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return ConvexHull(points)
    except QhullError:
        raise ValueError(f"mesh '{path}' spans no volume: its points lie in a plane. Use a thin box.") from None


def spanning_four(points: np.ndarray) -> list[int]:
    """Indices of four points that span a volume: each is far from the point, line or plane of those before it."""
    first = int(np.argmin(points[:, 0]))
    arms = points - points[first]
    second = int(np.argmax(np.linalg.norm(arms, axis=1)))
    normals = np.cross(arms, arms[second])
    third = int(np.argmax(np.linalg.norm(normals, axis=1)))
    fourth = int(np.argmax(np.abs(arms @ normals[third])))
    return [first, second, third, fourth]


def distances_outside(points: np.ndarray, kept: Sequence[int], path: str | os.PathLike[str]) -> np.ndarray:
    """Distances in m by which points lie beyond the planes of the hull of the points kept."""
    planes = hull_of(points[list(kept)], path).equations
    outside = (points @ planes[:, :3].T + planes[:, 3]).max(axis=1)
    outside[list(kept)] = -np.inf
    return outside
