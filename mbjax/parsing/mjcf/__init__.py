"""MJCF, through MuJoCo's own compiler, → `RobotRecord`."""

from .reader import read_mjcf as read_mjcf
