"""Surfaces of hydroelastic contact in the live view: the faces of the results, coloured by pressure."""

import io
import json
import pathlib
import struct

import jax
import numpy as np
import pytest

import mbjax
from mbjax.visualization.live.colored_triangles import binary_gltf
from mbjax.visualization.live.pressure_surfaces import SCALE_COLORS, colors_of, on_both_sides
from tests.visualization.pressed_ball import ball_on_ground

BALL = 1


@pytest.fixture(scope="module")
def model() -> mbjax.MultibodyModel:
    return ball_on_ground()


def at_height(model: mbjax.MultibodyModel, height: float) -> mbjax.State:
    state = mbjax.default_state(model)
    return mbjax.State(state.q.at[6].set(height), state.v, state.time)


def arrays_of(glb: bytes) -> list[np.ndarray]:
    """The arrays (m, 3) of a binary glTF file, in the order of its accessors."""
    magic, version, size = struct.unpack_from("<4sII", glb)
    assert (magic, version, size) == (b"glTF", 2, len(glb))
    length, kind = struct.unpack_from("<I4s", glb, 12)
    assert kind == b"JSON"
    content, start = json.loads(glb[20 : 20 + length]), 20 + length + 8
    found = []
    for accessor in content["accessors"]:
        view = content["bufferViews"][accessor["bufferView"]]
        array = np.frombuffer(glb, "<f4", 3 * accessor["count"], start + view["byteOffset"]).reshape(-1, 3)
        np.testing.assert_array_equal(array.min(axis=0), np.float32(accessor["min"]))
        found.append(array)
    return found


@pytest.mark.whole_run("the same surface in an animation, in test_contact_patches.py, and its triangles below")
def test_the_surface_is_that_of_the_results(model) -> None:
    """Area and force of the triangles that are drawn, their colours, and what is translucent meanwhile."""
    with mbjax.Viewer(model, state=at_height(model, 0.085), port=0) as viewer:
        pressure, (grip,) = viewer.drawing.pressure, [node for body, node in viewer.drawing.scene.grips if body == BALL]
        corners, colors = (x.reshape(-1, 3, 3) for x in arrays_of(pressure.node.glb_data))
        a, b = corners[: len(corners) // 2], corners[len(corners) // 2 :]  # above and below the same plane
        drawn, apart = 0.5 * (a + b), a - b
        twice = np.linalg.norm(np.cross(drawn[:, 1] - drawn[:, 0], drawn[:, 2] - drawn[:, 0]), axis=1)
        surface = jax.jit(lambda s: mbjax.outputs(model, s).contact_results)(viewer.state).surfaces[0].surface
        np.testing.assert_allclose(0.5 * twice.sum(), surface.area.sum(), rtol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(apart, axis=-1), 2 * 5e-4 * viewer.drawing.size, rtol=1e-2)
        np.testing.assert_allclose(pressure.largest, surface.vertex_pressure.max(), rtol=1e-6)
        deepest = colors.reshape(-1, 3)[np.argmin(np.linalg.norm(corners.reshape(-1, 3)[:, :2], axis=1))]
        np.testing.assert_allclose(deepest, colors_of(np.ones(())), atol=1e-6)
        assert viewer.panel.legend.content == f"Contact pressure, yellow {pressure.largest / 1e3:.3g} kPa"
        assert grip.opacity < 0.5

        largest = pressure.largest
        viewer.state = at_height(model, 0.095)
        assert pressure.largest == largest, "the scale of a motion does not shrink"
        viewer.show("forces", False)
        assert not pressure.is_drawn
        assert grip.opacity is None
        viewer.show("forces")
        viewer.state = at_height(model, 0.2)
        assert not pressure.is_drawn
        assert not viewer.panel.legend.visible
        viewer.reset()
        assert pressure.is_drawn


def test_colours_are_those_of_the_page() -> None:
    page = pathlib.Path(mbjax.visualization.__file__).parent / "viewer" / "patches.js"
    assert f"const SCALE_COLORS = {json.dumps(SCALE_COLORS)};" in page.read_text()
    np.testing.assert_allclose(colors_of(np.array([0.0, 1.0]))[:, 0], [0.0578, 0.9823], atol=1e-4)


def test_files_of_triangles_are_read_by_others() -> None:
    trimesh = pytest.importorskip("trimesh")
    rng = np.random.default_rng(0)
    corners, shares = rng.normal(size=(4, 3, 3)), rng.uniform(size=(4, 3))
    scene = trimesh.load(io.BytesIO(binary_gltf(corners, colors_of(shares))), file_type="glb", process=False)
    (mesh,) = scene.geometry.values()
    np.testing.assert_allclose(mesh.triangles, corners, rtol=1e-6)


def test_flat_triangles_stay_finite() -> None:
    assert np.isfinite(on_both_sides(np.zeros((1, 3, 3)), 1e-3)).all()
