"""Files of tetrahedra: all forms of legacy VTK, others by meshio, bad ones with words, written ones bit for bit."""

import pathlib
import sys
import tracemalloc
import warnings

import numpy as np
import pydrake.geometry as dg
import pytest

from mbjax import (
    ModelError,
    ModelWarning,
    ParseError,
    TetrahedralMesh,
    read_tetrahedra,
    write_tetrahedra,
)
from mbjax.errors import MissingPackageError
from mbjax.geometry.tetrahedra import mesh_files

from .drake_deformables import drake_mesh
from .vtk_texts import POINTS, TETRAHEDRA, bomb, plain, vtk_bytes

FORMS = [(version, binary) for version in ("1.0", "2.0", "3.0", "4.2", "5.1") for binary in (False, True)]


def saved(folder: pathlib.Path, contents: bytes | str, name: str = "pad.vtk") -> pathlib.Path:
    path = folder / name
    path.write_bytes(contents.encode() if isinstance(contents, str) else contents)
    return path


@pytest.mark.parametrize(("version", "binary"), FORMS)
def test_every_form_of_a_file_is_read(version: str, binary: bool, tmp_path: pathlib.Path) -> None:
    mesh = read_tetrahedra(saved(tmp_path, vtk_bytes(version, binary=binary)))
    np.testing.assert_array_equal(mesh.points, POINTS)
    np.testing.assert_array_equal(mesh.tetrahedra, TETRAHEDRA)
    assert mesh.source == str(tmp_path / "pad.vtk")
    assert {name: values.dtype.name for name, values in mesh.node_fields.items()} == {
        "heat": "float32",
        "speed": "float64",
    }
    np.testing.assert_array_equal(mesh.node_fields["speed"], POINTS - 0.5)
    np.testing.assert_array_equal(mesh.cell_fields["colour"], [[1, 2], [3, 250]])
    np.testing.assert_array_equal(mesh.cell_fields["a b"], [-7, 8])
    np.testing.assert_array_equal(mesh.cell_fields["stress"], np.arange(18.0).reshape(2, 9))


@pytest.mark.parametrize(("version", "binary"), [("2.0", False), ("3.0", True), ("5.1", False), ("5.1", True)])
@pytest.mark.parametrize("number", ["double", "float"])
def test_drake_reads_the_same(version: str, binary: bool, number: str, tmp_path: pathlib.Path) -> None:
    """Also coordinates in single precision, which are not those that their digits say, and mirrored meshes."""
    path = saved(tmp_path, vtk_bytes(version, binary=binary, number=number))
    for scale in ((1.0, 1.0, 1.0), (0.1, 0.2, -0.3)):
        points, tetrahedra = drake_mesh(dg.Mesh(str(path), scale))
        mesh = read_tetrahedra(path).scaled(scale)
        np.testing.assert_array_equal(mesh.points, points)
        np.testing.assert_array_equal(mesh.tetrahedra, tetrahedra)


def test_ends_of_lines_and_words_may_differ(tmp_path: pathlib.Path) -> None:
    windows = vtk_bytes("3.0", binary=False, end="\r\n")
    in_one = plain().replace("\n", "\t").replace("\t", "\n", 3).replace("UNSTRUCTURED", "unstructured")
    for contents in (windows, in_one):
        mesh = read_tetrahedra(saved(tmp_path, contents))
        np.testing.assert_array_equal(mesh.points, POINTS)
        np.testing.assert_array_equal(mesh.tetrahedra, TETRAHEDRA)


@pytest.mark.parametrize("kind", ["vtk42", "vtk51"])
@pytest.mark.parametrize("binary", [False, True])
def test_files_that_meshio_writes_are_read(kind: str, binary: bool, tmp_path: pathlib.Path) -> None:
    meshio = pytest.importorskip("meshio")
    fields = {"speed": POINTS - 0.5, "heat": np.arange(5)}
    of_cells = {"strain": [np.array([0.1, -0.2])]}
    mesh = meshio.Mesh(POINTS, [("tetra", TETRAHEDRA)], fields, of_cells)
    meshio.write(tmp_path / "pad.vtk", mesh, file_format=kind, binary=binary)
    read = read_tetrahedra(tmp_path / "pad.vtk")
    np.testing.assert_array_equal(read.points, POINTS)
    np.testing.assert_array_equal(read.tetrahedra, TETRAHEDRA)
    np.testing.assert_array_equal(read.node_fields["speed"], fields["speed"])
    np.testing.assert_array_equal(read.node_fields["heat"], fields["heat"])
    np.testing.assert_array_equal(read.cell_fields["strain"], of_cells["strain"][0])


