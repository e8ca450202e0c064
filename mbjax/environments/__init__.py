"""Environments: robots with tasks as pure functions of one world, episodes, sensors, and adapters for learners."""

from .adapters import as_brax as as_brax
from .adapters import as_gymnasium as as_gymnasium
from .adapters import as_torch as as_torch
from .adapters import restore_checkpoint as restore_checkpoint
from .adapters import save_checkpoint as save_checkpoint
from .adapters import torch_function as torch_function
from .disturbances import RandomPushes as RandomPushes
from .disturbances import add_blocks as add_blocks
from .disturbances import on_slope as on_slope
from .environment import AbstractEnvironment as AbstractEnvironment
from .environment import EnvState as EnvState
from .environment import Motion as Motion
from .environment import Outcome as Outcome
from .episodes import Episodes as Episodes
from .episodes import EpisodeState as EpisodeState
from .episodes import EpisodeStatistics as EpisodeStatistics
from .episodes import worlds_status as worlds_status
from .sensors import Sensor as Sensor
from .sensors import contact_forces as contact_forces
from .sensors import inertial_unit as inertial_unit
from .sensors import joint_encoders as joint_encoders
from .tasks import Ant as Ant
from .tasks import ArmReach as ArmReach
from .tasks import CartPoleSwingUp as CartPoleSwingUp
from .tasks import Hopper as Hopper
from .tasks import QuadrupedVelocity as QuadrupedVelocity
