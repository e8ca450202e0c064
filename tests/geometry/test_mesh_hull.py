"""Hulls of mesh files: the vertices, what a cap cuts off, scale, errors, and how they are drawn."""

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import trimesh
from scipy.spatial import ConvexHull

from mbjax.geometry import Convex, Geometry
from mbjax.geometry.mesh_hull import MAX_VERTICES, read_mesh_hull
from mbjax.visualization import write_animation
from tests.visualization.pages import read_record, surface


@pytest.fixture
def dented_box(tmp_path: Path) -> Path:
    """A box of 2 x 4 x 6 m with a dent in its top, and points on its faces."""
    box = trimesh.creation.box((2.0, 4.0, 6.0)).subdivide()
    box.vertices[np.argmax(box.vertices[:, 2] - 0.1 * np.abs(box.vertices[:, :2]).sum(1))] = [0.0, 0.0, 1.0]
    path = tmp_path / "box.stl"
    box.export(path)
    return path


@pytest.fixture
def ball(tmp_path: Path) -> Path:
    path = tmp_path / "ball.obj"
    trimesh.creation.icosphere(3, radius=0.1).export(path)
    return path


def test_vertices_of_the_hull_scaled(dented_box: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        shape = Convex.from_mesh(dented_box, scale=(1.0, -0.5, 0.1))
    corners = {(x, y, z) for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-0.3, 0.3)}
    assert {tuple(np.round(v, 6)) for v in shape.vertices} == corners
    assert len(shape.vertices) == 8


def test_a_cap_keeps_what_reaches_farthest_and_says_what_it_cuts(ball: Path) -> None:
    """Within the hull, of its vertices, nearer to it the more there are; the cut is what the planes show."""
    full = read_mesh_hull(ball, 1.0, 10_000)
    assert full.num_left_out == 0
    assert full.cut == 0.0
    assert len(full.vertices) == 642
    cuts = []
    for count in (4, 12, MAX_VERTICES):
        hull = read_mesh_hull(ball, 1.0, count)
        assert len(hull.vertices) == count
        assert hull.num_left_out == 642 - count
        planes = ConvexHull(hull.vertices).equations
        beyond = (full.vertices @ planes[:, :3].T + planes[:, 3]).max()
        np.testing.assert_allclose(hull.cut, beyond, rtol=1e-9)
        cuts.append(hull.cut)
    assert cuts[0] > cuts[1] > cuts[2]
    assert cuts[2] < 0.02
    with pytest.warns(UserWarning, match=r"32 of the hull's 642 vertices are kept, .* mm beyond") as caught:
        Convex.from_mesh(ball)
    assert caught[0].filename == __file__


def test_what_cannot_be_a_hull_is_refused(tmp_path: Path, ball: Path) -> None:
    flat = tmp_path / "flat.obj"
    flat.write_text("v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n")
    broken = tmp_path / "broken.stl"
    broken.write_bytes(b"solid no\x00")
    for path, more, message in (
        (flat, {}, "spans no volume"),
        (broken, {}, "broken.stl'"),
        (tmp_path / "none.stl", {}, "cannot be read"),
        (ball, {"scale": 0.0}, "scale is 0.0"),
        (ball, {"scale": (1.0, 2.0)}, r"scale is \(1.0, 2.0\); give one or three"),
        (ball, {"scale": "mm"}, "scale is 'mm'"),
        *((ball, {"max_vertices": x}, f"max_vertices is {x!r}; .* >= 4") for x in (3, 32.5, float("nan"), None, "a")),
    ):
        with pytest.raises(ValueError, match=message):
            Convex.from_mesh(path, **more)


def test_without_trimesh_the_error_says_what_to_install(ball: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ImportError, match=r'pip install "mbjax\[mesh\]"'):
        Convex.from_mesh(ball)


def test_hulls_are_drawn_as_closed_surfaces(tmp_path: Path) -> None:
    """The volume under the triangles, seen from outside, is that of the hull; repeated vertices do no harm."""
    vertices = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 2.0) for z in (0.0, 3.0)])
    shape = Convex(tuple(map(tuple, [*vertices.tolist(), vertices[0].tolist()])))
    poses = {"X_WB_rotation": np.eye(3)[None, None], "X_WB_translation": np.zeros((1, 1, 3)), "times": np.zeros(1)}
    page = write_animation(
        tmp_path / "hull.html", geometries=[[Geometry("hull", shape)]], body_names=["world"], title="hull", **poses
    )
    record = read_record(page.read_text(encoding="utf-8"))
    assert record["bodies"][0]["geometries"][0]["kind"] == "mesh"
    vertices, faces = surface(record["meshes"][0])
    np.testing.assert_allclose(np.linalg.det(vertices[faces]).sum() / 6.0, 6.0, rtol=1e-4)
