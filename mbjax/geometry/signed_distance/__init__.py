"""Signed distances of pairs of shapes, with their witness points and normals."""

from .bounding_spheres import gap_between as gap_between
from .pair_table import PAIRS as PAIRS
from .pair_table import pair_function as pair_function
from .pair_table import supported_pairs as supported_pairs
from .witnesses import PairFunction as PairFunction
from .witnesses import Witnesses as Witnesses
from .witnesses import make_witnesses as make_witnesses
from .witnesses import swap as swap
