"""Meshes and pressure fields of hydroelastic geometries."""

import functools
import math
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Mesh, Shape, Sphere, shape_lengths
from mbjax.geometry.hydroelastic import HydroelasticTopology, field, hydroelastic_geometry
from mbjax.geometry.hydroelastic.convex_mesh import ConvexPattern
from mbjax.geometry.hydroelastic.mesh_pattern import MeshPattern

HULL = ((0.1, 0.1, 0.1), (-0.1, 0.1, 0.1), (0.0, -0.1, 0.1), (0.0, 0.02, -0.1), (0.05, -0.05, -0.02))
OCTAHEDRON = ((0.1, 0, 0), (-0.12, 0, 0.01), (0, 0.1, 0), (0, -0.1, 0), (0, 0, 0.1), (0, 0, -0.13))
SHAPES = {
    "sphere": Sphere(0.1),
    "ellipsoid": Ellipsoid(0.1, 0.15, 0.07),
    "cube": Box((0.2, 0.2, 0.2)),
    "long box": Box((0.1, 0.3, 0.1)),
    "box": Box((0.3, 0.2, 0.1)),
    "long cylinder": Cylinder(0.1, 0.3),
    "medium cylinder": Cylinder(0.1, 0.2),
    "short cylinder": Cylinder(0.1, 0.1),
    "capsule": Capsule(0.07, 0.1),
    "hull": Convex(HULL),
}


made = functools.partial(jax.jit, static_argnums=0)(field)  # which compiles once a topology


def vertices_of(topology: HydroelasticTopology, shape: Shape, margin: float = 0.0) -> np.ndarray:
    """Vertices, without JAX where they are linear in the lengths."""
    if isinstance(shape, Convex):
        return np.asarray(made(topology, jnp.array(shape.vertices), 1.0).vertices_G)
    assert isinstance(topology.mesh, MeshPattern)
    return topology.mesh.basis @ (np.array(shape_lengths(shape)) + margin * topology.mesh.growth)


def volumes(vertices: np.ndarray, tetrahedra: np.ndarray) -> np.ndarray:
    corners = vertices[tetrahedra]
    return np.linalg.det(corners[:, 1:] - corners[:, :1]) / 6.0


def volume_within(vertices: np.ndarray, triangles: np.ndarray) -> float:
    """The volume that a closed surface holds."""
    return float(np.linalg.det(vertices[triangles]).sum() / 6.0)


@pytest.mark.parametrize("margin", [0.0, 0.01])
@pytest.mark.parametrize("name", SHAPES)
def test_tetrahedra_fill_what_the_triangles_enclose(name: str, margin: float) -> None:
    shape = SHAPES[name]
    solid = hydroelastic_geometry(shape, resolution_hint=0.06, margin=margin)
    each = volumes(vertices_of(solid, shape, margin), solid.mesh.elements)
    assert each.min() > 0.0
    if margin:
        return
    surface = hydroelastic_geometry(shape, resolution_hint=0.06, compliance="rigid")
    triangles = surface.mesh.elements
    edges = np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [2, 0]]])
    assert {(a, b) for a, b in edges} == {(b, a) for a, b in edges}  # closed
    assert len(np.unique(edges, axis=0)) == len(edges)
    np.testing.assert_allclose(volume_within(vertices_of(surface, shape), triangles), each.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("size", "num_vertices", "num_tetrahedra"),
    [((0.2, 0.2, 0.2), 15, 24), ((0.1, 0.3, 0.1), 17, 40), ((0.3, 0.2, 0.1), 18, 44), ((0.1, 0.2, 0.2), 18, 44)],
)
def test_boxes_end_at_their_medial_axis(size: tuple, num_vertices: int, num_tetrahedra: int) -> None:
    """Vertices are as deep as their pressure says: the distance to the nearest face over half the shortest side."""
    box = Box(size)
    topology = hydroelastic_geometry(box)
    of_box = made(topology, jnp.array(size), 1.0)
    vertices = np.asarray(of_box.vertices_G)
    assert (len(vertices), topology.num_elements) == (num_vertices, num_tetrahedra)
    depth = (0.5 * np.array(size) - np.abs(vertices)).min(axis=1)
    np.testing.assert_allclose(np.asarray(of_box.pressure), depth / (0.5 * min(size)), atol=1e-14)
    each = volumes(vertices, topology.mesh.elements)
    np.testing.assert_allclose(each.sum(), np.prod(size), rtol=1e-12)


@pytest.mark.parametrize(("hint", "num_tetrahedra"), [(0.3, 8), (0.1, 32), (0.05, 128), (0.02, 512)])
def test_edges_of_spheres_are_short_enough(hint: float, num_tetrahedra: int) -> None:
    topology = hydroelastic_geometry(Sphere(0.1), resolution_hint=hint)
    assert topology.num_elements == num_tetrahedra
    angle = 0.5 * math.pi / math.sqrt(num_tetrahedra / 8)
    assert 0.2 * math.sin(0.5 * angle) <= hint


