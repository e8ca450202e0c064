"""Plots curves of a trajectory, chosen by name."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel

from . import plot_panels as panels
from .plots import LINES_PER_PANEL, PANEL_HEIGHT, new_figure
from .series import Series, chosen_series, values_of
from .tracks import Track, as_tracks, one_each, require_model

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 9.0
HEADINGS = {
    "positions": "Positions",
    "velocities": "Velocities",
    "efforts": "Efforts",
    "energies": "Energies",
    "contact_forces": "Contact forces",
}
STYLES = ("solid", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))
Values = dict[str, list[tuple[np.ndarray, np.ndarray]]]  # by group: times (T,) and columns (T, n) of each track


def plot(
    model: MultibodyModel,
    trajectory: Any,
    names: str | Sequence[str] | None = None,
    *,
    inputs: Any = None,
    outputs: Any = None,
    title: str | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Figure:
    """A matplotlib figure of the named curves, with panels for each group and unit; needs `pip install "mbjax[viz]"`.

    At the end of a cell a notebook shows it; elsewhere in a cell, `IPython.display.display(figure)` does.

    A name is that of a joint, a coordinate (`arm_elbow_q`, `elbow_q`), an actuator, a collision geometry or its body,
    an energy (`kinetic`, `potential`, `total`), or a group: `positions` in rad, m or 1 (quaternions), `velocities` in
    rad/s or m/s, `efforts` in N m or N, `energies` in J, `contact_forces` in N, each the size of the force between two
    geometries. `*` stands for any letters, and `velocities:*knee*` selects from one group only. None plots everything,
    except contacts that never carry a force.

    `trajectory`, `inputs` and `outputs` are as in `mbjax.show`. With several trajectories the first is solid and the
    others are dashed. With `path` the figure is also saved, in the format of its suffix.
    """
    call = "plot"
    require_model(call, model)
    tracks = as_tracks(call, model, trajectory)
    if len(tracks) > len(STYLES):
        raise ModelError(f"{call}: {len(tracks)} trajectories; {len(STYLES)} at most can be told apart. Choose some.")
    series = chosen_series(call, model, names)
    if names is None and any(track.u is None for track in tracks):
        series = [each for each in series if each.group != "efforts"]
    figure = new_figure(1.0, 1.0, call)
    values = _values(call, model, trajectory, tracks, series, inputs, outputs)
    if names is None or "contact_forces" in ([names] if isinstance(names, str) else names):
        series = [each for each in series if each.group != "contact_forces" or _is_ever_there(each, values)]
    if not series:
        raise ModelError(f"{call}: none of the contacts carries a force. Name a pair to plot its zeros.")
    _draw(figure, series, values, tracks, title)
    if path is not None:
        figure.savefig(path)
    return figure


def _values(
    call: str,
    model: MultibodyModel,
    trajectory: Any,
    tracks: Sequence[Track],
    series: Sequence[Series],
    inputs: Any,
    outputs: Any,
) -> Values:
    each_inputs = one_each(call, "inputs", inputs, trajectory, tracks)
    each_outputs = one_each(call, "outputs", outputs, trajectory, tracks)
    groups = dict.fromkeys(each.group for each in series)
    return {
        group: [
            values_of(call, model, track, group, given, reported)
            for track, given, reported in zip(tracks, each_inputs, each_outputs, strict=True)
        ]
        for group in groups
    }


def _is_ever_there(series: Series, values: Values) -> bool:
    return any(np.any(columns[:, series.column] != 0.0) for _, columns in values[series.group])


def _draw(figure: Figure, series: Sequence[Series], values: Values, tracks: Sequence[Track], title: str | None) -> None:
    kinds = dict.fromkeys((each.group, each.unit) for each in series)
    parts = [part for kind in kinds for part in _panel_parts([s for s in series if (s.group, s.unit) == kind])]
    figure.set_size_inches(WIDTH, PANEL_HEIGHT * len(parts) + (0.9 if title else 0.5))
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=15, fontweight="bold", color=panels.INK)
    axes = figure.subplots(len(parts), 1, squeeze=False, sharex=True)[:, 0]
    previous = ""
    for panel, part in zip(axes, parts, strict=True):
        labels = panels.without_common_prefix([each.name for each in part])
        columns = [each.column for each in part]
        of_tracks = list(enumerate(values[part[0].group]))
        for world, (times, of_track) in reversed(of_tracks):  # labels last, with all curves drawn
            panels.draw_lines(panel, times, of_track[:, columns], labels, style=STYLES[world], is_labelled=world == 0)
        panel.set_ylabel(part[0].unit if part[0].unit != "1" else "quaternion", fontsize=9, color=panels.SOFT)
        if part[0].group != previous:
            panels.set_heading(panel, HEADINGS[part[0].group])
        previous = part[0].group
    axes[-1].set_xlabel("time [s]", fontsize=9, color=panels.SOFT)
    if len(tracks) > 1:
        _explain(figure, axes[0], tracks)


def _panel_parts(series: list[Series]) -> list[list[Series]]:
    count = math.ceil(len(series) / LINES_PER_PANEL)
    return [[series[k] for k in chosen] for chosen in np.array_split(np.arange(len(series)), count)]


def _explain(figure: Figure, panel: Any, tracks: Sequence[Track]) -> None:
    """Adds a legend of the trajectories' line styles above the first panel."""
    from matplotlib.lines import Line2D

    labels = [track.label or f"trajectory {k}" for k, track in enumerate(tracks)]
    handles = [Line2D([], [], color=panels.SOFT, linestyle=STYLES[k]) for k in range(len(tracks))]
    panel.legend(
        handles, labels, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=len(tracks), frameon=False, fontsize=8,
        labelcolor=panels.SOFT, borderaxespad=0.2,
    )  # fmt: skip
