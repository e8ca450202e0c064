"""Accelerations → trajectories."""

from .actuation import actuation_matrix as actuation_matrix
from .ports import AppliedSpatialForces as AppliedSpatialForces
from .ports import Inputs as Inputs
from .ports import Outputs as Outputs
from .rollout import Trajectory as Trajectory
from .rollout import rollout as rollout
from .simulate import normalize_quaternions as normalize_quaternions
from .simulate import simulate as simulate
from .state import State as State
from .state import default_state as default_state
from .state import random_state as random_state
from .step import step as step
from .time_derivatives import outputs as outputs
from .time_derivatives import time_derivatives as time_derivatives
