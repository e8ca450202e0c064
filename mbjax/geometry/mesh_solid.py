"""Volume, centre and moments of inertia of what the closed surface in a mesh file holds."""

import os
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from .mesh_hull import read_surface


def read_solid(
    path: str | os.PathLike[str], scale: float | Sequence[float] = 1.0
) -> tuple[float, Float[np.ndarray, "3"], Float[np.ndarray, "3 3"]]:
    """Volume in m³, centre in m, and moments of inertia about it over density in m⁵, of the scaled solid in a file.

    `ValueError` if the file cannot be read or its surface is not closed. A surface that is inside out counts as its
    own right side.
    """
    surface = read_surface(path)
    faces = np.asarray(getattr(surface, "faces", ()), int).reshape(-1, 3)
    if not len(faces) or not surface.is_watertight:
        raise ValueError(f"the surface of mesh '{path}' is not closed, so it holds no volume")
    corners = (np.asarray(surface.vertices, float) * np.asarray(scale, float))[faces]
    return solid_within(corners, path)


def solid_within(
    corners: Float[np.ndarray, "faces 3 3"], path: str | os.PathLike[str]
) -> tuple[float, Float[np.ndarray, "3"], Float[np.ndarray, "3 3"]]:
    """The solid within triangles: sums over the tetrahedra that these span with a point amid them."""
    middle = corners.reshape(-1, 3).mean(axis=0)
    corners = corners - middle
    volumes = np.linalg.det(corners) / 6.0
    volume = float(volumes.sum())
    size = float(np.abs(corners).max())
    if not abs(volume) > 1e-12 * size**3:
        raise ValueError(f"mesh '{path}' holds no volume")
    sums = corners.sum(axis=1)
    center = volumes @ sums / (4.0 * volume)
    second = np.einsum("f,fki,fkj->ij", volumes, corners, corners) + np.einsum("f,fi,fj->ij", volumes, sums, sums)
    second = second / 20.0 * np.sign(volume) - abs(volume) * np.outer(center, center)
    return abs(volume), middle + center, np.trace(second) * np.eye(3) - second
