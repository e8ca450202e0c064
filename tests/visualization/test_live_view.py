"""The live view does what a hand does: sliders, playback, simulation, dragging; and a browser shows it."""

import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, Sphere
from mbjax.visualization.browser import Browser
from mbjax.visualization.live.coordinates import sliders_of
from mbjax.visualization.live.triangles import triangles_of
from tests.visualization.pages import find_browser
from tests.visualization.sledge import FRICTION, NORMAL_FORCE, sledge_model, sliding

BALL = 2
CORNERS = ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0), (0.0, 2.0, 0.0), (0.0, 0.0, 3.0))
VOLUMES = [
    (Sphere(0.3), 4 / 3 * np.pi * 0.3**3),
    (Ellipsoid(0.1, 0.2, 0.3), 4 / 3 * np.pi * 0.006),
    (Capsule(0.1, 0.5), np.pi * 0.01 * 0.5 + 4 / 3 * np.pi * 0.001),
    (Cylinder(0.1, 0.5), np.pi * 0.01 * 0.5),
    (Box((0.1, 0.2, 0.3)), 0.006),
    (Convex(CORNERS), 1.0),
]


@pytest.fixture(scope="module")
def model():
    return sledge_model()


@pytest.fixture(scope="module")
def viewer(model):
    with mbjax.Viewer(model, port=0) as viewer:
        yield viewer


@pytest.fixture(autouse=True)
def fresh(request):
    """Each test starts at rest in the default pose."""
    if "viewer" in request.fixturenames:
        viewer = request.getfixturevalue("viewer")
        viewer.pause()
        viewer.release()
        viewer.gradient(None)
        for what, visible in {"forces": True, "frames": False, "mass_center": False}.items():
            viewer.show(what, visible)
        with viewer._lock:  # the view's own thread takes no step between the two
            viewer.simulate(mbjax.Inputs())
            viewer.pause()
        viewer.state = mbjax.default_state(viewer.model)


def ball(viewer):
    return np.asarray(viewer.drawing.scene.handles[BALL].position)


@pytest.mark.parametrize(("shape", "volume"), VOLUMES, ids=lambda x: type(x).__name__)
def test_surfaces_are_closed_and_face_outwards(shape, volume) -> None:
    vertices, faces = triangles_of(shape)
    a, b, c = (vertices[faces[:, k]] for k in range(3))
    np.testing.assert_allclose(np.sum(np.cross(a, b) * c) / 6.0, volume, rtol=0.03)
    np.testing.assert_allclose(np.cross(b - a, c - a).sum(axis=0), 0.0, atol=1e-12)  # a closed surface


def test_sliders_have_names_and_limits() -> None:
    quadruped = mbjax.load("quadruped")
    sliders = {each.label: each for each in sliders_of(quadruped)}
    knee = sliders["front_left_knee_q [rad]"]
    column = list(quadruped.position_names()).index("quadruped_front_left_knee_q")
    assert (knee.column, knee.lower, knee.upper) == (
        column, quadruped.position_lower_limits[column], quadruped.position_upper_limits[column],
    )  # fmt: skip
    assert "trunk_x [m]" in sliders
    q = sliders["trunk yaw"].write(np.asarray(quadruped.parameters.default_positions), 0.7)
    np.testing.assert_allclose(q[:4], [np.cos(0.35), 0.0, 0.0, np.sin(0.35)], atol=1e-12)
    np.testing.assert_allclose([sliders["trunk yaw"].read(q), sliders["trunk roll"].read(q)], [0.7, 0.0], atol=1e-12)


def test_the_ends_of_sliders_are_short_and_within_the_limits() -> None:
    """They stand below the slider as they are."""
    pendulum = mbjax.load("pendulum")
    wide = mbjax.set_position_limits(pendulum, "pivot", -np.pi / 7.0, 0.0123456789)
    narrow = mbjax.set_position_limits(pendulum, "pivot", 0.0, 1.23456789e-4)
    for model in (pendulum, wide, narrow):
        (slider,) = sliders_of(model)
        lower, upper = float(model.position_lower_limits[0]), float(model.position_upper_limits[0])
        width = slider.upper - slider.lower
        assert all(len(f"{end:.9g}") <= 9 for end in (slider.lower, slider.upper)), slider
        if np.isfinite(lower):
            assert lower <= slider.lower <= lower + 2e-3 * width
            assert upper - 2e-3 * width <= slider.upper <= upper
    assert (sliders_of(mbjax.load("quadruped"))[0].lower, sliders_of(pendulum)[0].upper) == (-3.142, 3.142)


