"""Strategies that solve the linear system of constrained motion, one strategy per file."""

from .abstract_solver import AbstractConstraintSolver as AbstractConstraintSolver
from .abstract_solver import AbstractInertia as AbstractInertia
from .abstract_solver import DenseInertia as DenseInertia
from .abstract_solver import KktMatrix as KktMatrix
from .abstract_solver import TreeInertia as TreeInertia
from .direct import Direct as Direct
from .kokkevis import Kokkevis as Kokkevis
from .null_space import NullSpace as NullSpace
from .proximal import Proximal as Proximal
from .range_space import RangeSpace as RangeSpace
