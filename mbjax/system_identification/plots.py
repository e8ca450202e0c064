"""Plots of a fit by matplotlib: measured and predicted signals, and what is left of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbjax.figures import empty_figure

from .log import Log
from .recording import Recording

MOST_CHANNELS = 12


def plot_fit(log: Log | Recording, names: Sequence[str], measured: Any, predicted: Any, *, is_held_out: bool) -> Any:
    """A figure with a row for each channel: measured and predicted on the left, the residual on the right."""
    shown = list(range(len(names)))[:MOST_CHANNELS]
    size = (11.0, 1.6 * len(shown) + 0.8)
    figure = empty_figure("plots need matplotlib", figsize=size, facecolor="white", layout="constrained")
    axes = figure.subplots(len(shown), 2, squeeze=False, sharex=True)
    time = np.asarray(log.time, float)[-len(measured) :] if len(measured) <= len(log) else np.arange(len(measured))
    for row, k in enumerate(shown):
        left, right = axes[row]
        real, model = np.asarray(measured[:, k], float), np.asarray(predicted[:, k], float)
        left.plot(time, real, color="0.6", linewidth=2.0, label="measured")
        left.plot(time, model, color="#b5442b", linewidth=0.9, label="fitted")
        right.plot(time, model - real, color="#2b5ab5", linewidth=0.8)
        right.axhline(0.0, color="0.8", linewidth=0.8)
        left.set_ylabel(names[k], fontsize=8)
        for axis in (left, right):
            axis.tick_params(labelsize=7)
    axes[0][0].legend(fontsize=7, loc="upper right")
    axes[0][0].set_title(f"{log.name}{' (held out)' if is_held_out else ''}", fontsize=9)
    axes[0][1].set_title("fitted less measured", fontsize=9)
    for axis in axes[-1]:
        axis.set_xlabel("time, s", fontsize=8)
    return figure
