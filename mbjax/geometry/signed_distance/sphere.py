"""A sphere against everything but a half-space: the other shape's distance of its centre."""

from .witnesses import PairFunction

SPHERE_PAIRS: dict[tuple[str, str], PairFunction] = {}