@pytest.mark.parametrize("name", ["pad.msh", "pad.vtu", "pad.mesh", "pad.inp"])
def test_other_formats_are_read_by_meshio(name: str, tmp_path: pathlib.Path) -> None:
    """Faces beside the tetrahedra, which Gmsh writes to name them, are refused or left out, as the user says."""
    meshio = pytest.importorskip("meshio")
    path, both = tmp_path / name, tmp_path / f"both_{name}"
    meshio.write(path, meshio.Mesh(POINTS, [("tetra", TETRAHEDRA)]))
    np.testing.assert_allclose(read_tetrahedra(path).points, POINTS, rtol=1e-12)
    np.testing.assert_array_equal(read_tetrahedra(path).tetrahedra, TETRAHEDRA)
    points = np.vstack([POINTS, [[5.0, 5.0, 5.0]]])
    meshio.write(both, meshio.Mesh(points, [("triangle", [[0, 1, 5]]), ("tetra", TETRAHEDRA)]))
    with pytest.raises(ParseError, match=r"triangle' \(1\), the first .* is cell 0; leave them out .* repair=True"):
        read_tetrahedra(both)
    with pytest.warns(ModelWarning) as warned:
        read = read_tetrahedra(both, repair=True)
    assert "triangle' (1)" in str(warned[0].message)
    assert "left out node 5" in str(warned[1].message)
    np.testing.assert_array_equal(read.tetrahedra, TETRAHEDRA)


def test_without_meshio_the_way_to_it_is_said(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "meshio", None)
    path = saved(tmp_path, "$MeshFormat\n", "pad.msh")
    with pytest.raises(MissingPackageError, match=r'needs meshio: pip install "mbjax\[mesh\]".*\.vtk files need no'):
        read_tetrahedra(path)


