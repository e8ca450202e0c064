"""Figures of matplotlib that a notebook shows, made without pyplot, so that no setting of matplotlib changes."""

import functools
import io
from typing import TYPE_CHECKING, Any

from .optional_packages import imported

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def empty_figure(needs: str, **settings: Any) -> "Figure":
    """A figure with these settings; `needs` begins the message where matplotlib is missing."""
    imported("matplotlib.figure", needs, "viz")
    return figure_class()(**settings)


@functools.cache
def figure_class() -> type["Figure"]:
    """The class of figures that a notebook shows: matplotlib's own are shown only after `%matplotlib inline`."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        def _repr_png_(self) -> bytes:
            image = io.BytesIO()
            self.savefig(image, format="png")
            return image.getvalue()

    return ShownFigure
