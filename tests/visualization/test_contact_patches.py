"""Surfaces of hydroelastic contact in an animation: the record is the results' faces, and the page draws them."""

import jax
import numpy as np
import pytest

import mbjax
from mbjax.visualization import animate
from tests.gradients.checks import WHOLE_RUN
from tests.visualization.pages import read_record, report_of
from tests.visualization.pressed_ball import ball_on_ground

REPORTER = """const reporter = setInterval(() => {
  const hooks = window.mbjax;
  if (!hooks.ready && !hooks.error) return;
  clearInterval(reporter);
  const report = { error: hooks.error };
  if (!hooks.error) {
    hooks.pause();
    const mesh = hooks.view.patches.meshes[0];
    const drawn = () => mesh.visible && mesh.geometry.drawRange.count / 3;
    hooks.seek(0); report.apart = drawn();
    hooks.seek(hooks.view.end); report.touching = drawn();
    report.arrows = hooks.view.arrows[0].shown.length;
    report.legend = document.getElementById("legend").innerText;
    document.getElementById("forces").click(); hooks.seek(hooks.view.end); report.off = drawn();
  }
  document.body.dataset.report = JSON.stringify(report);
}, 200);"""


@pytest.fixture(scope="module")
def falling() -> tuple[mbjax.MultibodyModel, mbjax.State]:
    """A ball above the ground, then 1 cm in it."""
    model = ball_on_ground()
    q = np.tile(np.asarray(mbjax.default_state(model).q), (3, 1))
    q[:, 6] = 0.2, 0.09, 0.085
    return model, mbjax.State(q, np.zeros((3, 6)), np.array([0.0, 0.1, 0.2]))


def test_triangles_are_the_faces_of_the_surface(falling) -> None:
    """Trimmed: of given results; those that `animate` computes itself are drawn in test_animate.py."""
    model, states = falling
    outputs = jax.jit(jax.vmap(lambda s: mbjax.outputs(model, s)))(states)
    page = animate(model, states, outputs=None if WHOLE_RUN else outputs).html
    record = read_record(page)
    (patches,) = record["patches"]["worlds"]
    corners = patches["points"].reshape(-1, 3, 3) * patches["point_step"]
    pressures = patches["pressures"] * (patches["largest"] / 65535.0)
    results = outputs.contact_results
    area = 0.5 * np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    push = area * pressures.mean(1)
    surface = results.surfaces[0].surface
    for frame in range(3):
        own = patches["frames"] == frame
        np.testing.assert_allclose(area[own].sum(), surface.area[frame].sum(), rtol=1e-4)
        expected = np.sum(surface.area[frame] * surface.pressure[frame])
        np.testing.assert_allclose(push[own].sum(), expected, rtol=1e-4)
    assert not (patches["frames"] == 0).any()
    arrows = record["arrows"][0]["worlds"][0]
    assert list(arrows["frames"]) == [1, 2], "one arrow for a surface"
    vectors = arrows["vectors"].reshape(-1, 3) * arrows["vector_step"]
    np.testing.assert_allclose(vectors[1], -results.surfaces[0].spatial_force[2, 3:], rtol=1e-3, atol=1e-3)
    report, _ = report_of(page, REPORTER)
    assert report["error"] is None
    assert report["apart"] is False
    assert report["touching"] == (patches["frames"] == 2).sum()
    assert report["arrows"] == 1
    assert report["off"] is False
    assert "Contact pressure, yellow" in report["legend"]
