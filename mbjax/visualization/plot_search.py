"""Plots how a search for a plan went: its cost and what was left to do, iteration by iteration."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np

from mbjax.errors import ModelError

from . import plot_panels as panels
from .plots import PANEL_HEIGHT, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 7.0
RESIDUALS = {"gap": "largest gap", "violation": "constraints", "expected": "expected decrease"}
SMALLEST = 1e-16  # zeros are drawn here, on a log axis


def plot_search(plan: Any, *, title: str | None = None, path: str | os.PathLike[str] | None = None) -> Figure:
    """A matplotlib figure of a plan's costs and residuals over the iterations that found it.

    `plan` is what `mbjax.trajectory_optimization.solve` returned. The residuals are the largest gap between a state and
    what the step before gives, the largest distance of a constraint from its bounds, and the decrease of the cost that
    the next step was expected to bring. With `path` the figure is also saved. Needs `pip install "mbjax[viz]"`.
    """
    history = getattr(getattr(plan, "report", None), "history", None)
    if history is None or np.ndim(history.count):
        kind = "several plans" if history is not None else f"a value of type {type(plan).__name__}"
        raise ModelError(f"plot_search: give one plan that solve returned, got {kind}.")
    count = int(history.count)
    cost = np.asarray(history.cost, dtype=float)[:count]
    residuals = {
        label: np.abs(np.asarray(getattr(history, name), dtype=float)[:count]) for name, label in RESIDUALS.items()
    }
    residuals = {label: values for label, values in residuals.items() if np.any(values > 0.0)}
    figure = new_figure(WIDTH, 2.0 * PANEL_HEIGHT + (0.9 if title else 0.5), "plot_search")
    if title:
        figure.suptitle(title, x=0.012, ha="left", fontsize=15, fontweight="bold", color=panels.INK)
    above, below = figure.subplots(2, 1, sharex=True)
    iterations = np.arange(count)
    panels.draw_lines(above, iterations, cost[:, None], [""])
    panels.set_heading(above, "Cost")
    below.set_yscale("log")
    for index, (label, values) in enumerate(residuals.items()):
        color = panels.COLORS[index % len(panels.COLORS)]
        below.plot(iterations, np.maximum(values, SMALLEST), color=color, linewidth=1.5, label=label)
    below.grid(color=panels.GRID)
    if residuals:
        below.legend(frameon=False, fontsize=8, labelcolor=panels.SOFT)
    panels.set_heading(below, "Residuals")
    below.set_xlabel("iteration", fontsize=9, color=panels.SOFT)
    if path is not None:
        figure.savefig(path)
    return figure
