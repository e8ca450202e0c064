"""Legacy VTK files of a small mesh in every form that there is, written without mbjax."""

from collections.abc import Sequence

import numpy as np

POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3], [0.1, 0.2, -1.7]], float)
TETRAHEDRA = np.array([[0, 1, 2, 3], [0, 2, 1, 4]])
METADATA = "METADATA\nINFORMATION 1\nNAME L2_NORM_RANGE LOCATION vtkDataArray\nDATA 2 0 3 \n\n"
STORED = {"double": ">f8", "float": ">f4", "int": ">i4", "vtktypeint64": ">i8", "unsigned_char": "u1"}


def vtk_bytes(version: str, *, binary: bool, number: str = "double", end: str = "\n", more: bool = True) -> bytes:
    """A file of a version, its points as `number`, with fields and metadata if there is to be `more`."""
    parts: list[bytes] = []

    def text(words: str) -> None:
        parts.append(words.replace("\n", end).encode())

    def numbers(values: object, kind: str) -> None:
        array = np.asarray(values)
        if binary:
            parts.append(array.astype(STORED[kind]).tobytes() + b"\n")
        else:
            text("\n".join(" ".join(map(str, row)) for row in np.atleast_2d(array).tolist()) + "\n")

    text(f"# vtk DataFile Version {version}\ntwo ‑ tetrahedra\n{'BINARY' if binary else 'ASCII'}\n")
    text("DATASET UNSTRUCTURED_GRID\n")
    if more:
        text("FIELD FieldData 1\nTIME 1 1 double\n")
        numbers([0.25], "double")
    text(f"POINTS 5 {number}\n")
    numbers(POINTS, number)
    if more:
        text(METADATA)
    if version >= "5":
        text("CELLS 3 8\nOFFSETS vtktypeint64\n")
        numbers([0, 4, 8], "vtktypeint64")
        text("CONNECTIVITY vtktypeint64\n")
        numbers(TETRAHEDRA, "vtktypeint64")
    else:
        text("CELLS 2 10\n")
        numbers(np.column_stack([[4, 4], TETRAHEDRA]), "int")
    text("CELL_TYPES 2\n")
    numbers([[10], [10]], "int")
    if more:
        text("POINT_DATA 5\nSCALARS heat float\nLOOKUP_TABLE default\n")
        numbers(np.arange(5.0)[:, None], "float")
        text("VECTORS speed double\n")
        numbers(POINTS - 0.5, "double")
        text("CELL_DATA 2\nSCALARS colour unsigned_char 2\nLOOKUP_TABLE table\n")
        numbers([[1, 2], [3, 250]], "unsigned_char")
        text("FIELD FieldData 2\n")
        text("a%20b 1 2 int\n")
        numbers([[-7], [8]], "int")
        text(METADATA + "stress 9 2 double\n")
        numbers(np.arange(18.0).reshape(2, 9), "double")
    return b"".join(parts)


def bomb(count: int) -> bytes:
    """A header that says there are many nodes, and nothing after it."""
    return f"# vtk DataFile Version 3.0\n\nBINARY\nDATASET UNSTRUCTURED_GRID\nPOINTS {count} double\n".encode()


def plain(rows: Sequence[Sequence[object]] = TETRAHEDRA.tolist(), kinds: Sequence[int] | None = None) -> str:
    """A file of text with any cells."""
    kinds = [10] * len(rows) if kinds is None else kinds
    size = sum(len(row) + 1 for row in rows)
    lines = ["# vtk DataFile Version 3.0", "title", "ASCII", "DATASET UNSTRUCTURED_GRID", "POINTS 5 double"]
    lines += [" ".join(map(str, row)) for row in POINTS.tolist()] + [f"CELLS {len(rows)} {size}"]
    lines += [" ".join(map(str, [len(row), *row])) for row in rows]
    return "\n".join([*lines, f"CELL_TYPES {len(kinds)}", *map(str, kinds)]) + "\n"
