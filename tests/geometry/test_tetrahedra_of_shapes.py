"""Meshes of tetrahedra that fill shapes: Drake's where Drake has them, closed, full, and as fine as asked."""

import math
import pathlib

import numpy as np
import pydrake.geometry as dg
import pytest

from mbjax import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    HalfSpace,
    Mesh,
    ModelError,
    Sphere,
    TetrahedralMesh,
    tetrahedra_of,
)
from mbjax.geometry import Shape, as_tetrahedral_mesh

from .drake_deformables import drake_mesh
from .vtk_texts import POINTS, TETRAHEDRA, vtk_bytes

CLOSED = [
    Box((0.3, 0.2, 0.1)), Sphere(0.07), Ellipsoid(0.1, 0.05, 0.07), Cylinder(0.05, 0.2), Cylinder(0.1, 0.02),
    Capsule(0.04, 0.1), Capsule(0.1, 0.01),
]  # fmt: skip


def rows(array: np.ndarray) -> np.ndarray:
    """The rows in an order that depends on nothing else."""
    return array[np.lexsort(array.T)]


@pytest.mark.parametrize(("radius", "hint"), [(0.1, 0.3), (0.1, 0.14), (0.13, 0.1), (0.07, 0.02)])
def test_spheres_are_those_of_drakes_deformable_bodies(radius: float, hint: float) -> None:
    """The same nodes to the bit, and the same tetrahedra, also where several ways to split are equally good."""
    points, tetrahedra = drake_mesh(dg.Sphere(radius), hint)
    mesh = tetrahedra_of(Sphere(radius), hint)
    np.testing.assert_array_equal(rows(mesh.points), rows(points))
    number = {tuple(point): i for i, point in enumerate((points + 0.0).tolist())}
    here = np.array([number[tuple(point)] for point in (mesh.points + 0.0).tolist()])
    np.testing.assert_array_equal(rows(np.sort(here[mesh.tetrahedra], axis=1)), rows(np.sort(tetrahedra, axis=1)))


def volume_of(shape: Shape) -> float:
    match shape:
        case Box(size):
            return math.prod(size)
        case Sphere(radius):
            return 4.0 / 3.0 * math.pi * radius**3
        case Ellipsoid(a, b, c):
            return 4.0 / 3.0 * math.pi * a * b * c
        case Cylinder(radius, length):
            return math.pi * radius**2 * length
        case Capsule(radius, length):
            return math.pi * radius**2 * (length + 4.0 / 3.0 * radius)
    raise ValueError(shape)


@pytest.mark.parametrize("shape", CLOSED, ids=repr)
def test_meshes_fill_their_shapes(shape: Shape) -> None:
    """One closed surface, whose volume is that of the tetrahedra and comes nearer to the shape's by refinement."""
    missing = []
    for hint in (0.06, 0.03):
        mesh = tetrahedra_of(shape, hint)
        triangles = mesh.surface()
        edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
        there, back = rows(edges), rows(edges[:, ::-1])
        np.testing.assert_array_equal(there, back)
        assert len(np.unique(edges, axis=0)) == len(edges)
        volumes = mesh.volumes()
        np.testing.assert_allclose(np.linalg.det(mesh.points[triangles]).sum() / 6.0, volumes.sum(), rtol=1e-12)
        # Euler's number of a ball: nodes - edges + triangles - tetrahedra
        pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
        all_edges = np.unique(np.sort(mesh.tetrahedra[:, pairs].reshape(-1, 2), axis=1), axis=0)
        num_triangles = (4 * mesh.num_tetrahedra + len(triangles)) // 2
        assert mesh.num_nodes - len(all_edges) + num_triangles - mesh.num_tetrahedra == 1
        missing.append(1.0 - volumes.sum() / volume_of(shape))
    if isinstance(shape, Box):
        np.testing.assert_allclose(missing, 0.0, atol=1e-12)
    else:
        assert 0.0 < missing[1] < 0.4 * missing[0]


