"""File names of meshes in a written file, and files for hulls that have none."""

import os
import re
from pathlib import Path

import numpy as np

from mbjax.geometry import Convex, Mesh, TetrahedralMesh, write_tetrahedra
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
        self._files: set[Path] = set()

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
        if known is None:
            file = self._free_file(self.mesh_folder, name, ".obj")
            file.write_text(surface_text(np.array(hull.vertices)), encoding="utf-8")
            known = self._written[hull.vertices] = self._named(file)
        return known

    def write_tetrahedra(self, name: str, mesh: TetrahedralMesh) -> str | None:
        """Writes tetrahedra as name.vtk into the folder for meshes and names it; None without a folder."""
        if self.mesh_folder is None:
            return None
        file = write_tetrahedra(self._free_file(self.mesh_folder, name, ".vtk"), mesh)
        return self._named(file)

    def _free_file(self, folder: Path, name: str, ending: str) -> Path:
        """A file of the folder that nothing was written to."""
        stem, count = re.sub(r"[^\w.-]+", "_", name), 0
        file = folder / f"{stem}{ending}"
        while file in self._files:
            count += 1
            file = folder / f"{stem}_{count}{ending}"
        folder.mkdir(parents=True, exist_ok=True)
        self._files.add(file)
        return file

    def _named(self, file: Path) -> str:
        absolute = file.absolute()
        return str(absolute) if self.folder is None else os.path.relpath(absolute, self.folder)


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
