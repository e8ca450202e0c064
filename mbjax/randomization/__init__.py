"""Models that differ from world to world, drawn by name."""

from .distributions import Distribution as Distribution
from .distributions import log_uniform as log_uniform
from .distributions import normal as normal
from .distributions import uniform as uniform
from .randomize import domain_randomizer as domain_randomizer
from .randomize import randomize as randomize
