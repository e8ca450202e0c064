"""Meshes of tetrahedra as records: what is right is kept, what is wrong is named, what can be mended is mended."""

import pickle

import numpy as np
import pytest

from mbjax import ModelError, ModelWarning, TetrahedralMesh, check_tetrahedra, repaired_tetrahedra

# Two tetrahedra that share a face
POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3], [0.1, 0.2, -1]], float)
TETRAHEDRA = np.array([[0, 1, 2, 3], [0, 2, 1, 4]])


def test_a_mesh_keeps_what_it_is_given() -> None:
    points, fields = POINTS.copy(), {"heat": np.arange(5.0)}
    mesh = TetrahedralMesh(points, TETRAHEDRA.tolist(), node_fields=fields)
    points[:] = 7.0
    np.testing.assert_array_equal(mesh.points, POINTS)
    np.testing.assert_array_equal(mesh.tetrahedra, TETRAHEDRA)
    assert (mesh.num_nodes, mesh.num_tetrahedra) == (5, 2)
    np.testing.assert_allclose(mesh.volumes(), [1.0, 1.0 / 3.0], rtol=1e-15)
    with pytest.raises(ValueError, match="read-only"):
        mesh.points[0] = 1.0
    with pytest.raises(TypeError):
        mesh.node_fields["heat"] = 1.0  # type: ignore[index]
    copy = pickle.loads(pickle.dumps(mesh))
    np.testing.assert_array_equal(copy.node_fields["heat"], fields["heat"])


def test_the_surface_is_closed_and_seen_from_outside() -> None:
    mesh = TetrahedralMesh(POINTS, TETRAHEDRA)
    triangles = mesh.surface()
    edges = {(a, b) for t in triangles.tolist() for a, b in zip(t, t[1:] + t[:1], strict=True)}
    assert len(triangles) == 6
    assert edges == {(b, a) for a, b in edges}
    np.testing.assert_allclose(np.linalg.det(POINTS[triangles]).sum() / 6.0, mesh.volumes().sum(), rtol=1e-14)


@pytest.mark.parametrize("scale", [2.0, (1.0, 2.0, 3.0), (-1.0, 2.0, 3.0), (-1.0, -1.0, -2.0)])
def test_scaled_meshes_keep_positive_volumes(scale: float | tuple) -> None:
    mesh = TetrahedralMesh(POINTS, TETRAHEDRA)
    scaled = mesh.scaled(scale)
    np.testing.assert_array_equal(scaled.points, POINTS * np.array(scale))
    ratio = abs(np.prod(np.broadcast_to(scale, 3)))
    np.testing.assert_allclose(scaled.volumes(), ratio * mesh.volumes(), rtol=1e-14)
    with pytest.raises(ModelError, match=r"scale is \(1, 0, 1\); give one or three finite factors"):
        mesh.scaled((1, 0, 1))


def changed(array: np.ndarray, index: object, value: object) -> np.ndarray:
    array = array.copy()
    array[index] = value
    return array


