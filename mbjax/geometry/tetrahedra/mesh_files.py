"""Reads meshes of tetrahedra: legacy VTK files here, other formats through meshio."""

import contextlib
import io
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from mbjax.errors import ParseError
from mbjax.optional_packages import imported

from .file_mesh import FileMesh, OtherCells, mesh_of_file
from .mesh_faults import TOOLS
from .tetrahedral_mesh import TetrahedralMesh
from .vtk_reader import read_vtk_bytes

MOST_BYTES = 64 * 1024**2  # of a mesh file
CHUNK = 64 * 1024
MOST_WORDS_OF_MESHIO = 300  # characters of its message
SURFACE_FORMATS = {".obj", ".stl", ".off", ".dae", ".gltf", ".glb", ".3mf"}
DIMENSIONS = {  # of meshio's cells by the start of their names; others have three
    "vertex": 0, "line": 1, "triangle": 2, "quad": 2, "polygon": 2,
}  # fmt: skip
ENTITY = re.compile(rb"<!(DOCTYPE|ENTITY)", re.IGNORECASE)


def read_tetrahedra(path: str | os.PathLike[str], *, repair: bool = False) -> TetrahedralMesh:
    """The mesh of tetrahedra in a file, with the fields of its nodes and cells.

    Legacy `.vtk` files are read here, ASCII or binary. Others, such as Gmsh's `.msh`, `.vtu`, `.mesh` or Abaqus'
    `.inp`, are read by meshio: `pip install "mbjax[mesh]"`. Numbers are taken as metres; `mesh.scaled(0.001)` is the
    mesh of a file in millimetres.

    `ParseError` names the first node or tetrahedron that is wrong, and its line in a file of text. `repair=True` mends
    what can be mended, and warns of it: it leaves out vertices, lines and faces beside the tetrahedra and nodes that no
    tetrahedron has, merges nodes at the same place, and turns tetrahedra that are inside out.
    """
    file = os.fspath(path)
    data = bytes_of(file)
    if Path(file).suffix.lower() == ".vtk":
        return mesh_of_file(read_vtk_bytes(data, file), file, repair=repair)
    return mesh_of_file(read_by_meshio(data, file), file, repair=repair)


def bytes_of(file: str) -> bytes:
    """The contents of a file; ParseError where it cannot be read or is too long."""
    if Path(file).suffix.lower() in SURFACE_FORMATS:
        raise ParseError(
            f"a {Path(file).suffix} file holds a surface, where a solid of tetrahedra is needed; {TOOLS} makes "
            "tetrahedra within a closed surface.",
            file=file,
        )
    try:
        data = read_up_to(file, MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ParseError(f"the mesh cannot be read: {reason}.", file=file) from None
    if len(data) > MOST_BYTES:
        raise ParseError(
            f"the mesh file has more than {MOST_BYTES // 1024**2} MiB; write it in binary, or mesh the solid with "
            "longer edges.",
            file=file,
        )
    return data


def read_up_to(file: str, most: int) -> bytes:
    """The first bytes of a file, with memory for no more than it has."""
    parts, left = [], most
    with open(file, "rb") as stream:
        while left > 0 and (part := stream.read(min(left, CHUNK))):
            parts.append(part)
            left -= len(part)
    return b"".join(parts)


def read_by_meshio(data: bytes, file: str) -> FileMesh:
    """Nodes, cells and fields as meshio reads them; ParseError where it cannot."""
    if not data.strip():
        raise ParseError("the file is empty; expected a mesh of tetrahedra.", file=file)
    if ENTITY.search(data) is not None and b"<VTKFile" in data:
        raise ParseError("the file defines XML entities or a document type, which are not read.", file=file)
    meshio = imported("meshio", "reading the mesh needs meshio", "mesh", "Legacy .vtk files need no package.", file)
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            mesh = meshio.read(file)
    except (Exception, SystemExit) as error:  # of any type, and meshio ends the process on some files
        reason = said.getvalue() if isinstance(error, SystemExit) else f"{type(error).__name__}: {error}"
        words = " ".join(reason.split())[:MOST_WORDS_OF_MESHIO]
        raise ParseError(f"meshio cannot read the mesh: {words}", file=file) from None
    return file_mesh_of_meshio(mesh, file)


def file_mesh_of_meshio(mesh: Any, file: str) -> FileMesh:
    """The parts of a `meshio.Mesh` that make a solid, and the other cells."""
    points = np.asarray(mesh.points, float)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ParseError(
            f"the nodes have {points.shape[-1] if points.ndim == 2 else 'no'} coordinates, so this is no solid; three "
            "are needed.",
            file=file,
        )
    is_tetra = [block.type == "tetra" for block in mesh.cells]
    others, count = [], 0
    for block, is_one in zip(mesh.cells, is_tetra, strict=True):
        if not is_one and len(block.data):
            dimension = next((d for name, d in DIMENSIONS.items() if block.type.lower().startswith(name)), 3)
            others.append(OtherCells(f"cells of meshio's type '{block.type}'", dimension, len(block.data), count, None))
        count += len(block.data)
    blocks = [np.asarray(b.data).reshape(-1, 4) for b, is_one in zip(mesh.cells, is_tetra, strict=True) if is_one]
    fields = {
        name: np.concatenate([np.asarray(v) for v, is_one in zip(values, is_tetra, strict=True) if is_one])
        for name, values in mesh.cell_data.items()
        if any(is_one and len(v) for v, is_one in zip(values, is_tetra, strict=True))
    }
    tetrahedra = np.concatenate(blocks) if blocks else np.zeros((0, 4), int)
    return FileMesh(points, tetrahedra, mesh.point_data, fields, others, no_line, no_line)


def no_line(_: int) -> None:
    """meshio does not tell where a node or a cell stands in its file."""
