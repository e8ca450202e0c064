"""Models in files of their own: `save` writes one, with all that it holds, and `load_model` reads it."""

from .files import load_model as load_model
from .files import save as save