BAD: dict[str, tuple[object, object, str]] = {
    "nothing": (POINTS, np.zeros((0, 4), int), "has no tetrahedra"),
    "no points": (np.zeros((0, 3)), TETRAHEDRA, r"tetrahedron 0 of nodes 0, 1, 2, 3, but there are 0 nodes"),
    "shape of points": (POINTS[:, :2], TETRAHEDRA, r"points have the shape \(5, 2\); give \(nodes, 3\)"),
    "words": ([["a", "b", "c"]], TETRAHEDRA, "points are not numbers"),
    "floats": (POINTS, TETRAHEDRA + 0.5, "tetrahedra are of type float64; give integers"),
    "ragged": (POINTS, [[0, 1, 2, 3], [0, 1]], "tetrahedra are no array"),
    "a surface": (POINTS, [[0, 1, 2]], "has triangles, thus a surface, .* fTetWild .* TetGen or Gmsh makes tetrahedra"),
    "hexahedra": (POINTS, [[0, 1, 2, 3, 4, 0, 1, 2]], "has hexahedra; only tetrahedra of four nodes"),
    "ten nodes": (POINTS, [list(range(10))], "has ten-node tetrahedra; give the first four nodes"),
    "NaN": (changed(POINTS, (3, 1), np.nan), TETRAHEDRA, r"node 3 at \(0, nan, 3\); give finite numbers"),
    "infinity": (changed(POINTS, (4, 2), np.inf), TETRAHEDRA, r"node 4 at \(0.1, 0.2, inf\)"),
    "too large": (POINTS, changed(TETRAHEDRA, (1, 3), 5), "tetrahedron 1 of nodes 0, 2, 1, 5, .* no node 5"),
    "negative": (POINTS, changed(TETRAHEDRA, (0, 0), -1), "tetrahedron 0 of nodes -1, 1, 2, 3, .* no node -1"),
    "from one": (POINTS, TETRAHEDRA + 1, "the numbers start at 1: subtract 1"),
    "beyond int32": (POINTS, changed(TETRAHEDRA, (0, 0), 2**32), "no node 4294967296"),
    "twice in one": (POINTS, changed(TETRAHEDRA, (1, 0), 1), "tetrahedron 1 with a node twice, the first of nodes 1"),
    "unused": (POINTS, TETRAHEDRA[:1], r"node 4 in no tetrahedron, the first at \(0.1, 0.2, -1\); remove"),
    "same place": (
        np.vstack([POINTS, POINTS[:1]]), [[5, 1, 2, 3], [0, 2, 1, 4]],
        r"node 5 where there is another node already, the first with node 0 at \(0, 0, 0\); merge",
    ),
    "same nodes": (POINTS, [*TETRAHEDRA, [2, 0, 1, 3]], "tetrahedron 2 of the same nodes as another one"),
    "flat": (changed(POINTS, 3, (0.3, 0.4, 1e-14)), TETRAHEDRA, "tetrahedron 0 without volume, the first with 3.33e"),
    "huge": (POINTS * 1e200, TETRAHEDRA, "tetrahedra 0 and 1 without volume, the first with nan"),
    "inside out": (
        POINTS, TETRAHEDRA[:, [1, 0, 2, 3]], r"only tetrahedra inside out, the first with -1 m³ .* swap two nodes",
    ),
    "one inside out": (POINTS, [[0, 1, 2, 3], [0, 1, 2, 4]], "tetrahedron 1 inside out, the first with -0.333 m³"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_mesh_is_named(name: str) -> None:
    points, tetrahedra, words = BAD[name]
    with pytest.raises(ModelError, match=words):
        check_tetrahedra(points, tetrahedra)
    with pytest.raises(ModelError, match=words):
        TetrahedralMesh(points, tetrahedra)  # type: ignore[arg-type]


def test_small_and_thin_tetrahedra_are_good() -> None:
    """Only rounding makes a tetrahedron flat: neither the unit of length nor a bad shape does."""
    for scale in (1e-9, 1e6):
        check_tetrahedra(POINTS * scale, TETRAHEDRA)
    check_tetrahedra(POINTS * np.array([1.0, 1.0, 1e-6]), TETRAHEDRA)


def test_many_faults_are_counted() -> None:
    points = np.vstack([POINTS, np.arange(60.0).reshape(-1, 3) + 10.0])
    with pytest.raises(ModelError, match="nodes 5, 6, 7, 8, 9, 10 and 14 more in no tetrahedron"):
        check_tetrahedra(points, TETRAHEDRA)


def test_a_field_has_a_row_for_each_node_or_tetrahedron() -> None:
    with pytest.raises(ModelError, match=r"node_fields: 'heat' has the shape \(4,\) .* with 5 rows"):
        TetrahedralMesh(POINTS, TETRAHEDRA, node_fields={"heat": np.zeros(4)})
    with pytest.raises(ModelError, match=r"cell_fields: 'word' .* with 2 rows"):
        TetrahedralMesh(POINTS, TETRAHEDRA, cell_fields={"word": np.array(["a", "b"])})


def test_what_can_be_mended_is_mended_and_told() -> None:
    """A node twice, one unused, a tetrahedron twice and one inside out; fields stay with their nodes and cells."""
    points = np.vstack([[[9, 9, 9]], POINTS, POINTS[:1]])
    tetrahedra = [[6, 3, 2, 4], [1, 3, 2, 5], [2, 1, 3, 4]]
    with pytest.warns(
        ModelWarning, match="merged node 6; left out node 0; left out tetrahedron 2; turned tetrahedron 0"
    ):
        mesh = repaired_tetrahedra(
            points, tetrahedra, node_fields={"row": np.arange(7)}, cell_fields={"row": np.arange(3)}
        )
    np.testing.assert_array_equal(mesh.points, POINTS)
    np.testing.assert_allclose(mesh.volumes(), [1.0, 1.0 / 3.0], rtol=1e-15)
    np.testing.assert_array_equal(mesh.node_fields["row"], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(mesh.cell_fields["row"], [0, 1])
    assert np.all(np.sort(mesh.tetrahedra) == np.sort(TETRAHEDRA))


def test_a_good_mesh_needs_no_repair(recwarn: pytest.WarningsRecorder) -> None:
    mesh = repaired_tetrahedra(POINTS, TETRAHEDRA)
    np.testing.assert_array_equal(mesh.tetrahedra, TETRAHEDRA)
    assert not recwarn.list
    with pytest.raises(ModelError, match="tetrahedron 0 without volume"):
        repaired_tetrahedra(changed(POINTS, 3, (0.3, 0.4, 0.0)), TETRAHEDRA)
