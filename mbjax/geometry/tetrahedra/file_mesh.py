"""What a mesh file holds, before it is judged; and the mesh of tetrahedra that it gives."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mbjax.errors import ModelError, ModelWarning, ParseError

from .mesh_faults import TOOLS, first_fault
from .tetrahedral_mesh import TetrahedralMesh, as_mesh_arrays, repaired_tetrahedra


class OtherCells(NamedTuple):
    """Cells of a kind that is no tetrahedron of four nodes: in words, how many, and the first one in the file."""

    kind: str
    dimension: int
    count: int
    first: int
    line: int | None


class FileMesh(NamedTuple):
    """Nodes in the units of the file, tetrahedra, fields by name, other cells, and the lines of nodes and tetrahedra.

    Fields of cells are those of tetrahedra alone.
    """

    points: Float[np.ndarray, "nodes 3"]
    tetrahedra: Int[np.ndarray, "tetrahedra 4"]
    node_fields: Mapping[str, np.ndarray]
    cell_fields: Mapping[str, np.ndarray]
    others: Sequence[OtherCells]
    line_of_node: Callable[[int], int | None]
    line_of_tetrahedron: Callable[[int], int | None]


def mesh_of_file(read: FileMesh, file: str, *, repair: bool) -> TetrahedralMesh:
    """The mesh in a file; ParseError with the line of what is wrong, where the file has lines.

    With `repair`, cells that bound the tetrahedra are left out, and what `repaired_tetrahedra` mends is mended.
    """
    refuse_other_cells(read, file, repair=repair)
    make = repaired_tetrahedra if repair else TetrahedralMesh
    try:
        return make(
            read.points, read.tetrahedra, source=file, node_fields=read.node_fields, cell_fields=read.cell_fields
        )
    except ModelError as error:
        raise as_parse_error(error, read, file, repair=repair) from None


def as_parse_error(error: ModelError, read: FileMesh, file: str, *, repair: bool) -> ParseError:
    """An error of a mesh with the file, and with the line unless repairs renumbered what is there."""
    try:
        fault = first_fault(*as_mesh_arrays(read.points, read.tetrahedra, "the mesh"))
    except ModelError:
        fault = None
    if fault is None or (repair and fault.words not in str(error)):
        return ParseError(str(error), file=file)
    line = None
    if fault.node is not None:
        line = read.line_of_node(fault.node)
    elif fault.tetrahedron is not None:
        line = read.line_of_tetrahedron(fault.tetrahedron)
    return ParseError(f"the mesh {fault.words}.", file=file, line=line)


def refuse_other_cells(read: FileMesh, file: str, *, repair: bool) -> None:
    """ParseError for cells that are no tetrahedra; those that bound them are left out where `repair` says so."""
    if not read.others:
        return
    first = min(read.others, key=lambda other: (other.dimension < 3, other.first))
    words = f"{words_for_count(read.others)}, the first of {first.kind} is cell {first.first}"
    if not len(read.tetrahedra) and first.dimension < 3:
        raise ParseError(
            f"the mesh has no tetrahedra, but {words}, where a solid of tetrahedra is needed; {TOOLS} makes tetrahedra "
            "within a closed surface.",
            file=file,
            line=first.line,
        )
    if first.dimension == 3:
        raise ParseError(
            f"the mesh has other cells than tetrahedra of four nodes: {words}; mesh the solid with {TOOLS}, elements "
            "of order 1.",
            file=file,
            line=first.line,
        )
    if not repair:
        raise ParseError(
            f"the mesh has other cells than tetrahedra: {words}; leave them out of the file, or let repair=True do it.",
            file=file,
            line=first.line,
        )
    message = f"'{file}': left out {words_for_count(read.others)}, which are no part of the solid."
    warnings.warn(message, ModelWarning, stacklevel=4)


def words_for_count(others: Sequence[OtherCells]) -> str:
    """How many there are of each kind: "triangles (12) and lines (3)"."""
    words = [f"{other.kind} ({other.count})" for other in others]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
