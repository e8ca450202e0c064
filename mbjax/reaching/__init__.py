"""Inverse kinematics: configurations that reach goals, along paths, and velocities that go there."""

from .differential import differential_inverse_kinematics as differential_inverse_kinematics
from .follow import follow as follow
from .inverse_kinematics import inverse_kinematics as inverse_kinematics
from .outcome import InverseKinematicsResult as InverseKinematicsResult
from .outcome import ReachOutcome as ReachOutcome
