"""Reads tetrahedra from legacy VTK files, ASCII or binary, of format versions 1.0 to 5.1."""

import re
from typing import NamedTuple
from urllib.parse import unquote

import numpy as np

from mbjax.errors import ParseError

from .file_mesh import FileMesh, OtherCells
from .vtk_source import VtkSource, shown

VERSION = re.compile(r"# vtk DataFile Version (\d+)\.(\d+)\s*", re.IGNORECASE)
METADATA = re.compile(rb"\s*METADATA[ \t\r]*\n", re.IGNORECASE)
NEWEST = 5
OFFSETS_SINCE = 5  # files of this version have offsets and connectivity instead of counted cells
TETRAHEDRON = 10
OTHER_DATASETS = {
    "polydata": "a surface",
    "structured_points": "a grid of points",
    "structured_grid": "a grid of hexahedra",
    "rectilinear_grid": "a grid of boxes",
}
CELL_KINDS = {  # VTK's number of a kind of cell: what they are, and their dimension
    1: ("vertices", 0), 2: ("groups of vertices", 0), 3: ("lines", 1), 4: ("polylines", 1), 5: ("triangles", 2),
    6: ("strips of triangles", 2), 7: ("polygons", 2), 8: ("pixels", 2), 9: ("quadrilaterals", 2),
    11: ("voxels", 3), 12: ("hexahedra", 3), 13: ("wedges", 3), 14: ("pyramids", 3), 21: ("curved lines", 1),
    22: ("six-node triangles", 2), 23: ("eight-node quadrilaterals", 2), 24: ("ten-node tetrahedra", 3),
    25: ("twenty-node hexahedra", 3), 42: ("polyhedra", 3), 71: ("tetrahedra of higher order", 3),
}  # fmt: skip
COMPONENTS_OF_FIELDS = {"vectors": 3, "normals": 3, "tensors": 9, "tensors6": 6, "global_ids": 1, "pedigree_ids": 1,
              "edge_flags": 1}  # fmt: skip


class Cells(NamedTuple):
    """Node numbers of all cells in a row, where in them each cell starts and one more, and where the file has them.

    The number of a cell's nodes stands before them if `is_counted`; `place` is the first byte of all.
    """

    nodes: np.ndarray
    offsets: np.ndarray
    is_counted: bool
    place: int

    def number_before(self, cell: int) -> int:
        """How many numbers of the file stand before those of a cell."""
        return int(self.offsets[cell]) + (cell if self.is_counted else 0)


class Sections:
    """What the sections of a file hold, as far as they are read."""

    def __init__(self) -> None:
        self.points: np.ndarray | None = None
        self.points_place = 0
        self.cells: Cells | None = None
        self.kinds: np.ndarray | None = None
        self.fields: dict[str, dict[str, np.ndarray]] = {"point_data": {}, "cell_data": {}}


def read_vtk_bytes(data: bytes, file: str) -> FileMesh:
    """Nodes, tetrahedra, other cells and fields of a legacy VTK file; ParseError where it is none."""
    source = VtkSource(data, file)
    version = read_header(source)
    sections = Sections()
    attributes = None  # "point_data" or "cell_data" once one of them began
    while (keyword := source.next_word()) is not None:
        keyword = keyword.lower()
        if keyword in ("point_data", "cell_data"):
            attributes = keyword
            read_attribute_count(source, sections, keyword)
        elif keyword == "metadata":
            source.word("METADATA")
            skip_metadata(source)
        elif attributes is not None:
            read_attribute(source, sections, attributes)
        else:
            read_geometry(source, sections, keyword, version)
    return file_mesh(source, sections)


def read_header(source: VtkSource) -> int:
    """The major version; the source then stands after the name of the dataset."""
    if not source.data.strip():
        source.fail("the file is empty; expected a VTK file, which starts with '# vtk DataFile Version 3.0'")
    first = source.line()
    found = VERSION.fullmatch(first)
    if found is None:
        is_xml = b"<VTKFile" in source.data[:1000]
        way_out = "give it the extension .vtu" if is_xml else "expected '# vtk DataFile Version 3.0'"
        source.fail(f"the first line is not that of a legacy VTK file; {way_out}", 0)
    if int(found[1]) > NEWEST:
        source.fail(f"version {found[1]}.{found[2]} of the format is not known; write version 5.1 or older", 0)
    source.line()  # the title
    encoding = source.word("ASCII or BINARY")
    if encoding.upper() not in ("ASCII", "BINARY"):
        source.fail(f"the third line is {shown(encoding)}; expected ASCII or BINARY", source.position - 1)
    source.is_binary = encoding.upper() == "BINARY"
    word = source.word("DATASET")
    if word.lower() != "dataset":
        source.fail(f"found {shown(word)} where DATASET is expected", source.position - 1)
    dataset = source.word("the kind of dataset").lower()
    if dataset != "unstructured_grid":
        held = OTHER_DATASETS.get(dataset, "no mesh")
        source.fail(
            f"the dataset is {dataset.upper()}, {held}, where a solid of tetrahedra is needed: UNSTRUCTURED_GRID. "
            "fTetWild (pytetwild), TetGen or Gmsh makes tetrahedra within a closed surface",
            source.position - 1,
        )
    return int(found[1])


