"""Writes models as robot files, with their numbers of now, and reports what a format does not hold."""

from .urdf import to_urdf as to_urdf
from .written import Written as Written
from .sdf import to_sdf as to_sdf
from .mjcf import to_mjcf as to_mjcf
