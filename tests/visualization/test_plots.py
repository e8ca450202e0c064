"""Written for few and many joints, names bad input, leaves matplotlib's settings alone."""

import itertools
import sys

import matplotlib
import numpy as np
import pytest

from mbjax.visualization.plot_panels import draw_lines, relative_error, without_common_prefix
from mbjax.visualization.plots import new_figure, write_plots


def recording(num_joints, num_steps=60):
    times = np.linspace(0.0, 2.0, num_steps)
    q = np.sin(times[:, None] * np.linspace(1.0, 3.0, num_joints))
    names = [f"arm_joint_{joint}" for joint in range(num_joints)]
    gradients = [("controls", name, float(joint), joint * (1 + 1e-8)) for joint, name in enumerate(names)]
    gradients += [
        ("link masses", name, 10.0 ** (joint % 9 - 6), 10.0 ** (joint % 9 - 6)) for joint, name in enumerate(names)
    ]
    return {
        "times": times,
        "q": q,
        "v": np.cos(q),
        "actuation": -q[:-1],
        "position_names": [f"{name}_q" for name in names],
        "velocity_names": [f"{name}_w" for name in names],
        "actuator_names": names,
        "gradient_table": gradients,
        "energy": {"kinetic": q[:, 0] ** 2, "potential": -(q[:, 0] ** 2)},
        "title": f"{num_joints} joints",
    }


@pytest.mark.parametrize("num_joints", [1, 7, pytest.param(50, marks=pytest.mark.whole_run("seven joints"))])
def test_figure_is_written_and_settings_are_kept(tmp_path, num_joints):
    before = dict(matplotlib.rcParams)
    path = write_plots(tmp_path / "plots.png", **recording(num_joints))
    width, height = matplotlib.image.imread(path).shape[1::-1]
    assert width == 1950
    assert height > 700
    assert dict(matplotlib.rcParams) == before


def test_parts_may_be_missing(tmp_path):
    arguments = recording(2) | {"energy": None, "gradient_table": []}
    arguments |= {"actuation": np.zeros((60, 0)), "actuator_names": []}
    assert write_plots(tmp_path / "plots.svg", **arguments).stat().st_size > 0


def test_rows_that_are_not_numbers_are_drawn(tmp_path):
    arguments = recording(2)
    arguments["gradient_table"] = [
        ("controls", "lost", float("nan"), 1.0),
        ("controls", "zero", 0.0, 0.0),
    ]
    arguments["q"] = np.where(arguments["times"][:, None] > 1.0, np.nan, arguments["q"])
    assert write_plots(tmp_path / "plots.png", **arguments).stat().st_size > 0


def test_wrong_shape_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"v has shape \(60, 3\)"):
        write_plots(tmp_path / "plots.png", **(recording(2) | {"v": np.zeros((60, 3))}))


def test_missing_matplotlib_names_the_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r'pip install "mbjax\[viz\]"'):
        write_plots(tmp_path / "plots.png", **recording(1))


def test_relative_error_always_has_a_logarithm():
    assert relative_error(0.0, 0.0) == 1e-16
    assert relative_error(2.0, 1.0) == 0.5
    assert np.isnan(relative_error(np.inf, 1.0))


def test_common_prefix_is_dropped_by_whole_words():
    assert without_common_prefix(["arm_elbow_q", "arm_wrist_q"]) == ["elbow_q", "wrist_q"]
    assert without_common_prefix(["arm_joint_1", "arm_joint_2"]) == ["joint_1", "joint_2"]
    assert without_common_prefix(["elbow"]) == ["elbow"]


def test_labels_stand_at_their_lines_where_there_is_room():
    """Apart by a label's height, in the order of the ends, each joined to its end."""
    figure = new_figure(6.0, 2.4, "test")
    ends = np.array([0.1, 0.5, 0.52, 0.9])
    axes = figure.subplots()
    draw_lines(axes, np.array([0.0, 1.0]), np.stack([np.zeros(4), ends]), [f"line {k}" for k in range(4)])
    figure.canvas.draw()
    lower, upper = axes.get_ylim()
    ends = (ends - lower) / (upper - lower)
    heights = np.array([text.xyann[1] for text in axes.texts])
    np.testing.assert_allclose(heights[[0, 3]], ends[[0, 3]], atol=1e-9)
    np.testing.assert_allclose(heights[[1, 2]], ends[1:3], atol=0.05)
    np.testing.assert_allclose([text.xy[1] for text in axes.texts], ends, atol=1e-9)
    boxes = sorted((text.get_window_extent() for text in axes.texts), key=lambda box: box.y0)
    assert all(below.y1 <= above.y0 + 1.0 for below, above in itertools.pairwise(boxes))
