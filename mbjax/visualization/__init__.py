"""Visualization: self-contained 3-D animations for any browser, a live view, videos, and plots."""

from .animate import animate as animate
from .animation import Animation as Animation
from .animation import write_animation as write_animation
from .live import Viewer as Viewer
from .plot import plot as plot
from .plot_search import plot_search as plot_search
from .plots import write_plots as write_plots
