"""The page is self-contained, small, holds its frames, and plays in a headless browser."""

import dataclasses
import html
import re
import warnings

import numpy as np
import pytest
import trimesh

from mbjax.geometry.shapes import Box, Capsule, Cylinder, Ellipsoid, Geometry, HalfSpace, Mesh, Sphere
from mbjax.visualization.animation import write_animation
from mbjax.visualization.mesh_embedding import load_mesh
from mbjax.visualization.mesh_parts import in_own_colors
from tests.visualization.pages import read_record, report_of, surface, viewer_of

NUM_FRAMES = 500
NUM_BODIES = 11
# Written into the page by the test: reports what the hooks say, after two seconds of animation.
# On a busy machine the page's clock runs on before the first frame is drawn: the report is of when it plays.
REPORTER = """const reporter = setInterval(() => {
  const report = { ...window.mbjax, view: null, title: document.title };
  document.body.dataset.report = JSON.stringify(report);
  if (report.time > 0) clearInterval(reporter);
}, 500);"""


def swinging_chain(num_worlds=None):
    """Poses of a chain of ten bodies that turn about y: (T, nb, 3, 3), (T, nb, 3), times in s."""
    times = 0.01 * np.arange(NUM_FRAMES)
    rotation = np.tile(np.eye(3), (NUM_FRAMES, NUM_BODIES, 1, 1))
    translation = np.zeros((NUM_FRAMES, NUM_BODIES, 3))
    for body in range(1, NUM_BODIES):
        angle = 0.1 * body * np.sin(2.0 * times)
        rotation[:, body, 0, 0] = rotation[:, body, 2, 2] = np.cos(angle)
        rotation[:, body, 0, 2] = np.sin(angle)
        rotation[:, body, 2, 0] = -np.sin(angle)
        translation[:, body] = translation[:, body - 1] + 0.2 * rotation[:, body - 1, :, 2]
    if num_worlds is not None:
        rotation = np.tile(rotation, (num_worlds, 1, 1, 1, 1))
        translation = np.tile(translation, (num_worlds, 1, 1, 1))
    return {
        "X_WB_rotation": rotation,
        "X_WB_translation": translation,
        "times": times,
        "body_names": ["world", *(f"link_{body}" for body in range(1, NUM_BODIES))],
        "parents": list(range(-1, NUM_BODIES - 1)),
    }


def link_geometries():
    shapes = [
        Capsule(0.04, 0.2),
        Box((0.1, 0.1, 0.2)),
        Cylinder(0.05, 0.2),
        Sphere(0.08),
        Ellipsoid(0.05, 0.06, 0.1),
    ]
    ground = [Geometry("floor", HalfSpace())]
    links = [[Geometry(f"link {body}", shapes[body % 5], translation=(0.0, 0.0, 0.1))] for body in range(8)]
    return [ground, *links, [], []]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_animation(
        tmp_path_factory.mktemp("animation") / "arm.html",
        geometries=link_geometries(),
        title="Arm </script><b>{{data}}",
        **swinging_chain(),
    )


def test_page_asks_for_nothing_from_outside(page):
    text = page.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    text += viewer_of(text)
    markup = re.sub(r"<script>.*?</script>", "", text, flags=re.S)
    assert not re.search(r"""(src|href|action)\s*=\s*["']?(https?:|//|file:)""", markup)
    assert not re.search(r"@import|url\(\s*[\"']?(https?:|//)", markup)
    addresses = set(re.findall(r"https?://[^\s\"'`)<]+", text))
    assert addresses <= {"http://www.w3.org/1999/xhtml"}, "only an XML namespace may look like an address"


def test_page_is_small_and_carries_its_licence(page):
    assert page.stat().st_size < 1_000_000
    assert "Permission is hereby granted" in page.read_text(encoding="utf-8")


def test_record_holds_every_frame(page):
    record = read_record(page.read_text(encoding="utf-8"))
    expected = swinging_chain()
    (world,) = record["worlds"]
    assert world["num_frames"] == NUM_FRAMES
    assert [body["name"] for body in record["bodies"]] == expected["body_names"]
    np.testing.assert_array_equal(world["times"], expected["times"])
    translation = world["step"] * world["translations"].reshape(NUM_FRAMES, NUM_BODIES, 3)
    np.testing.assert_allclose(translation, expected["X_WB_translation"], atol=1e-6)
    quaternion = world["quaternions_xyzw"].reshape(NUM_FRAMES, NUM_BODIES, 4) / 32767.0
    half_angle = 0.05 * 10 * np.sin(2.0 * expected["times"])
    np.testing.assert_allclose(np.abs(quaternion[:, 10, 1]), np.abs(np.sin(half_angle)), atol=1e-4)
    assert np.abs(np.diff(quaternion, axis=0)).max() < 0.05, "the viewer interpolates: signs must not jump"


def test_title_cannot_change_the_page(page):
    text = page.read_text(encoding="utf-8")
    title = "Arm </script><b>{{data}}"
    assert read_record(text)["title"] == title
    assert title not in text
    assert html.escape(title) in text


