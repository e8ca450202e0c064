"""Strategies that solve the linear system of constrained motion, one strategy per file."""

from .abstract_solver import AbstractConstraintSolver as AbstractConstraintSolver
from .abstract_solver import AbstractMassMatrix as AbstractMassMatrix
from .abstract_solver import DenseMassMatrix as DenseMassMatrix
from .abstract_solver import KktMatrix as KktMatrix
from .abstract_solver import TreeMassMatrix as TreeMassMatrix
from .checked_solver import checked_solver as checked_solver
from .direct import Direct as Direct
from .kokkevis import Kokkevis as Kokkevis
from .null_space import NullSpace as NullSpace
from .proximal import Proximal as Proximal
from .range_space import RangeSpace as RangeSpace
