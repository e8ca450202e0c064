"""Simulation: states, inputs and outputs, accelerations of the whole plant, steps and trajectories."""

from .actuation import actuation_matrix as actuation_matrix
from .implicit_time_derivatives import implicit_time_derivatives_residual as implicit_time_derivatives_residual
from .contact_integrator import ContactIntegrator as ContactIntegrator
from .contact_integrator import ContactSolver as ContactSolver
from .output_ports import outputs as outputs
from .ports import AppliedSpatialForces as AppliedSpatialForces
from .ports import Inputs as Inputs
from .ports import Outputs as Outputs
from .rollout import Trajectory as Trajectory
from .rollout import rollout as rollout
from .rollout_policy import PolicyRollout as PolicyRollout
from .rollout_policy import PolicyStep as PolicyStep
from .rollout_policy import rollout_policy as rollout_policy
from .simulate import normalize_quaternions as normalize_quaternions
from .simulate import simulate as simulate
from .deformable_statics import DeformableEnergies as DeformableEnergies
from .deformable_statics import DeformableEquilibrium as DeformableEquilibrium
from .deformable_statics import DeformableMomentum as DeformableMomentum
from .deformable_statics import deformable_energies as deformable_energies
from .deformable_statics import deformable_equilibrium as deformable_equilibrium
from .deformable_statics import deformable_momentum as deformable_momentum
from .deformable_surfaces import deformable_contact_surfaces as deformable_contact_surfaces
from .state import NodeState as NodeState
from .state import State as State
from .state import default_state as default_state
from .state import keyframe_state as keyframe_state
from .step import next_state as next_state
from .step import step as step
from .time_derivatives import time_derivatives as time_derivatives
from .free_bodies import free_body_pose as free_body_pose
from .free_bodies import free_body_spatial_velocity as free_body_spatial_velocity
from .free_bodies import set_free_body_pose as set_free_body_pose
from .free_bodies import set_free_body_pose_in_anchored_frame as set_free_body_pose_in_anchored_frame
from .free_bodies import set_free_body_pose_in_world_frame as set_free_body_pose_in_world_frame
from .free_bodies import set_free_body_spatial_velocity as set_free_body_spatial_velocity
from .free_bodies import (
    set_free_body_spatial_velocity_in_anchored_frame as set_free_body_spatial_velocity_in_anchored_frame,
)
from .free_bodies import set_free_body_spatial_velocity_in_world_frame as set_free_body_spatial_velocity_in_world_frame
from .random_state import random_state as random_state
from .random_state import random_state_within_limits as random_state_within_limits
from .selector_matrices import actuation_matrix_pseudoinverse as actuation_matrix_pseudoinverse
from .selector_matrices import actuator_selector_matrix as actuator_selector_matrix
from .selector_matrices import state_selector_matrix as state_selector_matrix
from .wrench_actuators import WrenchActuators as WrenchActuators
from .state_access import positions as positions
from .state_access import positions_and_velocities as positions_and_velocities
from .state_access import set_positions as set_positions
from .state_access import set_positions_and_velocities as set_positions_and_velocities
from .state_access import set_velocities as set_velocities
from .state_access import velocities as velocities
