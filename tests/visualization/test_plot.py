"""`plot` draws what names mean, in panels of one unit, and says what is near where nothing is meant."""

import io
import sys

import jax.numpy as jnp
import matplotlib.image
import numpy as np
import pytest

import mbjax
from mbjax.visualization import plot
from mbjax.visualization.series import all_series, chosen_series
from tests.visualization.sledge import FRICTION, MASS, NORMAL_FORCE, PRESSURE, sledge_model, sliding


@pytest.fixture(scope="module")
def model():
    return sledge_model()


@pytest.fixture(scope="module")
def quadruped():
    return mbjax.load(mbjax.reference_models.path("quadruped"), time_step=0.01)


def curves(figure):
    """By panel, (unit, {label: values}) of the curves with labels."""
    return [
        (panel.get_ylabel(), {line.get_label(): line.get_ydata() for line in panel.get_lines()})
        for panel in figure.axes
    ]


def names_of(model, *patterns):
    return [series.name for series in chosen_series("plot", model, patterns)]


def test_units_follow_joints(quadruped) -> None:
    units = {(series.group, series.name): series.unit for series in all_series(quadruped)}
    assert units["positions", "quadruped_trunk_qw"] == "1"
    assert units["positions", "quadruped_trunk_x"] == "m"
    assert units["positions", "quadruped_front_left_knee_q"] == "rad"
    assert units["velocities", "quadruped_trunk_wx"] == "rad/s"
    assert units["velocities", "quadruped_trunk_vx"] == "m/s"
    assert units["efforts", "quadruped_front_left_knee_motor"] == "N m"


def test_names_and_patterns_choose(quadruped) -> None:
    knee = ["quadruped_front_left_knee_q", "quadruped_front_left_knee_w", "quadruped_front_left_knee_motor"]
    assert names_of(quadruped, "front_left_knee") == knee
    assert names_of(quadruped, "velocities:front_*_knee") == [
        "quadruped_front_left_knee_w", "quadruped_front_right_knee_w",
    ]  # fmt: skip
    assert names_of(quadruped, "total", "trunk_z") == ["quadruped_trunk_z", "total"]
    assert len(names_of(quadruped, "positions")) == quadruped.num_positions
    assert len(names_of(quadruped, "efforts", "*_motor")) == quadruped.num_actuators


def test_a_name_with_brackets_chooses_its_own_curves() -> None:
    plant = mbjax.MultibodyPlant()
    for name in ("wheel[0]", "wheel0"):
        plant.add_rigid_body(name, mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
        plant.add_joint(mbjax.RevoluteJoint(name, "world", name))
    model = plant.finalize()
    assert names_of(model, "positions:wheel[0]") == ["DefaultModelInstance_wheel[0]_q"]
    assert len(names_of(model, "wheel[0]")) == 2
    assert len(names_of(model, "positions:wheel*")) == 2


@pytest.mark.parametrize("name", ["front_left_nee", "velocitys", "velocities:front_left_knee_q"])
def test_what_is_near_is_named(quadruped, name) -> None:
    with pytest.raises(mbjax.ModelError, match=r"Did you mean '(front_left_knee|velocities|.*front_left_knee_.)'"):
        plot(quadruped, mbjax.default_state(quadruped), [name])


@pytest.mark.whole_run("curves of several trajectories, below, and contact forces of the sledge in test_animate.py")
def test_curves_are_the_physics(model) -> None:
    """Of the sliding ball everything is known: kinetic energy m v²/2, weight m g z, and the contact's force."""
    figure = plot(model, sliding(model), title="sledge")
    panels = dict(curves(figure))
    assert [unit for unit, _ in curves(figure)] == ["m", "m/s", "N", "J", "N"]
    times = 0.01 * np.arange(61)
    np.testing.assert_allclose(curves(figure)[0][1]["slide_x"], times)
    np.testing.assert_allclose(curves(figure)[2][1]["sledge_motor"], -PRESSURE)
    height = 0.1 - 0.2 - NORMAL_FORCE / 5e3
    np.testing.assert_allclose(panels["J"]["kinetic"], 0.5 * MASS)
    np.testing.assert_allclose(panels["J"]["potential"], (MASS - 1e-3) * 9.81 * height, rtol=1e-6)
    np.testing.assert_allclose(panels["J"]["total"], panels["J"]["kinetic"] + panels["J"]["potential"])
    (force,) = curves(figure)[4][1].values()
    np.testing.assert_allclose(force, NORMAL_FORCE * np.hypot(1.0, FRICTION), rtol=2e-3)


def test_several_trajectories_share_panels_and_are_saved(model, tmp_path) -> None:
    runs = {"plan": sliding(model), "rollout": sliding(model, speed=0.5)}
    figure = plot(model, runs, "slide", path=tmp_path / "slide.png")
    assert [len(panel.get_lines()) for panel in figure.axes] == [2, 2]
    styles = {line.get_linestyle() for line in figure.axes[0].get_lines()}
    assert len(styles) == 2
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["plan", "rollout"]
    assert (tmp_path / "slide.png").read_bytes().startswith(b"\x89PNG")


def test_what_is_missing_is_said(model, monkeypatch) -> None:
    trajectory = mbjax.State(jnp.zeros((3, 2)), jnp.zeros((3, 2)), jnp.arange(3.0))
    with pytest.raises(mbjax.ModelError, match="holds no net_actuation"):
        plot(model, trajectory, "motor")
    with pytest.raises(mbjax.ModelError, match="plot: the list of names is empty"):
        plot(model, trajectory, [])
    with pytest.raises(mbjax.ModelError, match="plot: names must be text or a list of texts, got 5"):
        plot(model, trajectory, 5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(mbjax.ModelError, match="plot: the first argument must be the model, got State"):
        plot(trajectory, model)  # pyright: ignore[reportArgumentType]
    with pytest.raises(mbjax.ModelError, match="5 trajectories"):
        plot(model, [trajectory] * 5)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'plot needs matplotlib: pip install "mbjax\[viz\]"'):
        plot(model, trajectory, "slide")


def test_a_notebook_shows_a_figure(model) -> None:
    """IPython asks for a PNG of what a cell ends with, without `%matplotlib inline` too."""
    figure = plot(model, sliding(model), "positions")
    width, height = matplotlib.image.imread(io.BytesIO(figure._repr_png_()), format="png").shape[1::-1]
    assert width > height > 100