def test_many_worlds_stay_under_five_megabytes(tmp_path):
    path = write_animation(
        tmp_path / "worlds.html",
        geometries=link_geometries(),
        title="Worlds",
        **swinging_chain(num_worlds=40),
    )
    record = read_record(path.read_text(encoding="utf-8"))
    assert path.stat().st_size < 5_000_000
    assert len(record["worlds"]) == 40
    for world in record["worlds"]:
        assert world["num_frames"] < world["num_frames_given"] == NUM_FRAMES
        assert world["times"][-1] == swinging_chain()["times"][-1]


def test_meshes_are_embedded_within_the_budget_and_missing_ones_are_named(tmp_path):
    file = tmp_path / "ball.stl"
    trimesh.creation.icosphere(subdivisions=6, radius=0.1).export(file)
    geometries = [[] for _ in range(NUM_BODIES)]
    geometries[1] = [Geometry("ball", Mesh("ball.stl", str(file), (1.0, 1.0, -1.0)))]
    geometries[2] = [Geometry("lost", Mesh("package://robot/lost.stl"))]
    with pytest.warns(UserWarning, match=r"lost\.stl' \(file not found\)"):
        path = write_animation(tmp_path / "mesh.html", geometries=geometries, title="Mesh", **swinging_chain())
    record = read_record(path.read_text(encoding="utf-8"))
    (mesh,) = record["meshes"]
    vertices, faces = surface(mesh)
    assert 10_000 < len(faces) <= 60_000
    assert faces.max() == len(vertices) - 1
    np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 0.1, atol=3e-3)
    volume = np.linalg.det(vertices[faces]).sum() / 6.0
    np.testing.assert_allclose(volume, 4.0 / 3.0 * np.pi * 0.1**3, rtol=0.02)  # every face, seen from outside
    assert record["bodies"][2]["geometries"] == []
    assert path.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"times": np.zeros(NUM_FRAMES)}, "increasing seconds"),
        ({"body_names": ["world"]}, "one entry a body"),
        ({"X_WB_translation": np.zeros((3, NUM_BODIES, 3))}, r"shape \(1, 3, 11, 3\)"),
        (
            {"X_WB_translation": np.full((NUM_FRAMES, NUM_BODIES, 3), np.nan)},
            "'world' is not finite at t = 0 s",
        ),
    ],
)
def test_bad_input_is_named(tmp_path, change, message):
    arguments = swinging_chain() | change
    with pytest.raises(ValueError, match=message):
        write_animation(tmp_path / "bad.html", geometries=link_geometries(), title="", **arguments)


@pytest.mark.whole_run("a page is drawn in a browser in test_contact_patches.py; its record holds every frame, above")
@pytest.mark.parametrize("num_worlds", [pytest.param(None, marks=pytest.mark.whole_run("its record, above")), 3])
def test_page_plays_in_a_browser(tmp_path, num_worlds):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        page = write_animation(
            tmp_path / "arm.html",
            geometries=link_geometries(),
            title="Arm",
            **swinging_chain(num_worlds),
        )
    report, document = report_of(page.read_text(encoding="utf-8"), REPORTER)
    assert report["ready"]
    assert report["playing"]
    assert report["error"] is None
    assert report["frames"] == NUM_FRAMES
    assert 0.0 < report["time"] <= 4.99
    assert 0 < report["frame"] < NUM_FRAMES
    assert abs(report["frame"] * 0.01 - report["time"]) < 0.011
    assert len(re.findall(r"<li[ >]", document)) == NUM_BODIES


def two_colors(path) -> None:
    """A Collada file with a red box and, two metres above it, a green one."""
    scene = trimesh.Scene()
    for color, height in (([255, 0, 0, 255], 0.0), ([0, 255, 0, 255], 2.0)):
        box = trimesh.creation.box((1.0, 1.0, 1.0))
        box.visual = trimesh.visual.TextureVisuals(material=trimesh.visual.material.PBRMaterial(baseColorFactor=color))
        box.apply_translation([0.0, 0.0, height])
        scene.add_geometry(box)
    path.write_bytes(trimesh.exchange.dae.export_collada(scene.dump(concatenate=False)))


def test_collada_files_are_drawn_in_their_own_colors_unless_the_robot_file_says_another(tmp_path):
    file = tmp_path / "boxes.dae"
    two_colors(file)
    geometry = Geometry("visual", Mesh("boxes.dae", str(file)))
    parts = in_own_colors(geometry)
    assert [tuple(np.round(part.rgba, 3)) for part in parts] == [(1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0)]
    surfaces = [load_mesh(part.shape) for part in parts]
    assert [len(surface.faces) for surface in surfaces] == [12, 12]
    np.testing.assert_allclose([surface.vertices[:, 2].mean() for surface in surfaces], [0.0, 2.0], atol=1e-6)
    painted = dataclasses.replace(geometry, rgba=(0.0, 0.0, 1.0, 1.0))
    assert in_own_colors(painted) == [painted]
    broken = tmp_path / "broken.dae"
    broken.write_text("<COLLADA/>")
    unread = Geometry("visual", Mesh("broken.dae", str(broken)))
    assert in_own_colors(unread) == [unread]
