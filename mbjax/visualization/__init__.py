"""Visualization: self-contained 3-D animations for any browser, a live view, videos, and plots."""

from mbjax.visualization.animate import animate as animate
from mbjax.visualization.animation import Animation as Animation
from mbjax.visualization.animation import write_animation as write_animation
from mbjax.visualization.live import Viewer as Viewer
from mbjax.visualization.plot import plot as plot
from mbjax.visualization.plot_search import plot_search as plot_search
from mbjax.visualization.plots import write_plots as write_plots
