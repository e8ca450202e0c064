"""File names of meshes in a written file, and files for hulls that have none."""

import os
import re
from pathlib import Path

import numpy as np

from mbjax.geometry import Convex, Mesh
from mbjax.geometry.mesh_hull import hull_of

from ..notes.write_notes import WriteNotes
from .numbers import numbers_text

URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
NO_FOLDER = "its vertices need a mesh file of their own: give mesh_folder="


class MeshFiles:
    """Names mesh files as the written file, at `path` or nowhere yet, must name them."""

    def __init__(self, path: str | os.PathLike | None, mesh_folder: str | os.PathLike | None, notes: WriteNotes):
        self.folder = None if path is None else Path(path).absolute().parent
        self.mesh_folder = None if mesh_folder is None else Path(mesh_folder)
        self.notes = notes
        self._written: dict[tuple, str] = {}

    def name_of(self, mesh: Mesh) -> str:
        """The name the model has, if it is a URI or the text has no place yet; else the path from the new file."""
        if self.folder is None or mesh.path is None or URI.match(mesh.filename):
            return mesh.filename
        return os.path.relpath(mesh.path, self.folder)

    def path_of(self, mesh: Mesh) -> str | None:
        """The path of a mesh's file, from the new file where that has a place; None where there is no file."""
        if mesh.path is None:
            return None
        return mesh.path if self.folder is None else os.path.relpath(mesh.path, self.folder)

    def write_hull(self, name: str, hull: Convex) -> str | None:
        """Writes a hull's surface as name.obj into the folder for meshes and names it; None without a folder."""
        if self.mesh_folder is None:
            return None
        known = self._written.get(hull.vertices)
        if known is not None:
            return known
        stem = re.sub(r"[^\w.-]+", "_", name)
        file = self.mesh_folder / f"{stem}.obj"
        count = 0
        while str(file) in self._written.values():
            count += 1
            file = self.mesh_folder / f"{stem}_{count}.obj"
        self.mesh_folder.mkdir(parents=True, exist_ok=True)
        file.write_text(surface_text(np.array(hull.vertices)))
        absolute = file.absolute()
        found = str(absolute) if self.folder is None else os.path.relpath(absolute, self.folder)
        self._written[hull.vertices] = found
        return found


def surface_text(vertices: np.ndarray) -> str:
    """The convex hull of points in Wavefront's format, its triangles counterclockwise from outside."""
    vertices = np.unique(vertices, axis=0)
    hull = hull_of(vertices, "hull")
    lines = [f"v {numbers_text(vertex)}" for vertex in vertices]
    for (a, b, c), plane in zip(hull.simplices, hull.equations, strict=True):
        normal = np.cross(vertices[b] - vertices[a], vertices[c] - vertices[a])
        corners = (a, b, c) if normal @ plane[:3] > 0.0 else (a, c, b)
        lines.append("f " + " ".join(str(corner + 1) for corner in corners))
    return "\n".join(lines) + "\n"
