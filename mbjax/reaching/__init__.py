"""Inverse kinematics: configurations that reach goals, along paths, and velocities that go there."""

from .inverse_kinematics import inverse_kinematics as inverse_kinematics
from .outcome import InverseKinematicsResult as InverseKinematicsResult
from .outcome import ReachOutcome as ReachOutcome
