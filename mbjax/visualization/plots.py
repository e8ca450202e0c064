"""Writes a page of plots of one simulation: coordinates, actuation, energy, gradients."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mbjax.figures import empty_figure
from mbjax.optional_packages import imported

from . import plot_panels as panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure

GradientRow = tuple[str, str, float, float]

LINES_PER_PANEL = 7
PANEL_HEIGHT = 2.35
ENTRY_HEIGHT = 0.21
WIDTH = 15.0
MOST_ENTRIES_PER_GROUP = 40


def write_plots(
    path: str | os.PathLike[str],
    *,
    times: np.ndarray,
    q: np.ndarray,
    v: np.ndarray,
    actuation: np.ndarray,
    position_names: Sequence[str],
    velocity_names: Sequence[str],
    actuator_names: Sequence[str],
    gradient_table: Sequence[GradientRow],
    energy: Mapping[str, np.ndarray] | None,
    title: str,
) -> Path:
    """Writes one figure, in the format that the suffix of `path` names; returns its path.

    times (T,) in s; q (T, nq), v (T, nv) in rad, m and their rates; actuation (T or T-1, nu) in N m
    or N; energy: name -> (T,) in J. `gradient_table` has a row (group, name, autodiff, finite
    difference) for each parameter. A group of more than 40 rows shows the largest in magnitude, and
    its title gives both counts.
    """
    times = np.asarray(times, dtype=float)
    columns = [
        ("Positions", "rad or m", *_checked("q", q, position_names, times)),
        ("Velocities", "rad/s or m/s", *_checked("v", v, velocity_names, times)),
        ("Actuation", "N m or N", *_checked("actuation", actuation, actuator_names, times)),
    ]
    columns = [column for column in columns if column[3]]
    groups = _gradient_groups(gradient_table)
    num_rows = max((math.ceil(len(names) / LINES_PER_PANEL) for *_, names in columns), default=0)
    heights = [
        PANEL_HEIGHT * num_rows + 0.35 if num_rows else 0.0,
        PANEL_HEIGHT + 0.1 if energy else 0.0,
        max((ENTRY_HEIGHT * max(len(shown), 5) for _, shown, _ in groups), default=0.0) + (1.15 if groups else 0.0),
    ]
    present = [height for height in heights if height]
    figure = new_figure(WIDTH, sum(present) + 0.7, "write_plots")
    figure.suptitle(title, x=0.012, ha="left", fontsize=17, fontweight="bold", color=panels.INK)
    if present:
        parts = iter(figure.subfigures(len(present), 1, squeeze=False, height_ratios=present)[:, 0])
        if heights[0]:
            _draw_coordinates(next(parts), times, columns, num_rows)
        if energy:
            _draw_energy(next(parts), times, energy)
        if groups:
            _draw_gradients(next(parts), groups)
    path = Path(path)
    figure.savefig(path)
    return path


def new_figure(width: float, height: float, call: str) -> Figure:
    """An empty white figure with automatic layout; sizes are in inches."""
    needs = f"{call} needs matplotlib"
    figure = empty_figure(needs, figsize=(width, height), dpi=130, facecolor="white")
    engine = imported("matplotlib.layout_engine", needs, "viz").ConstrainedLayoutEngine
    figure.set_layout_engine(engine(w_pad=0.14, h_pad=0.1, wspace=0.02))
    return figure


def _checked(
    argument: str, values: np.ndarray, names: Sequence[str], times: np.ndarray
) -> tuple[np.ndarray, list[str]]:
    values = np.asarray(values, dtype=float)
    lengths = (len(times), len(times) - 1) if argument == "actuation" else (len(times),)
    if values.ndim != 2 or values.shape[1] != len(names) or values.shape[0] not in lengths:
        raise ValueError(
            f"write_plots: {argument} has shape {values.shape}; {len(times)} times and "
            f"{len(names)} names need ({len(times)}, {len(names)})."
        )
    return values, list(names)


def _gradient_groups(table: Sequence[GradientRow]) -> list[tuple[str, list[GradientRow], int]]:
    """Groups of gradient rows, in order of appearance: (group, rows to show, number of all rows)."""
    by_group: dict[str, list[GradientRow]] = {}
    for row in table:
        by_group.setdefault(row[0], []).append(row)
    groups = []
    for group, rows in by_group.items():
        shown = rows
        if len(rows) > MOST_ENTRIES_PER_GROUP:
            largest = sorted(range(len(rows)), key=lambda index: -_magnitude(rows[index]))
            shown = [rows[index] for index in sorted(largest[:MOST_ENTRIES_PER_GROUP])]
        groups.append((group, shown, len(rows)))
    return groups


def _magnitude(row: GradientRow) -> float:
    """The row's larger magnitude; NaN counts as infinite, so that such a row is never left out."""
    size = max(abs(float(row[2])), abs(float(row[3])))
    return size if math.isfinite(size) else math.inf


def _draw_coordinates(
    part: SubFigure,
    times: np.ndarray,
    columns: list[tuple[str, str, np.ndarray, list[str]]],
    num_rows: int,
) -> None:
    axes = part.subplots(num_rows, len(columns), squeeze=False, sharex=True)
    for column, (heading, unit, values, names) in enumerate(columns):
        labels = panels.without_common_prefix(names)
        chunks = np.array_split(np.arange(len(names)), math.ceil(len(names) / LINES_PER_PANEL))
        for row in range(num_rows):
            panel = axes[row, column]
            if row >= len(chunks):
                panel.set_visible(False)
                continue
            chosen = chunks[row]
            panels.draw_lines(panel, times[: len(values)], values[:, chosen], [labels[index] for index in chosen])
            panel.set_ylabel(unit, fontsize=9, color=panels.SOFT)
            if row == 0:
                panels.set_heading(panel, heading)
            if row == len(chunks) - 1:
                panel.tick_params(labelbottom=True)
                panel.set_xlabel("time [s]", fontsize=9, color=panels.SOFT)


def _draw_energy(part: SubFigure, times: np.ndarray, energy: Mapping[str, np.ndarray]) -> None:
    panel = part.subplots()
    values = np.stack([np.asarray(series, dtype=float) for series in energy.values()], axis=1)
    if values.shape[0] != len(times):
        raise ValueError(f"write_plots: energy has {values.shape[0]} values for {len(times)} times.")
    panels.draw_lines(panel, times, values, list(energy))
    panels.set_heading(panel, "Energy")
    panel.set_ylabel("J", fontsize=9, color=panels.SOFT)
    panel.set_xlabel("time [s]", fontsize=9, color=panels.SOFT)


def _draw_gradients(part: SubFigure, groups: list[tuple[str, list[GradientRow], int]]) -> None:
    ratios = [width for _ in groups for width in (2.0, 1.0)]
    axes: Any = part.subplots(1, 2 * len(groups), squeeze=False, width_ratios=ratios)[0]
    for index, (group, rows, count) in enumerate(groups):
        selection = "" if count == len(rows) else f" ({len(rows)} largest of {count})"
        panels.draw_gradient_values(axes[2 * index], rows, f"Gradient: {group}{selection}")
        panels.draw_gradient_errors(axes[2 * index + 1], rows)
        panels.draw_gradient_legend(axes[2 * index + 1], axes[2 * index])