def test_cells_of_boxes_are_no_longer_than_the_hint() -> None:
    mesh = tetrahedra_of(Box((0.3, 0.7, 0.05)), 0.1)  # where 0.3 / 0.1 and 0.7 / 0.1 are no whole numbers
    assert mesh.num_nodes == 4 * 8 * 2
    assert mesh.num_tetrahedra == 6 * 3 * 7 * 1
    np.testing.assert_allclose(np.unique(np.round(mesh.points[:, 1], 9)), np.linspace(-0.35, 0.35, 8))
    np.testing.assert_allclose(mesh.volumes(), 0.1 * 0.1 * 0.05 / 6.0, rtol=1e-12)
    assert mesh.source == "Box(size=(0.3, 0.7, 0.05)) with resolution_hint=0.1"


def test_a_mesh_is_read_from_its_file_and_scaled(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pad.vtk"
    path.write_bytes(vtk_bytes("2.0", binary=False))
    mesh = tetrahedra_of(Mesh("package://pads/pad.vtk", str(path), (2.0, 1.0, -0.5)))
    np.testing.assert_array_equal(mesh.points, POINTS * np.array([2.0, 1.0, -0.5]))
    np.testing.assert_array_equal(mesh.tetrahedra, TETRAHEDRA[:, [2, 1, 0, 3]])


@pytest.mark.parametrize(
    ("shape", "hint", "words"),
    [
        (Sphere(0.1), None, "resolution_hint must be one number in m, got None. Give the length of an edge"),
        (Box((1, 1, 1)), "0.1", "resolution_hint must be one number in m, got '0.1'"),
        (Box((1, 1, 1)), -0.1, "resolution_hint must be a finite number > 0 in m, got -0.1"),
        (Box((1, 1, 1)), 1e-3, r"resolution_hint=0.001 has 6e\+09 tetrahedra or more, and 1000000 are allowed"),
        (Box((1, 1, 1)), 1e-320, "resolution_hint=9.99989e-321 has"),
        (Sphere(1.0), 0.01, "tetrahedra or more"),
        (Sphere(1.0), 1e-320, "tetrahedra or more"),
        (Capsule(1e300, 1e-300), 1e-320, "tetrahedra or more"),
        (Ellipsoid(1.0, 0.1, 0.1), 0.01, "tetrahedra or more"),
        (Cylinder(0.1, 100.0), 0.001, "tetrahedra or more"),
        (Capsule(0.1, 100.0), 0.001, "tetrahedra or more"),
        (HalfSpace(), 0.1, "the HalfSpace has no mesh of tetrahedra; give a Box"),
        (Convex(((0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1))), 0.1, "the Convex has no mesh .* fTetWild"),
        (Mesh("pad.vtk"), None, "the Mesh 'pad.vtk' has no file on disk"),
    ],
)  # fmt: skip
def test_what_has_no_mesh_is_refused(shape: Shape, hint: float | None, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        tetrahedra_of(shape, hint)


def test_a_mesh_may_be_given_in_four_ways(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "pad.vtk"
    path.write_bytes(vtk_bytes("2.0", binary=False))
    mesh = TetrahedralMesh(POINTS, TETRAHEDRA)
    assert as_tetrahedral_mesh(mesh, call="here") is mesh
    for given in (path, str(path), (POINTS, TETRAHEDRA), [POINTS.tolist(), TETRAHEDRA.tolist()]):
        np.testing.assert_array_equal(as_tetrahedral_mesh(given, call="here").points, POINTS)
    assert as_tetrahedral_mesh(Box((1, 1, 1)), 1.0, call="here").num_tetrahedra == 6
    for given, hint, words in (
        ((POINTS, TETRAHEDRA + 1), None, "here: the mesh has tetrahedron 1 of nodes 1, 3, 2, 5"),
        (mesh, 0.1, "here: resolution_hint is 0.1, but only a shape is cut into tetrahedra; leave it out"),
        (POINTS, None, "here: the mesh is of type ndarray; give a TetrahedralMesh, a pair"),
    ):
        with pytest.raises(ModelError, match=words):
            as_tetrahedral_mesh(given, hint, call="here")
