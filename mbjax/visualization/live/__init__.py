"""A live view of a model in a browser, served by viser."""

from .viewer import Viewer as Viewer
