"""Files to look at: a self-contained 3-D animation for any browser, and a page of plots."""

from mbjax.visualization.animation import write_animation as write_animation
from mbjax.visualization.plots import write_plots as write_plots
