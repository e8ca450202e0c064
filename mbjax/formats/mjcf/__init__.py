"""MJCF, through MuJoCo's own compiler, → `RobotRecord`."""

from .reader import read_mjcf as read_mjcf
from .writer import to_mjcf as to_mjcf