def read_geometry(source: VtkSource, sections: Sections, keyword: str, version: int) -> None:
    """A section of nodes or cells, or fields of the whole dataset, which are not kept."""
    source.word(keyword)
    if keyword == "points":
        once(source, sections.points, keyword)
        count = source.count("the number of POINTS")
        type_name = source.type("POINTS")
        sections.points = source.numbers(3 * count, type_name, "POINTS").astype(float).reshape(-1, 3)
        sections.points_place = source.begin
    elif keyword == "cells":
        once(source, sections.cells, keyword)
        sections.cells = cells_by_offsets(source) if version >= OFFSETS_SINCE else counted_cells(source)
    elif keyword == "cell_types":
        once(source, sections.kinds, keyword)
        count = source.count("the number of CELL_TYPES")
        sections.kinds = source.numbers(count, "int", "CELL_TYPES")
    elif keyword == "field":
        read_field(source, {}, None)
    else:
        source.fail(
            f"found {shown(keyword)} where a section such as POINTS, CELLS or CELL_TYPES is expected; the one before "
            "may hold more numbers than it says",
            source.position - 1,
        )


def once(source: VtkSource, found: object, keyword: str) -> None:
    if found is not None:
        source.fail(f"{keyword.upper()} stands twice; expected one of each section", source.position - 1)


def counted_cells(source: VtkSource) -> Cells:
    """Cells of versions before 5: each with its number of nodes first."""
    count, size = source.count("the number of CELLS"), source.count("the size of CELLS")
    values = source.numbers(size, "int", "CELLS").astype(np.int64)
    begin = source.begin
    if size == 5 * count and np.all(values[::5] == 4):
        return Cells(values.reshape(-1, 5)[:, 1:].ravel(), 4 * np.arange(count + 1), True, begin)
    offsets, nodes, at = [0], [], 0
    for cell in range(count):
        num_nodes = int(values[at]) if at < size else -1
        if num_nodes < 0 or at + 1 + num_nodes > size:
            source.fail(f"cell {cell} has {num_nodes} nodes beyond the {size} numbers of CELLS", begin)
        nodes.append(values[at + 1 : at + 1 + num_nodes])
        offsets.append(offsets[-1] + num_nodes)
        at += 1 + num_nodes
    if at != size:
        source.fail(f"{count} CELLS take {at} numbers, but the section says {size}", begin)
    return Cells(np.concatenate([np.zeros(0, np.int64), *nodes]), np.array(offsets), True, begin)


def cells_by_offsets(source: VtkSource) -> Cells:
    """Cells since version 5: where each starts, then the nodes of all."""
    num_offsets, num_nodes = source.count("the number of CELLS' offsets"), source.count("the size of CELLS")
    found = []
    for name, count in (("OFFSETS", num_offsets), ("CONNECTIVITY", num_nodes)):
        word = source.word(name)
        if word.upper() != name:
            source.fail(f"found {shown(word)} where {name} is expected", source.position - 1)
        type_name = source.type(name)
        found.append(source.numbers(count, type_name, name).astype(np.int64))
    offsets, nodes = found
    if not num_offsets:
        offsets = np.zeros(1, np.int64)
    if offsets[0] != 0 or offsets[-1] != num_nodes or np.any(np.diff(offsets) < 0):
        source.fail(f"OFFSETS of CELLS must grow from 0 to {num_nodes}, the number of all nodes", source.begin)
    return Cells(nodes, offsets, False, source.begin)


def skip_metadata(source: VtkSource) -> None:
    """Ranges and names of components that VTK writes, up to an empty line."""
    source.line()
    while source.position < len(source.data) and source.line().strip():
        pass


def read_attribute_count(source: VtkSource, sections: Sections, keyword: str) -> None:
    """The number of rows of the fields that follow, which must be that of nodes or cells."""
    source.word(keyword)
    count = source.count(f"the number of {keyword.upper()}")
    needed = number_of_rows(sections, keyword)
    if count != needed:
        what = "nodes" if keyword == "point_data" else "cells"
        source.fail(f"{keyword.upper()} has {count} rows, but there are {needed} {what}", source.position - 1)


def number_of_rows(sections: Sections, keyword: str) -> int:
    if keyword == "point_data":
        return 0 if sections.points is None else len(sections.points)
    return 0 if sections.cells is None else len(sections.cells.offsets) - 1