def test_the_ground_has_lines_and_takes_shadows(viewer) -> None:
    ground = viewer.server.scene.get_handle_by_name("/robot/0 world/0")
    np.testing.assert_allclose(ground.position, [0.0, 0.0, -0.2])
    assert ground.plane_opacity == 1.0
    assert ground.shadow_opacity > 0.0


def test_positions_are_shown(viewer) -> None:
    viewer.set_positions([0.3, -0.05])
    np.testing.assert_allclose(ball(viewer), [0.3, 0.0, -0.05])
    assert [round(handle.value, 6) for handle in viewer.panel.handles] == [0.3, -0.05]


def test_a_dragged_body_follows_in_a_pose(viewer) -> None:
    viewer.pull("ball", [0.4, 0.3, 0.2])
    np.testing.assert_allclose(ball(viewer), [0.4, 0.0, 0.2], atol=1e-3)  # y is out of reach
    assert "drag" in viewer.drawing.overlays.arrow_sets
    viewer.release()
    assert "drag" not in viewer.drawing.overlays.arrow_sets


def test_a_dragged_body_is_pulled_in_a_simulation(viewer) -> None:
    viewer.simulate()
    viewer.pull("ball", [0.5, 0.0, 0.2])
    for _ in range(20):
        viewer.advance(0.05)
    np.testing.assert_allclose(ball(viewer)[0], 0.5, atol=0.02)
    assert -0.1 < ball(viewer)[2] < 0.2  # the spring holds it up, and its weight stretches the spring
    viewer.release()
    for _ in range(20):
        viewer.advance(0.05)
    assert ball(viewer)[2] < -0.09  # on the ground
    viewer.reset()
    assert viewer.mode == "simulating"


def test_a_simulation_keeps_to_the_time_that_passes(viewer) -> None:
    """What is less than a step waits for the next call, and nothing of it is left after a new start."""
    with viewer._lock:  # the view's own thread waits
        viewer.simulate()
        times = []
        for _ in range(10):
            viewer.advance(0.001)
            times.append(viewer.time)
        np.testing.assert_allclose(times, [0.0] * 9 + [0.01])
        viewer.advance(0.025)
        np.testing.assert_allclose(viewer.time, 0.03)
        for fresh_start in (viewer.reset, lambda: viewer.set_positions([0.0, 0.0]), viewer.simulate):
            viewer.advance(0.009)
            fresh_start()
            before = viewer.time
            viewer.advance(0.006)
            assert viewer.time == before
        viewer.pause()


def test_refused_values_leave_the_view_as_it_is(viewer, model) -> None:
    viewer.set_positions([0.3, -0.05])
    for refused, message in (
        (lambda: viewer.set_positions([0.1]), r"Viewer.set_positions: q has shape \(1,\), the model needs \(2,\)"),
        (lambda: viewer.set_positions("up"), "Viewer.set_positions: q must be an array of 2 numbers"),
        (lambda: viewer.simulate(jnp.zeros(5)), r"actuation has shape \(5,\), the model needs \(1,\)"),
        (lambda: viewer.simulate({"motor": 1.0}), "inputs must be mbjax.Inputs"),
        (lambda: setattr(viewer, "state", mbjax.State(jnp.zeros(5), jnp.zeros(2))), r"state.q has shape \(5,\)"),
        (lambda: setattr(viewer, "state", 3.0), "the state must be a mbjax.State"),
        (lambda: viewer.pull("ball", [1.0, 2.0]), "Viewer.pull: target must be 3 number"),
        (lambda: viewer.play(sliding(model), inputs=jnp.zeros(5)), r"actuation has shape \(5,\)"),
    ):
        with pytest.raises(mbjax.ModelError, match=message):
            refused()
        np.testing.assert_allclose([*viewer.q, *ball(viewer)], [0.3, -0.05, 0.3, 0.0, -0.05], atol=1e-6)
        assert viewer.mode == "pose"
    viewer.redraw()


def test_inputs_that_fail_stop_the_simulation_and_not_the_view(viewer, model) -> None:
    """The view says why, and its thread goes on to play."""

    def waits_until(done):
        deadline = time.monotonic() + 30.0
        while not done() and time.monotonic() < deadline:
            time.sleep(0.01)
        return done()

    def simulates_until_it_stops():
        viewer.simulate(lambda state: {}["gains"])
        return waits_until(lambda: viewer.mode != "simulating")

    viewer.show("forces", False)
    with pytest.warns(mbjax.ModelWarning, match="Viewer: The simulation stopped: KeyError: 'gains'"):
        assert simulates_until_it_stops()
    assert viewer.mode == "pose"
    assert viewer.panel.note.content == "The simulation stopped: KeyError: 'gains'"
    viewer.play(sliding(model))
    assert waits_until(lambda: viewer.time > 0.1)


