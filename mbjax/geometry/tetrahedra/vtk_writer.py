"""Writes a mesh of tetrahedra as a legacy VTK file of text, which reads back bit for bit."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from mbjax.errors import ModelError

from .tetrahedral_mesh import TetrahedralMesh, checked_fields

TYPE_NAMES = {
    "float64": "double", "float32": "float", "int64": "long", "int32": "int", "int16": "short", "int8": "char",
    "uint64": "unsigned_long", "uint32": "unsigned_int", "uint16": "unsigned_short", "uint8": "unsigned_char",
}  # fmt: skip
PLAIN = "!#$&'()*+,-./:;<=>?@[]^_`{|}~"  # characters of names that VTK writes as they are


def write_tetrahedra(
    path: str | os.PathLike[str],
    mesh: TetrahedralMesh,
    *,
    points: Any = None,
    node_fields: Mapping[str, Any] | None = None,
    cell_fields: Mapping[str, Any] | None = None,
) -> Path:
    """Writes a mesh as a legacy `.vtk` file of text, which ParaView, Drake and `read_tetrahedra` read.

    `points` (nodes, 3) in m stand in for those of the mesh: positions of a deformed body, say. Fields are arrays with a
    row for each node or tetrahedron, beside those of the mesh: {"velocity": v, "displacement": p - mesh.points}. All
    numbers are read back as they were, fields in the same type; booleans are written as 0 and 1.
    """
    if Path(path).suffix.lower() != ".vtk":
        raise ModelError(f"write_tetrahedra: '{os.fspath(path)}' does not end in .vtk; give such a path.")
    file = Path(path)
    file.write_text(vtk_text(mesh, points=points, node_fields=node_fields, cell_fields=cell_fields), encoding="utf-8")
    return file


def vtk_text(
    mesh: TetrahedralMesh,
    *,
    points: Any = None,
    node_fields: Mapping[str, Any] | None = None,
    cell_fields: Mapping[str, Any] | None = None,
) -> str:
    """The text that `write_tetrahedra` writes."""
    positions = mesh.points if points is None else np.asarray(points)
    if positions.shape != mesh.points.shape or positions.dtype.kind not in "fiu":
        raise ModelError(
            f"write_tetrahedra: points have the shape {positions.shape}; give ({mesh.num_nodes}, 3) as the mesh has."
        )
    label = "write_tetrahedra"
    of_nodes = checked_fields({**mesh.node_fields, **(node_fields or {})}, mesh.num_nodes, f"{label}: node_fields")
    of_cells = checked_fields(
        {**mesh.cell_fields, **(cell_fields or {})}, mesh.num_tetrahedra, "write_tetrahedra: cell_fields"
    )
    count = mesh.num_tetrahedra
    lines = [
        "# vtk DataFile Version 3.0", "tetrahedra, written by mbjax", "ASCII", "DATASET UNSTRUCTURED_GRID",
        f"POINTS {mesh.num_nodes} double", *rows_of(positions.astype(float)),
        f"CELLS {count} {5 * count}", *(f"4 {a} {b} {c} {d}" for a, b, c, d in mesh.tetrahedra.tolist()),
        f"CELL_TYPES {count}", *["10"] * count,
    ]  # fmt: skip
    for keyword, fields, rows in (("POINT_DATA", of_nodes, mesh.num_nodes), ("CELL_DATA", of_cells, count)):
        if fields:
            lines.append(f"{keyword} {rows}")
            lines += lines_of_fields(fields)
    return "\n".join(lines) + "\n"


def lines_of_fields(fields: Mapping[str, np.ndarray]) -> Iterator[str]:
    """Matrices (rows, 3, 3) as TENSORS, all others in one FIELD."""
    plain = {name: values for name, values in fields.items() if values.shape[1:] != (3, 3)}
    for name, values in fields.items():
        if name not in plain:
            yield f"TENSORS {quote(name, PLAIN)} {type_name_of(name, values)}"
            yield from rows_of(values.reshape(-1, 9))
    if plain:
        yield f"FIELD FieldData {len(plain)}"
    for name, values in plain.items():
        if values.ndim > 2:
            raise ModelError(
                f"write_tetrahedra: the field '{name}' has the shape {values.shape}; give a number, a row of numbers, "
                "or a matrix (3, 3) for each node or tetrahedron."
            )
        yield f"{quote(name, PLAIN)} {1 if values.ndim == 1 else values.shape[1]} {len(values)} " + (
            type_name_of(name, values)
        )
        yield from rows_of(values.reshape(len(values), -1))


def type_name_of(name: str, values: np.ndarray) -> str:
    """VTK's name of the type of a field."""
    kind = "uint8" if values.dtype == bool else values.dtype.name
    if kind not in TYPE_NAMES:
        raise ModelError(
            f"write_tetrahedra: the field '{name}' is of type {values.dtype}; give one of {', '.join(TYPE_NAMES)}."
        )
    return TYPE_NAMES[kind]


def rows_of(values: np.ndarray) -> Iterator[str]:
    """The shortest words that read back as the same numbers, a line a row."""
    if values.dtype == np.float32:
        return (" ".join(map(str, row)) for row in values)
    if values.dtype == bool:
        values = values.astype(np.uint8)
    return (" ".join(map(repr, row)) for row in values.tolist())
