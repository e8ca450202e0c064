"""URDF, with Drake's extensions."""

from .reader import read_urdf as read_urdf
from .writer import to_urdf as to_urdf
