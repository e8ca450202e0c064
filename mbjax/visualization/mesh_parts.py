"""Meshes that bring colors of their own (Collada files), as a mesh for each color."""

from __future__ import annotations

import dataclasses
import functools
import importlib.util
import logging
from pathlib import Path
from typing import Any

import numpy as np

from mbjax.geometry import Geometry, Mesh

COLORED = (".dae",)


@dataclasses.dataclass(frozen=True)
class MeshPart(Mesh):
    """The triangles of a mesh file that have one of its colors."""

    part: int = 0

    @property
    def surface(self) -> Any:
        """The triangles as a `trimesh.Trimesh`."""
        return parts_of_file(str(self.path), modified(str(self.path)))[self.part][0]


def in_own_colors(geometry: Geometry) -> list[Geometry]:
    """The geometry, or one for each color of its mesh where the robot file gives it none."""
    mesh = geometry.shape
    if not isinstance(mesh, Mesh) or geometry.rgba is not None or mesh.path is None:
        return [geometry]
    if not mesh.path.lower().endswith(COLORED) or importlib.util.find_spec("trimesh") is None:
        return [geometry]
    try:
        parts = parts_of_file(mesh.path, modified(mesh.path))
    except Exception:  # readers raise errors of any type; who draws the mesh says which
        return [geometry]
    return [
        dataclasses.replace(geometry, shape=MeshPart(mesh.filename, mesh.path, mesh.scale, part), rgba=rgba)
        for part, (_, rgba) in enumerate(parts)
    ] or [geometry]


def modified(path: str) -> float:
    """When the file was written last."""
    return Path(path).stat().st_mtime


@functools.lru_cache(maxsize=64)
def parts_of_file(path: str, _: float) -> tuple[tuple[Any, tuple[float, ...]], ...]:
    """Surfaces of a file by their color, each with that color (red, green, blue, opacity) from 0 to 1."""
    import trimesh

    logging.getLogger("trimesh").setLevel(logging.ERROR)
    scene: Any = trimesh.load(path, force="scene")
    by_color: dict[tuple[float, ...], list[Any]] = {}
    for surface in scene.dump(concatenate=False):
        if len(getattr(surface, "faces", ())):
            by_color.setdefault(color_of(surface), []).append(surface)
    found = []
    for color, surfaces in by_color.items():
        vertices = np.concatenate([surface.vertices for surface in surfaces])
        starts = np.cumsum([0, *(len(surface.vertices) for surface in surfaces[:-1])])
        faces = np.concatenate([s.faces + start for s, start in zip(surfaces, starts, strict=True)])
        joined = trimesh.Trimesh(vertices, faces, process=False)
        joined.merge_vertices(merge_tex=True, merge_norm=True)
        found.append((joined, color))
    return tuple(found)


def color_of(surface: Any) -> tuple[float, ...]:
    """The main color of a surface of trimesh."""
    visual = surface.visual
    color = getattr(getattr(visual, "material", None), "main_color", None)
    color = getattr(visual, "main_color", None) if color is None else color
    return tuple((np.asarray([200, 200, 200, 255] if color is None else color, float) / 255.0).tolist())