BAD: dict[str, tuple[str | bytes, int | None, str]] = {
    "empty": ("", 1, "the file is empty"),
    "no header": ("solid a\n", 1, "the first line is not that of a legacy VTK file; expected"),
    "XML": ('<VTKFile type="x">\n', 1, "legacy VTK file; give it the extension .vtu"),
    "newer": (plain().replace("3.0", "6.0"), 1, "version 6.0 of the format is not known"),
    "encoding": (plain().replace("ASCII", "BASE64"), 3, "'BASE64'; expected ASCII or BINARY"),
    "a surface": (plain().replace("UNSTRUCTURED_GRID", "POLYDATA"), 4, "POLYDATA, a surface, .* Gmsh makes tetrahedra"),
    "a grid": (plain().replace("UNSTRUCTURED_GRID", "STRUCTURED_POINTS"), 4, "STRUCTURED_POINTS, a grid of points"),
    "count": (plain().replace("POINTS 5", "POINTS five"), 5, "the number of POINTS is 'five'"),
    "negative count": (plain().replace("POINTS 5", "POINTS -5"), 5, "the number of POINTS is '-5'"),
    "type": (plain().replace("5 double", "5 quaternion"), 5, "POINTS are of type 'quaternion', which is not read"),
    "too few numbers": (plain().replace("POINTS 5", "POINTS 6"), 11, "18 numbers, .* is 'CELLS', not a number"),
    "too many numbers": (plain().replace("POINTS 5", "POINTS 4"), 10, "found '0.1' where a section .* more numbers"),
    "words": (plain().replace("1.0 0.0 0.0", "1.0 0.0 zero"), 7, "one of them is 'zero', not a number"),
    "NaN": (plain().replace("1.0 0.0 0.0", "1.0 nan 0.0"), 7, r"node 1 at \(1, nan, 0\)"),
    "too far": (plain().replace("1.0 0.0 0.0", "1.0 1e999 0.0"), 7, r"node 1 at \(1, inf, 0\)"),
    "half a node": (plain().replace("4 0 1 2 3", "4 0 1 2 3.5"), 12, "one of them is '3.5', not a whole number"),
    "no such node": (plain([[0, 1, 2, 3], [0, 2, 1, 7]]), 13, "tetrahedron 1 of nodes 0, 2, 1, 7, .* no node 7"),
    "negative node": (plain([[0, 1, 2, -3], [0, 2, 1, 4]]), 12, "no node -3"),
    "far too large": (plain().replace("1 4", "1 99999999999999999999"), 13, "int32, which cannot hold 9999999999999"),
    "flat": (plain([[0, 1, 2, 3], [0, 2, 1, 4]]).replace("0.0 0.0 3.0", "0.5 0.5 0.0"), 12, "tetrahedron 0 without"),
    "inside out": (plain([[0, 1, 2, 3], [0, 1, 2, 4]]), 13, "tetrahedron 1 inside out, .* 0, 1, 2, 4; .* swap two"),
    "unused": (plain([[0, 1, 2, 3]]), 10, "node 4 in no tetrahedron"),
    "same place": (plain().replace("0.1 0.2 -1.7", "0 0 3"), 10, "node 4 where there is another .* with node 3"),
    "triangles": (plain([[0, 1, 2], [1, 2, 3]], [5, 5]), 12, r"no tetrahedra, but triangles \(2\), .* closed surface"),
    "a wedge": (plain([[0, 1, 2, 3, 4, 0], [0, 2, 1, 4]], [13, 10]), 12, r"wedges \(1\), .* cell 0; mesh the solid"),
    "a pixel": (plain([[0, 1, 2, 3], [0, 2, 1, 4], [0, 1]], [10, 10, 3]), 14, r"lines \(1\), .* cell 2; leave them"),
    "unknown kind": (plain(kinds=[10, 99]), 13, r"cells of VTK's type 99 \(1\)"),
    "corners": (plain([[0, 1, 2, 3], [0, 2, 1]]), 13, "cell 1 is a tetrahedron of 3 nodes; it has four"),
    "size of cells": (plain().replace("CELLS 2 10", "CELLS 3 10"), None, "cell 2 has -1 nodes beyond the 10 numbers"),
    "more cells": (plain().replace("CELLS 2 10", "CELLS 1 10"), 12, "1 CELLS take 5 numbers, but the section says 10"),
    "kinds": (plain(kinds=[10]), None, "there are 2 CELLS, but 1 CELL_TYPES"),
    "truncated": (plain()[:-20], None, "CELL_TYPES|truncated"),
    "no cells": (plain().split("CELLS")[0], None, "the file has no section CELLS; it may be truncated"),
    "twice": (plain() + "POINTS 1 int\n0 0 0\n", 17, "POINTS stands twice"),
    "rows": (plain() + "POINT_DATA 4\n", 17, "POINT_DATA has 4 rows, but there are 5 nodes"),
    "rows of a field": (plain() + "CELL_DATA 2\nFIELD f 1\nx 1 3 int\n1 2 3\n", 19, "'x' has 3 rows, but 2 are needed"),
    "field": (plain() + "CELL_DATA 2\nPROPERTIES x int\n", 18, "found 'properties' where a field such as SCALARS"),
    "field twice": (plain() + 2 * "CELL_DATA 2\nSCALARS x int\n1 2\n", 22, "the field 'x' stands twice"),
    "text": (plain() + "CELL_DATA 2\nFIELD f 1\nx 1 2 string\na\nb\n", 19, "'x' are of type 'string', which is not"),
    "offsets": (
        vtk_bytes("5.1", binary=False, more=False).replace(b"0 4 8\n", b"0 5 8\n"), None, "cell 0 is a tetrahedron of",
    ),
    "falling offsets": (
        vtk_bytes("5.1", binary=False, more=False).replace(b"0 4 8\n", b"4 0 8\n"), None, "OFFSETS .* grow from 0 to 8",
    ),
    "binary, truncated": (vtk_bytes("3.0", binary=True)[:240], None, "byte .* bytes are left; the file may be"),
    "binary as text": (vtk_bytes("3.0", binary=True).replace(b"BINARY", b"ASCII"), None, "not a number"),
    "text as binary": (plain().replace("ASCII", "BINARY"), None, "byte "),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_refused_with_their_line(name: str, tmp_path: pathlib.Path) -> None:
    contents, line, words = BAD[name]
    path = saved(tmp_path, contents)
    with pytest.raises(ParseError, match=words) as caught:
        read_tetrahedra(path)
    assert str(caught.value).startswith(f"{path}:")
    if line is not None:
        assert caught.value.line == line


def test_paths_that_hold_no_solid_are_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParseError, match="cannot be read: No such file"):
        read_tetrahedra(tmp_path / "nowhere.vtk")
    with pytest.raises(ParseError, match="cannot be read: Is a directory"):
        read_tetrahedra(tmp_path)
    for name in ("a.obj", "a.stl"):
        with pytest.raises(ParseError, match=f"a .{name[2:]} file holds a surface, .* makes tetrahedra within"):
            read_tetrahedra(saved(tmp_path, "v 0 0 0\n", name))
    with pytest.raises(ParseError, match="the file is empty"):
        read_tetrahedra(saved(tmp_path, "", "a.msh"))
    monkeypatch.setattr(mesh_files, "MOST_BYTES", 1024**2)
    with pytest.raises(ParseError, match="more than 1 MiB"):
        read_tetrahedra(saved(tmp_path, b" " * (1024**2 + 1)))


