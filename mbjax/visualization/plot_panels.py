"""Panels of plots, drawn on given axes without changes to matplotlib's settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1f2a37"
SOFT = "#64748b"
GRID = "#e6eaef"
COLORS = ("#2f6fb3", "#dd7f4f", "#2f9580", "#b5566b", "#8a6fb0", "#b8931f", "#5f6b7a")

LABEL_SPACING = 0.078  # of a panel's height: two labels do not touch
LABEL_GAP = 16.0  # points from the end of a line to its label
SMALLEST_ERROR = 1e-16
MAX_TICKS = 5


def without_common_prefix(names: Sequence[str]) -> list[str]:
    """Names without the leading words that all of them share: 'arm_elbow_q' -> 'elbow_q'.

    The rest must start with a letter and have more than two characters: 'joint_1' is not cut to '1'.
    """
    shortened = list(names)
    while len(shortened) > 1 and len({name.partition("_")[0] for name in shortened}) == 1:
        rests = [name.partition("_")[2] for name in shortened]
        if not all(rest[:1].isalpha() and len(rest) > 2 for rest in rests):
            break
        shortened = rests
    return shortened


def set_heading(axes: Axes, text: str) -> None:
    axes.set_title(text, loc="left", fontsize=12, fontweight="bold", color=INK, pad=8)


def draw_lines(
    axes: Axes,
    times: np.ndarray,
    values: np.ndarray,
    labels: Sequence[str],
    *,
    style: Any = "solid",
    is_labelled: bool = True,
) -> None:
    """Draws one line for each column of `values` (T, n), labelled at its right end instead of in a legend."""
    _style(axes)
    for index, label in enumerate(labels):
        axes.plot(
            times, values[:, index], color=COLORS[index % len(COLORS)], linewidth=1.5, linestyle=style, label=label
        )
    axes.margins(x=0.0, y=0.08)
    if not is_labelled or not np.isfinite(values).any():
        return
    lower, upper = axes.get_ylim()
    ends = [_last_finite(values[:, index]) for index in range(len(labels))]
    wanted = np.clip([(end - lower) / (upper - lower) for end in ends], 0.0, 1.0)
    for index, (label, height) in enumerate(zip(labels, _spread(wanted), strict=True)):
        _label_line(axes, label, float(wanted[index]), float(height), COLORS[index % len(COLORS)])


def _label_line(axes: Axes, label: str, end: float, height: float, color: str) -> None:
    """Writes a label to the right of the axes, with a thin line to it from the end of its curve."""
    from matplotlib.transforms import ScaledTranslation

    figure: Any = axes.get_figure(root=True)
    to_points = ScaledTranslation(LABEL_GAP / 72.0, 0.0, figure.dpi_scale_trans)
    axes.annotate(
        label,
        xy=(1.0, np.nan_to_num(end)),
        xycoords="axes fraction",
        xytext=(1.0, height),
        textcoords=axes.transAxes + to_points,
        va="center",
        fontsize=8,
        color=color,
        annotation_clip=False,
        arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.7, "alpha": 0.7, "shrinkA": 1, "shrinkB": 1,
                    "relpos": (0.0, 0.5)},
    )  # fmt: skip


def draw_gradient_values(axes: Axes, rows: Sequence[tuple[str, str, float, float]], heading: str) -> None:
    """Draws one row per parameter: a dot for automatic differentiation, a ring for finite differences."""
    _style(axes, grid_axis="both")
    places = np.arange(len(rows))
    autodiff = np.array([row[2] for row in rows], dtype=float)
    difference = np.array([row[3] for row in rows], dtype=float)
    axes.axvline(0.0, color="#9aa5b1", linewidth=0.9, zorder=1)
    axes.hlines(places, 0.0, autodiff, color=COLORS[0], alpha=0.35, linewidth=2.0, zorder=2)
    axes.scatter(autodiff, places, s=26, color=COLORS[0], zorder=3, label="autodiff")
    axes.scatter(
        difference,
        places,
        s=72,
        facecolors="none",
        edgecolors=COLORS[1],
        linewidths=1.4,
        zorder=4,
        label="finite differences",
    )
    _set_gradient_scale(axes, np.concatenate([autodiff, difference]))
    axes.set_yticks(places, [row[1] for row in rows], fontsize=8, color=INK)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("gradient of the cost", fontsize=9, color=SOFT)
    set_heading(axes, heading)


def draw_gradient_errors(axes: Axes, rows: Sequence[tuple[str, str, float, float]]) -> None:
    """Draws |autodiff - difference| over the larger of the two, on a log axis that starts at 1e-16.

    Rows that are zero in both are at the start of the axis; rows that are not numbers get a cross.
    """
    _style(axes, grid_axis="both")
    places = np.arange(len(rows))
    errors = np.array([relative_error(row[2], row[3]) for row in rows])
    is_number = np.isfinite(errors)
    axes.hlines(places[is_number], SMALLEST_ERROR, errors[is_number], color=SOFT, alpha=0.3, linewidth=1.4)
    axes.scatter(errors[is_number], places[is_number], s=20, color=INK, zorder=3)
    axes.scatter(np.ones((~is_number).sum()), places[~is_number], marker="x", s=44, color="#c0392b", zorder=4)
    axes.set_xscale("log")
    axes.set_xlim(SMALLEST_ERROR, 10.0)
    axes.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1.0])
    axes.minorticks_off()
    axes.set_yticks(places, [])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_xlabel("relative error", fontsize=9, color=SOFT)


def draw_gradient_legend(axes: Axes, values_axes: Axes) -> None:
    """Draws a legend of the markers of `values_axes` in a line above `axes`."""
    handles, labels = values_axes.get_legend_handles_labels()
    axes.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(-0.06, 1.0),
        ncols=2,
        frameon=False,
        fontsize=8,
        handletextpad=0.1,
        columnspacing=0.8,
        borderaxespad=0.2,
        labelcolor=SOFT,
    )


def relative_error(autodiff: float, difference: float) -> float:
    """Relative error |a - d| / max(|a|, |d|), at least 1e-16 so that it has a logarithm; NaN where not finite."""
    if not (math.isfinite(autodiff) and math.isfinite(difference)):
        return math.nan
    scale = max(abs(autodiff), abs(difference))
    return max(abs(autodiff - difference) / scale, SMALLEST_ERROR) if scale > 0.0 else SMALLEST_ERROR


def _set_gradient_scale(axes: Axes, values: np.ndarray) -> None:
    """Sets a symmetric log scale where the largest value exceeds 100 times the median, and a linear scale otherwise."""
    sizes = np.abs(values[np.isfinite(values) & (values != 0.0)])
    if len(sizes) and sizes.max() / np.median(sizes) > 100.0:
        linear_until = 10.0 ** math.floor(math.log10(max(sizes.min(), sizes.max() * 1e-6)))
        axes.set_xscale("symlog", linthresh=linear_until)
        axes.minorticks_off()
        axes.tick_params(axis="x", labelrotation=45)
    else:
        axes.margins(x=0.08)
        axes.locator_params(axis="x", nbins=MAX_TICKS)
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4), useOffset=False, useMathText=True)
        axes.xaxis.get_offset_text().set(fontsize=8, color=SOFT)


def _last_finite(values: np.ndarray) -> float:
    finite = values[np.isfinite(values)]
    return float(finite[-1]) if len(finite) else math.nan


def _spread(heights: np.ndarray) -> np.ndarray:
    """Heights in [0, 1] nearest in least squares to the given ones that keep their order and a label's spacing."""
    from scipy.optimize import isotonic_regression  # slow to import

    heights = np.nan_to_num(heights, nan=0.0)
    order = np.argsort(heights, kind="stable")
    spacing = min(LABEL_SPACING, 1.0 / max(len(heights) - 1, 1))
    ramp = spacing * np.arange(len(heights))
    placed = np.clip(isotonic_regression(heights[order] - ramp).x, 0.0, 1.0 - ramp[-1]) + ramp
    result = np.empty_like(heights)
    result[order] = placed
    return result


def _style(axes: Axes, grid_axis: Literal["both", "y"] = "y") -> None:
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color("#9aa5b1")
    axes.grid(axis=grid_axis, color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8.5, colors=SOFT, length=0, labelcolor=SOFT)
