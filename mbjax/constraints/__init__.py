"""Constraints: rows G vdot = gamma of every kind, and what is solved with them."""

from .bound_constraint_set import BoundConstraintSet as BoundConstraintSet
from .bound_constraint_set import bound_constraints as bound_constraints
from .constraint_kinematics import ConstraintTerms as ConstraintTerms
from .constraint_kinematics import calc_constraint_terms as calc_constraint_terms
from .constraint_set import ConstraintSet as ConstraintSet
from .constraint_forces import calc_compliant_forces as calc_compliant_forces
from .constraint_forces import calc_constraint_forces as calc_constraint_forces
from .constraint_quantities import ConstrainedSystem as ConstrainedSystem
from .constraint_quantities import compliant_forces as compliant_forces
from .constraint_quantities import constrained_system_variables as constrained_system_variables
from .constraint_quantities import constraint_forces_by_name as constraint_forces_by_name
from .constraint_quantities import constraint_spatial_forces as constraint_spatial_forces
from .constraint_quantities import constraint_terms as constraint_terms
from .constraint_quantities import constraints_jacobian as constraints_jacobian
from .constraint_quantities import constraints_position_error as constraints_position_error
from .constraint_quantities import constraints_velocity_error as constraints_velocity_error