def test_what_meshio_cannot_read_is_refused(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture) -> None:
    """meshio prints, and ends the process, where it does not understand a file."""
    pytest.importorskip("meshio")
    for name, contents in (("a.msh", "nonsense"), ("a.vtu", "<VTKFile"), ("a.mesh", "\0\1\2"), ("a.unknown", "x")):
        with pytest.raises(ParseError, match=r"meshio cannot read the mesh: \w"):
            read_tetrahedra(saved(tmp_path, contents, name))
    with pytest.raises(ParseError, match="document type"):
        read_tetrahedra(saved(tmp_path, '<!DOCTYPE a [<!ENTITY b "c">]><VTKFile/>', "a.vtu"))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("binary", [False, True])
def test_a_header_allocates_nothing(binary: bool, tmp_path: pathlib.Path) -> None:
    """Nodes, cells and fields that a file only says it has take no memory."""
    whole = vtk_bytes("3.0", binary=binary)
    files = [bomb(10**7), bomb(10**18 - 1)]
    files += [
        whole.replace(a, b)
        for a, b in ((b"CELLS 2 10", b"CELLS 200000000 1000000000"), (b"stress 9 2", b"stress 999999999 2"))
    ]
    for contents in files:
        path = saved(tmp_path, contents if binary else contents.replace(b"BINARY", b"ASCII"))
        tracemalloc.start()
        with pytest.raises(ParseError, match="left; the file may be truncated"):
            read_tetrahedra(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 300_000


def random_numbers(random: np.random.Generator, shape: tuple, dtype: type) -> np.ndarray:
    """Any bit patterns of a type but those of NaN, which have no digits."""
    values = np.frombuffer(random.bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype).reshape(shape)
    return np.where(np.isnan(values), dtype(-0.0), values) if np.dtype(dtype).kind == "f" else values


def test_what_is_written_is_read_bit_for_bit(tmp_path: pathlib.Path) -> None:
    random = np.random.default_rng(0)
    points = POINTS * (1.0 + 1e-15 * random.integers(1, 9, POINTS.shape)) + np.array([-0.0, 1e-320, 1e-30])
    types = (np.float64, np.float32, np.int64, np.uint64, np.int32, np.uint32, np.int16, np.uint16, np.int8, np.uint8)
    of_nodes = {f"of {t.__name__} % ü": random_numbers(random, (5, k + 1), t) for k, t in enumerate(types)}
    of_nodes |= {
        "METADATA": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
        "gradient": random.normal(size=(5, 3, 3)),
    }
    of_cells = {"strain": random_numbers(random, (2, 6), np.float64), "energy": np.array([1e-300, 0.1 + 0.2])}
    mesh = TetrahedralMesh(points, TETRAHEDRA, node_fields={"velocity": random.normal(size=(5, 3))})
    path = write_tetrahedra(tmp_path / "pad.vtk", mesh, node_fields=of_nodes, cell_fields=of_cells)
    read = read_tetrahedra(path)
    assert read.points.tobytes() == points.tobytes()
    np.testing.assert_array_equal(read.tetrahedra, TETRAHEDRA)
    for written, got in (({**mesh.node_fields, **of_nodes}, read.node_fields), (of_cells, read.cell_fields)):
        assert set(written) == set(got)
        for name, values in written.items():
            got_here = got[name].reshape(values.shape)
            assert (got_here.dtype, got_here.tobytes()) == (values.dtype, values.tobytes()), name
    again = write_tetrahedra(tmp_path / "again.vtk", read)
    assert again.read_text() == path.read_text()


def test_drake_and_meshio_read_what_is_written(tmp_path: pathlib.Path) -> None:
    mesh = TetrahedralMesh(POINTS, TETRAHEDRA)
    moved = POINTS + np.array([0.1, 0.2, 0.3])
    speed = np.arange(15.0).reshape(5, 3)
    path = write_tetrahedra(tmp_path / "pad.vtk", mesh, points=moved, node_fields={"speed": speed})
    points, tetrahedra = drake_mesh(dg.Mesh(str(path)))
    np.testing.assert_array_equal(points, moved)
    np.testing.assert_array_equal(tetrahedra, TETRAHEDRA)
    read = pytest.importorskip("meshio").read(path)
    np.testing.assert_array_equal(read.points, moved)
    np.testing.assert_array_equal(read.point_data["speed"], speed)


def test_what_cannot_be_written_is_named(tmp_path: pathlib.Path) -> None:
    mesh = TetrahedralMesh(POINTS, TETRAHEDRA)
    for arguments, words in (
        ({"points": POINTS[:4]}, r"points have the shape \(4, 3\); give \(5, 3\)"),
        ({"node_fields": {"a": np.zeros((4, 3))}}, r"'a' has the shape \(4, 3\) .* 5 rows"),
        ({"node_fields": {"a": np.zeros((5, 2, 2))}}, r"'a' has the shape \(5, 2, 2\); give a number, a row"),
        ({"cell_fields": {"a": np.zeros(2, np.float16)}}, "'a' is of type float16; give one of float64"),
    ):
        with pytest.raises(ModelError, match=words):
            write_tetrahedra(tmp_path / "pad.vtk", mesh, **arguments)
    with pytest.raises(ModelError, match=r"'pad.vtu' does not end in .vtk"):
        write_tetrahedra("pad.vtu", mesh)
    assert not list(tmp_path.iterdir())


WORDS = (
    b"", b" ", b"nan", b"-inf", b"1e999", b"0", b"-1", b"4", b"10", b"99999999999999999999", b"0x1", b"1_0", b"\0",
    b"POINTS 3 float", b"METADATA", b"CELLS 1 5", b"LOOKUP_TABLE x 2", b"FIELD f 1", b"BINARY", b"string", b"\xff",
)  # fmt: skip


def damaged(data: bytes, random: np.random.Generator) -> bytes:
    """One to three changes: a word replaced, a part cut, doubled or moved, a byte changed, the end cut off."""
    for _ in range(int(random.integers(1, 4))):
        kind = random.integers(6)
        i, j = np.sort(random.integers(0, len(data) + 1, 2)).tolist()
        j = min(j, i + int(random.integers(1, 100)))
        if kind in (0, 1):
            words = [k for k, byte in enumerate(data) if byte in b" \n"]
            k = words[int(random.integers(len(words)))] if words else 0
            end = min((m for m in words if m > k), default=len(data))
            data = data[: k + 1] + WORDS[int(random.integers(len(WORDS)))] + data[end:]
        elif kind == 2:
            data = data[:i] + data[j:]
        elif kind == 3:
            data = data[:j] + data[i:j] * int(random.integers(1, 4)) + data[j:]
        elif kind == 4 and data:
            k = int(random.integers(len(data)))
            data = data[:k] + bytes([int(random.integers(256))]) + data[k + 1 :]
        elif kind == 5 and random.random() < 0.3:
            data = data[:i]
    return data


@pytest.mark.parametrize(("version", "binary"), [("2.0", False), ("2.0", True), ("5.1", False), ("5.1", True)])
def test_damaged_files_are_read_or_refused(version: str, binary: bool, tmp_path: pathlib.Path) -> None:
    """Nothing but an error of ours, in words, and soon; what is read is a mesh."""
    whole = vtk_bytes(version, binary=binary)
    outcomes = [outcome(whole, [seed, binary, int(version[0])], tmp_path) for seed in range(150)]
    assert set(outcomes) == {"read", "refused"}


def outcome(whole: bytes, seed: list[int], folder: pathlib.Path) -> str:
    """Reads a damaged file: "read", "refused", or what should not be."""
    path = saved(folder, damaged(whole, np.random.default_rng(seed)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ModelWarning)
        try:
            mesh = read_tetrahedra(path, repair=bool(seed[0] % 2))
        except ParseError as error:
            words = str(error)
            return "refused" if words.startswith(f"{path}:") and len(words) < 2000 else f"{seed}: {words}"
    return "read" if mesh.volumes().min() > 0.0 else f"{seed}: no mesh"