@pytest.mark.parametrize("name", ["ellipsoid", "box", "short cylinder", "capsule"])
def test_a_margin_moves_the_surface_and_not_the_pressure(name: str) -> None:
    """Along each edge from the medial axis, pressure falls to 0 where the shape without margin ends."""
    shape, margin = SHAPES[name], 0.01
    with_margin = hydroelastic_geometry(shape, resolution_hint=0.06, margin=margin)
    lengths = jnp.array(shape_lengths(shape))
    grown, bare = (made(with_margin, lengths, 2.0, margin=each) for each in (margin, 0.0))
    is_inside = np.asarray(bare.pressure) > 1.0
    assert np.all(np.asarray(grown.pressure)[is_inside] == 2.0)
    assert np.all(np.asarray(bare.pressure)[~is_inside] == pytest.approx(0.0, abs=1e-14))
    assert np.all(np.asarray(grown.pressure)[~is_inside] < 0.0)
    gap = np.abs(np.asarray(grown.vertices_G)) - np.abs(np.asarray(bare.vertices_G))
    assert np.linalg.norm(gap, axis=1).max() == pytest.approx(margin * math.sqrt({"box": 3}.get(name, 1)), rel=0.5)


def test_facets_of_hulls_move_by_their_margin() -> None:
    """Where more than three facets meet, the grown hull has an edge more."""
    shape = Convex(OCTAHEDRON)
    bare, grown = (hydroelastic_geometry(shape, margin=margin) for margin in (0.0, 0.01))
    assert grown.num_elements > bare.num_elements
    for topology, at in ((bare, 0.0), (grown, 0.01)):
        vertices = vertices_of(topology, shape)[:-1]
        assert isinstance(grown.mesh, ConvexPattern)
        facets = np.asarray(OCTAHEDRON)[grown.mesh.facets]
        normals = np.cross(facets[:, 1] - facets[:, 0], facets[:, 2] - facets[:, 0])
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        heights = ((vertices[:, None] - facets[:, 0]) * normals).sum(axis=2)
        np.testing.assert_allclose(heights.max(axis=0), at, atol=1e-12)


def test_topologies_are_equal_where_what_made_them_is() -> None:
    first, same = (hydroelastic_geometry(Sphere(0.1), resolution_hint=0.05) for _ in range(2))
    other = hydroelastic_geometry(Sphere(0.1), resolution_hint=0.06)
    assert first == same
    assert hash(first) == hash(same)
    assert first != other


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"shape": Sphere(0.1)}, "resolution_hint is None; give the length of an edge in m"),
        ({"shape": Sphere(0.1), "resolution_hint": -1.0}, "resolution_hint is -1.0"),
        ({"shape": Box((1, 1, 1)), "margin": -0.1}, "margin is -0.1; give a number of m >= 0"),
        ({"shape": HalfSpace()}, "slab_thickness is None; give the depth of full pressure in m"),
        ({"shape": Box((1, 1, 1)), "compliance": "soft"}, "compliance is 'soft'; give 'compliant' or 'rigid'"),
        ({"shape": Mesh("a.obj"), "compliance": "rigid"}, "has no file on disk"),
    ],
)
def test_what_makes_no_mesh_is_refused(arguments: dict, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        hydroelastic_geometry(**arguments)


def test_a_compliant_geometry_needs_a_modulus() -> None:
    with pytest.raises(ValueError, match="has no hydroelastic_modulus"):
        field(hydroelastic_geometry(Box((1, 1, 1))))


def test_mesh_files_are_surfaces_or_hulls(tmp_path: pathlib.Path) -> None:
    """A rigid mesh is as its file has it, here a box with a corner pushed in; a compliant one is its hull."""
    corners = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
    corners[7] = (0.2, 0.3, 0.1)
    quads = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    lines += [
        "f " + " ".join(str(i + 1) for i in triangle) for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))
    ]
    path = tmp_path / "dented.obj"
    path.write_text("\n".join(lines))
    mesh = Mesh(str(path), str(path), (0.1, 0.2, -0.3))
    rigid, compliant = (hydroelastic_geometry(mesh, compliance=kind) for kind in ("rigid", "compliant"))
    surface = field(rigid)
    volume = volume_within(np.asarray(surface.vertices_G), rigid.mesh.elements)
    assert rigid.num_elements == 12
    assert 0.0 < volume < 0.1 * 0.2 * 0.3 * 8.0
    hull = made(compliant, jnp.array(compliant.shape.vertices), 1.0)
    assert volumes(np.asarray(hull.vertices_G), compliant.mesh.elements).sum() > volume