def read_attribute(source: VtkSource, sections: Sections, keyword: str) -> None:
    """One array, or a FIELD of several, of nodes or cells."""
    kind = source.word("a field").lower()
    fields, rows = sections.fields[keyword], number_of_rows(sections, keyword)
    if kind == "field":
        read_field(source, fields, rows)
        return
    if kind == "lookup_table":  # colours, which say nothing of the mesh
        source.word("the name of a table")
        source.numbers(4 * source.count("the size of a table"), "unsigned_char" if source.is_binary else "float", kind)
        return
    if kind not in {"scalars", "color_scalars", "texture_coordinates", *COMPONENTS_OF_FIELDS}:
        source.fail(f"found {shown(kind)} where a field such as SCALARS, VECTORS or FIELD is expected")
    name = unquote(source.word(f"the name of {kind.upper()}"))
    if kind == "color_scalars":
        components = source.count(f"the number of components of '{name}'")
        type_name = "unsigned_char" if source.is_binary else "float"
    elif kind == "texture_coordinates":
        components, type_name = source.count(f"the number of components of '{name}'"), source.type(f"'{name}'")
    else:
        type_name = source.type(f"'{name}'")
        components = scalar_components(source, name) if kind == "scalars" else COMPONENTS_OF_FIELDS[kind]
    add_field(source, fields, name, source.numbers(rows * components, type_name, f"'{name}'"), rows, components)
    if kind == "tensors":
        fields[name] = fields[name].reshape(-1, 3, 3)


def scalar_components(source: VtkSource, name: str) -> int:
    """The number of components of SCALARS, in the same line or else 1; reads the table of colours after it."""
    start = source.position
    rest = source.line().split()
    source.position = start
    components = source.count(f"the number of components of '{name}'") if rest else 1
    following = source.next_word()
    if following is not None and following.lower() == "lookup_table":
        source.word("LOOKUP_TABLE")
        source.word("the name of a table")
    return components


def read_field(source: VtkSource, fields: dict[str, np.ndarray], rows: int | None) -> None:
    """A FIELD: arrays by name, each with components and rows."""
    source.word("the name of a FIELD")
    for _ in range(source.count("the number of arrays of a FIELD")):
        while METADATA.match(source.data, source.position):
            source.word("METADATA")
            skip_metadata(source)
        name = unquote(source.word("the name of an array"))
        components, tuples = (source.count(f"the {what} of '{name}'") for what in ("components", "rows"))
        type_name = source.type(f"'{name}'")
        if rows is not None and tuples != rows:
            source.fail(f"'{name}' has {tuples} rows, but {rows} are needed, one for each node or cell")
        values = source.numbers(components * tuples, type_name, f"'{name}'")
        add_field(source, fields, name, values, tuples, components)


def add_field(
    source: VtkSource, fields: dict[str, np.ndarray], name: str, values: np.ndarray, rows: int, components: int
) -> None:
    if name in fields:
        source.fail(f"the field '{name}' stands twice; names of fields must differ")
    fields[name] = values if components == 1 else values.reshape(rows, components)


def file_mesh(source: VtkSource, sections: Sections) -> FileMesh:
    """The tetrahedra among the cells, and what else there is."""
    points, cells, kinds = sections.points, sections.cells, sections.kinds
    if points is None or cells is None or kinds is None:
        found = {"POINTS": points, "CELLS": cells, "CELL_TYPES": kinds}
        missing = next(name for name, value in found.items() if value is None)
        source.fail(f"the file has no section {missing}; it may be truncated", len(source.data))
    sizes = np.diff(cells.offsets)
    if len(sizes) != len(kinds):
        source.fail(f"there are {len(sizes)} CELLS, but {len(kinds)} CELL_TYPES", len(source.data))
    is_tetrahedron = kinds == TETRAHEDRON
    numbers = np.flatnonzero(is_tetrahedron)
    wrong = numbers[sizes[numbers] != 4]
    if len(wrong):
        place = cells.number_before(int(wrong[0]))
        raise ParseError(
            f"cell {wrong[0]} is a tetrahedron of {sizes[wrong[0]]} nodes; it has four",
            file=source.file,
            line=source.line_of_number(cells.place, place),
        )
    others = []
    for kind in np.unique(kinds[~is_tetrahedron]):
        of_kind = np.flatnonzero(kinds == kind)
        name, dimension = CELL_KINDS.get(int(kind), (f"cells of VTK's type {kind}", 3))
        line = source.line_of_number(cells.place, cells.number_before(int(of_kind[0])))
        others.append(OtherCells(name, dimension, len(of_kind), int(of_kind[0]), line))
    return FileMesh(
        points,
        cells.nodes[cells.offsets[numbers][:, None] + np.arange(4)] if len(numbers) else np.zeros((0, 4), int),
        sections.fields["point_data"],
        {name: values[numbers] for name, values in sections.fields["cell_data"].items()},
        others,
        lambda node: source.line_of_number(sections.points_place, 3 * node),
        lambda tetrahedron: source.line_of_number(cells.place, cells.number_before(int(numbers[tetrahedron]))),
    )
