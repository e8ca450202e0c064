"""Environments: robots with tasks as pure functions of one world, episodes, sensors, and adapters for learners."""

from .environment import AbstractEnvironment as AbstractEnvironment
from .environment import EnvState as EnvState
from .environment import Motion as Motion
from .environment import Outcome as Outcome
from .episodes import Episodes as Episodes
from .episodes import EpisodeState as EpisodeState
from .episodes import EpisodeStatistics as EpisodeStatistics
from .episodes import worlds_status as worlds_status
from .tasks import CartPoleSwingUp as CartPoleSwingUp
