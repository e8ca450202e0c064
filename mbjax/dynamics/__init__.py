"""Inverse and forward dynamics of the unconstrained tree, its energies, momenta and centre of mass."""

from .articulated_body.factor import ArticulatedFactor as ArticulatedFactor
from .articulated_body.factor import factor_articulated_bodies as factor_articulated_bodies
from .articulated_body.factor import solve_with_factor as solve_with_factor
from .articulated_body.step import ArticulatedInertia as ArticulatedInertia
from .mass_matrix_factor import MassMatrixFactor as MassMatrixFactor
from .mass_matrix_factor import factor_mass_matrix as factor_mass_matrix
from .mass_matrix_factor import solve_factored as solve_factored
from .center_of_mass import (
    bias_center_of_mass_translational_acceleration as bias_center_of_mass_translational_acceleration,
)
from .center_of_mass import calc_center_of_mass_and_jacobian as calc_center_of_mass_and_jacobian
from .center_of_mass import center_of_mass_position_in_world as center_of_mass_position_in_world
from .center_of_mass import (
    center_of_mass_translational_acceleration_in_world as center_of_mass_translational_acceleration_in_world,
)
from .center_of_mass import (
    center_of_mass_translational_velocity_in_world as center_of_mass_translational_velocity_in_world,
)
from .center_of_mass import (
    jacobian_center_of_mass_translational_velocity as jacobian_center_of_mass_translational_velocity,
)
from .center_of_mass import total_mass as total_mass
from .composite_inertia import spatial_inertia as spatial_inertia
from .derivatives.composite_terms import FixedWrenches as FixedWrenches
from .derivatives.composite_terms import calc_turning_of_wrenches as calc_turning_of_wrenches
from .derivatives.composite_terms import matrix_rows as matrix_rows
from .derivatives.composite_terms import rows_as_matrix as rows_as_matrix
from .derivatives.motion import MotionDerivatives as MotionDerivatives
from .derivatives.motion import calc_motion_derivatives as calc_motion_derivatives
from .dynamics_derivatives import FreeMotion as FreeMotion
from .dynamics_derivatives import calc_driven_columns as calc_driven_columns
from .dynamics_derivatives import calc_free_motion as calc_free_motion
from .dynamics_derivatives import ForwardDynamicsDerivatives as ForwardDynamicsDerivatives
from .dynamics_derivatives import InverseDynamicsDerivatives as InverseDynamicsDerivatives
from .dynamics_derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from .dynamics_derivatives import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .energy_and_momentum import kinetic_energy as kinetic_energy
from .energy_and_momentum import potential_energy as potential_energy
from .energy_and_momentum import spatial_momentum_in_world_about_point as spatial_momentum_in_world_about_point
from .equations_of_motion import bias_term as bias_term
from .equations_of_motion import calc_reflected_inertia as calc_reflected_inertia
from .equations_of_motion import forward_dynamics as forward_dynamics
from .equations_of_motion import inverse_dynamics as inverse_dynamics
from .equations_of_motion import mass_matrix as mass_matrix
from .equations_of_motion import mass_matrix_via_inverse_dynamics as mass_matrix_via_inverse_dynamics
from .equations_of_motion import split_forces as split_forces
from .equations_of_motion import spread_over_velocities as spread_over_velocities
from .forward_dynamics import ForwardDynamicsTerms as ForwardDynamicsTerms
from .forward_dynamics import calc_force_at_rest as calc_force_at_rest
from .forward_dynamics import calc_forward_dynamics as calc_forward_dynamics
from .forward_dynamics import calc_forward_dynamics_from_state as calc_forward_dynamics_from_state
from .forward_dynamics import calc_residual_change as calc_residual_change
from .records.tree_motion import TreeMotion as TreeMotion
from .records.tree_motion import calc_inertia_in_world as calc_inertia_in_world
from .records.tree_motion import calc_tree_motion as calc_tree_motion
from .newton_euler.sums import calc_inverse_dynamics as calc_inverse_dynamics
from .newton_euler.sums import calc_mass_matrix_product as calc_mass_matrix_product
