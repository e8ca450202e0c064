"""Constraints: rows G vdot = gamma of every kind, and what is solved with them."""

from .bound_constraint_set import BoundConstraintSet as BoundConstraintSet
from .bound_constraint_set import bound_constraints as bound_constraints
from .constraint_kinematics import ConstraintTerms as ConstraintTerms
from .constraint_kinematics import calc_constraint_terms as calc_constraint_terms
from .constraint_set import ConstraintSet as ConstraintSet
from .constraint_forces import calc_compliant_forces as calc_compliant_forces
from .constraint_forces import calc_constraint_forces as calc_constraint_forces