def test_several_trajectories_play_over_one_another(viewer, model) -> None:
    batch = jax.tree.map(lambda *x: jnp.stack(x), *(sliding(model, speed) for speed in (1.0, 0.5, 0.25)))
    viewer.play(batch)
    viewer.seek(0.3)
    np.testing.assert_allclose(ball(viewer)[0], 0.3)
    ghosts = np.concatenate([node.batched_positions for *_, node in viewer.drawing.scene.ghosts])
    np.testing.assert_allclose(sorted(ghosts[:, 0]), [0.075, 0.15], atol=1e-6)
    (arrow,) = viewer.drawing.overlays.arrow_sets["contact"].points
    direction = (arrow[1] - arrow[0]) / np.linalg.norm(arrow[1] - arrow[0])
    expected = np.array([-FRICTION * NORMAL_FORCE, 0.0, NORMAL_FORCE])
    np.testing.assert_allclose(direction, expected / np.linalg.norm(expected), atol=1e-2)
    viewer.resume()
    viewer.advance(0.1)
    assert 0.39 < viewer.time < 0.6
    assert viewer.mode == "playing"


def test_gradients_are_arrows_downhill(viewer) -> None:
    viewer.gradient(lambda state: state.q[1] ** 2 + 3.0)
    viewer.set_positions([0.0, 0.5])
    (arrow,) = viewer.drawing.overlays.arrow_sets["gradient"].points
    np.testing.assert_allclose(arrow[0], [0.0, 0.0, 0.5])
    assert arrow[1][2] < 0.46
    np.testing.assert_allclose(arrow[1][:2], 0.0, atol=1e-6)
    assert viewer.panel.note.content == "Cost: 3.25"


def test_frames_and_centre_of_mass(viewer, model) -> None:
    viewer.show("frames")
    viewer.show("mass_center")
    viewer.set_positions([0.2, 0.0])
    np.testing.assert_allclose(viewer.drawing.overlays.mass_center.position, [0.2, 0.0, 0.0], atol=1e-9)
    assert len(viewer.drawing.overlays.axes.batched_positions) == model.num_bodies
    viewer.show("frames", False)
    assert not viewer.drawing.overlays.axes.visible
    with pytest.raises(mbjax.ModelError, match="choose of forces, frames, mass_center"):
        viewer.show("shadows")


def test_what_cannot_be_done_is_said(viewer, model, monkeypatch) -> None:
    with pytest.raises(mbjax.ModelError, match="needs q, v and time"):
        viewer.play(3.0)
    with mbjax.Viewer(mbjax.set_gravity(model, [0.0, 0.0, 0.0]), port=0) as other:
        assert other.url != viewer.url
        with pytest.raises(mbjax.ModelError, match="no trajectory yet"):
            other.seek(1.0)
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(ImportError, match=r'pip install "mbjax\[view\]"'):
        mbjax.Viewer(model)


@pytest.mark.whole_run("bodies are dragged, above; a page in a browser, in test_contact_patches.py")
def test_a_browser_shows_it_and_drags(viewer) -> None:
    """The ball is in the middle of the window; a slider has the focus of the keyboard after a press."""
    find_browser()
    viewer.show("forces", False)
    with Browser(1000, 480) as browser:
        browser.open(viewer.url)
        browser.wait_for("document.querySelector('canvas') && document.body.innerText.includes('slide_x [m]')")
        deadline = time.monotonic() + 60.0
        while not viewer.server.get_clients() and time.monotonic() < deadline:
            time.sleep(0.05)
        browser.wait_for("[...document.querySelectorAll('canvas')].some(canvas => canvas.style.opacity == 1)")
        for attempt in range(10):  # until the scene is drawn there
            browser.mouse("mouseMoved", 500, 240)
            browser.mouse("mousePressed", 500, 240, 1)
            for k in range(1, 5):
                browser.mouse("mouseMoved", 500, 240 - 12 * k, 1)
                time.sleep(0.1 + 0.05 * attempt)
            height = ball(viewer)[2]
            browser.mouse("mouseReleased", 500, 192)
            if height > 0.01:
                break
        assert height > 0.01
        browser.run("document.querySelector('[role=slider]').focus()")
        before = viewer.q[0]
        browser.key("ArrowRight", 39)
        deadline = time.monotonic() + 20.0
        while viewer.q[0] == before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert viewer.q[0] > before
        ours = [each for each in browser.errors if "passive event listener" not in each]  # that one is viser's
        assert ours == []
