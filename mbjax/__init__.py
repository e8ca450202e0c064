"""mbjax: differentiable rigid-body dynamics in JAX.

Build or load a model, then call pure functions of it: `mbjax.mass_matrix(model, q)`,
`mbjax.rollout(model, state, inputs)`, under `jax.jit`, `jax.vmap` and `jax.grad`. Importing mbjax has no
effect on JAX's configuration.
"""

from .constraints import BoundConstraintSet as BoundConstraintSet
from .constraints import ConstrainedSystem as ConstrainedSystem
from .constraints import ConstraintSet as ConstraintSet
from .constraints import ConstraintTerms as ConstraintTerms
from .constraints import compliant_forces as compliant_forces
from .constraints import constrained_system_variables as constrained_system_variables
from .constraints import constraint_forces_by_name as constraint_forces_by_name
from .constraints import constraint_spatial_forces as constraint_spatial_forces
from .constraints import constraint_terms as constraint_terms
from .constraints import constraints_jacobian as constraints_jacobian
from .constraints import constraints_position_error as constraints_position_error
from .constraints import constraints_velocity_error as constraints_velocity_error
from .constraints import AbstractConstraintSolver as AbstractConstraintSolver
from .constraints import ConstrainedAcceleration as ConstrainedAcceleration
from .constraints import ConstrainedTorques as ConstrainedTorques
from .constraints import ConstraintImpulses as ConstraintImpulses
from .constraints import Direct as Direct
from .constraints import Kokkevis as Kokkevis
from .constraints import NullSpace as NullSpace
from .constraints import Proximal as Proximal
from .constraints import RangeSpace as RangeSpace
from .constraints import constrained_forward_dynamics as constrained_forward_dynamics
from .constraints import constrained_inverse_dynamics as constrained_inverse_dynamics
from .constraints import constraint_impulses as constraint_impulses
from .constraints import inverse_dynamics_with_constraints as inverse_dynamics_with_constraints
from .constraints import solve_constrained_system as solve_constrained_system
from .constraints import AssemblyResult as AssemblyResult
from .constraints import AssemblyStatus as AssemblyStatus
from .constraints import assembly_q as assembly_q
from .constraints import assembly_qdot as assembly_qdot
from .constraints import bound_constraints as bound_constraints
from .constraints import check_constraints as check_constraints
from .constraints import project_onto_constraints as project_onto_constraints
from .model import AbstractConstraint as AbstractConstraint
from .model import BallConstraint as BallConstraint
from .model import ContactConstraint as ContactConstraint
from .model import CouplerConstraint as CouplerConstraint
from .model import CustomConstraint as CustomConstraint
from .model import DistanceConstraint as DistanceConstraint
from .model import LockConstraint as LockConstraint
from .model import LoopConstraint as LoopConstraint
from .model import WeldConstraint as WeldConstraint
from .contact import ContactResults as ContactResults
from .contact import contact_penalty_method_time_scale as contact_penalty_method_time_scale
from .dynamics import ForwardDynamicsDerivatives as ForwardDynamicsDerivatives
from .dynamics import InverseDynamicsDerivatives as InverseDynamicsDerivatives
from .dynamics import forward_dynamics_derivatives as forward_dynamics_derivatives
from .dynamics import inverse_dynamics_derivatives as inverse_dynamics_derivatives
from .dynamics import (
    bias_center_of_mass_translational_acceleration as bias_center_of_mass_translational_acceleration,
)
from .dynamics import bias_term as bias_term
from .dynamics import center_of_mass_position_in_world as center_of_mass_position_in_world
from .dynamics import (
    center_of_mass_translational_acceleration_in_world as center_of_mass_translational_acceleration_in_world,
)
from .dynamics import (
    center_of_mass_translational_velocity_in_world as center_of_mass_translational_velocity_in_world,
)
from .dynamics import forward_dynamics as forward_dynamics
from .dynamics import inverse_dynamics as inverse_dynamics
from .dynamics import (
    jacobian_center_of_mass_translational_velocity as jacobian_center_of_mass_translational_velocity,
)
from .dynamics import kinetic_energy as kinetic_energy
from .dynamics import mass_matrix as mass_matrix
from .dynamics import mass_matrix_via_inverse_dynamics as mass_matrix_via_inverse_dynamics
from .dynamics import potential_energy as potential_energy
from .dynamics import spatial_inertia as spatial_inertia
from .dynamics import spatial_momentum_in_world_about_point as spatial_momentum_in_world_about_point
from .dynamics import total_mass as total_mass
from .loops import as_one_kernel as as_one_kernel
from .errors import ModelError as ModelError
from .errors import ModelWarning as ModelWarning
from .errors import ParseError as ParseError
from .errors import UnsupportedError as UnsupportedError
from .forces import DoorHinge as DoorHinge
from .forces import DoorHingeConfig as DoorHingeConfig
from .forces import ForceElementPower as ForceElementPower
from .forces import LinearBushingRollPitchYaw as LinearBushingRollPitchYaw
from .forces import LinearSpringDamper as LinearSpringDamper
from .forces import MultibodyForces as MultibodyForces
from .forces import PrismaticSpring as PrismaticSpring
from .forces import RevoluteSpring as RevoluteSpring
from .forces import add_in_force as add_in_force
from .forces import add_in_force_in_world as add_in_force_in_world
from .forces import add_in_one_force as add_in_one_force
from .forces import conservative_power as conservative_power
from .forces import force_element_power as force_element_power
from .forces import force_elements_contribution as force_elements_contribution
from .forces import force_in_world as force_in_world
from .forces import generalized_forces as generalized_forces
from .forces import gravity_generalized_forces as gravity_generalized_forces
from .forces import non_conservative_power as non_conservative_power
from .geometry import Box as Box
from .geometry import Capsule as Capsule
from .geometry import Convex as Convex
from .geometry import Cylinder as Cylinder
from .geometry import Ellipsoid as Ellipsoid
from .geometry import Geometry as Geometry
from .geometry import HalfSpace as HalfSpace
from .geometry import Mesh as Mesh
from .geometry import ProximityProperties as ProximityProperties
from .geometry import Sphere as Sphere
from .joints import AbstractJoint as AbstractJoint
from .joints import BallRpyJoint as BallRpyJoint
from .joints import PlanarJoint as PlanarJoint
from .joints import PrismaticJoint as PrismaticJoint
from .joints import QuaternionFloatingJoint as QuaternionFloatingJoint
from .joints import RevoluteJoint as RevoluteJoint
from .joints import RpyFloatingJoint as RpyFloatingJoint
from .joints import ScrewJoint as ScrewJoint
from .joints import UniversalJoint as UniversalJoint
from .joints import WeldJoint as WeldJoint
from .kinematics import AccelerationKinematics as AccelerationKinematics
from .kinematics import PositionKinematics as PositionKinematics
from .kinematics import VelocityKinematics as VelocityKinematics
from .kinematics import bias_spatial_acceleration as bias_spatial_acceleration
from .kinematics import bias_translational_acceleration as bias_translational_acceleration
from .kinematics import (
    body_center_of_mass_translational_acceleration_in_world as body_center_of_mass_translational_acceleration_in_world,
)
from .kinematics import (
    body_center_of_mass_translational_velocity_in_world as body_center_of_mass_translational_velocity_in_world,
)
from .kinematics import body_pose_in_world as body_pose_in_world
from .kinematics import body_poses_in_world as body_poses_in_world
from .kinematics import body_spatial_acceleration_in_world as body_spatial_acceleration_in_world
from .kinematics import body_spatial_velocities_in_world as body_spatial_velocities_in_world
from .kinematics import body_spatial_velocity_in_world as body_spatial_velocity_in_world
from .kinematics import calc_acceleration_kinematics as acceleration_kinematics
from .kinematics import calc_position_kinematics as position_kinematics
from .kinematics import calc_velocity_kinematics as velocity_kinematics
from .kinematics import difference_configuration as difference_configuration
from .kinematics import integrate_configuration as integrate_configuration
from .kinematics import is_velocity_equal_to_qdot as is_velocity_equal_to_qdot
from .kinematics import jacobian_angular_velocity as jacobian_angular_velocity
from .kinematics import jacobian_position_vector as jacobian_position_vector
from .kinematics import jacobian_spatial_velocity as jacobian_spatial_velocity
from .kinematics import jacobian_translational_velocity as jacobian_translational_velocity
from .kinematics import points_positions as points_positions
from .kinematics import qdot_to_velocity as qdot_to_velocity
from .kinematics import qdot_to_velocity_matrix as qdot_to_velocity_matrix
from .kinematics import relative_rotation_matrix as relative_rotation_matrix
from .kinematics import relative_transform as relative_transform
from .kinematics import spatial_accelerations_from_vdot as spatial_accelerations_from_vdot
from .kinematics import velocity_to_qdot as velocity_to_qdot
from .kinematics import velocity_to_qdot_matrix as velocity_to_qdot_matrix
from . import reference_models as reference_models
from .model import AbstractForceElement as AbstractForceElement
from .model import ActuatorInfo as ActuatorInfo
from .model import BodyInfo as BodyInfo
from .model import FrameInfo as FrameInfo
from .model import JointInfo as JointInfo
from .model import ModelInstanceInfo as ModelInstanceInfo
from .model import MultibodyModel as MultibodyModel
from .model import is_body_locked as is_body_locked
from .model import is_joint_locked as is_joint_locked
from .model import lock_body as lock_body
from .model import constraint_active_status as constraint_active_status
from .model import set_constraint_active_status as set_constraint_active_status
from .model import joint_positions as joint_positions
from .model import joint_velocities as joint_velocities
from .model import lock_joint as lock_joint
from .model import unlock_body as unlock_body
from .model import unlock_joint as unlock_joint
from .model import MultibodyPlant as MultibodyPlant
from .model import astype as astype
from .parsing import Parser as Parser
from .parsing import load as load
from .spatial import RigidTransform as RigidTransform
from .spatial import RotationalInertia as RotationalInertia
from .spatial import SpatialInertia as SpatialInertia
from .spatial import UnitInertia as UnitInertia
from .model import mass as mass
from .model import set_mass as set_mass
from .model import center_of_mass_in_body_frame as center_of_mass_in_body_frame
from .model import set_center_of_mass_in_body_frame as set_center_of_mass_in_body_frame
from .model import (
    set_center_of_mass_in_body_frame_and_preserve_central_inertia as set_center_of_mass_in_body_frame_and_preserve_central_inertia,  # noqa: E501
)
from .model import spatial_inertia_in_body_frame as spatial_inertia_in_body_frame
from .model import set_spatial_inertia_in_body_frame as set_spatial_inertia_in_body_frame
from .model import frame_pose as frame_pose
from .model import set_frame_pose as set_frame_pose
from .model import set_joint_axis as set_joint_axis
from .model import set_joint_damping as set_joint_damping
from .model import set_joint_friction as set_joint_friction
from .model import controller_gains as controller_gains
from .model import has_controller as has_controller
from .model import set_controller_gains as set_controller_gains
from .model import set_effort_limit as set_effort_limit
from .model import set_position_limits as set_position_limits
from .model import set_rotor_inertia as set_rotor_inertia
from .model import set_gear_ratio as set_gear_ratio
from .model import set_mimic as set_mimic
from .model import set_gravity as set_gravity
from .model import set_time_step as set_time_step
from .model import CollisionGeometryRecord as CollisionGeometryRecord
from .model import CollisionParameters as CollisionParameters
from .model import collision_geometry_pose as collision_geometry_pose
from .model import collision_geometry_size as collision_geometry_size
from .model import collision_geometry_vertices as collision_geometry_vertices
from .model import friction as friction
from .model import set_collision_geometry_pose as set_collision_geometry_pose
from .model import set_collision_geometry_size as set_collision_geometry_size
from .model import set_collision_geometry_vertices as set_collision_geometry_vertices
from .model import set_friction as set_friction
from .model import set_penetration_allowance as set_penetration_allowance
from .model import set_proximity_properties as set_proximity_properties
from .model import set_sap_near_rigid_threshold as set_sap_near_rigid_threshold
from .model import set_contact_smoothing_length as set_contact_smoothing_length
from .model import set_stiction_tolerance as set_stiction_tolerance
from .simulation import AppliedSpatialForces as AppliedSpatialForces
from .simulation import Inputs as Inputs
from .simulation import Outputs as Outputs
from .simulation import State as State
from .simulation import Trajectory as Trajectory
from .simulation import actuation_matrix as actuation_matrix
from .simulation import default_state as default_state
from .simulation import implicit_time_derivatives_residual as implicit_time_derivatives_residual
from .simulation import outputs as outputs
from .simulation import random_state as random_state
from .simulation import rollout as rollout
from .simulation import simulate as simulate
from .simulation import step as step
from .simulation import time_derivatives as time_derivatives
from .model import set_masses as set_masses
from .model import default_free_body_pose as default_free_body_pose
from .model import default_positions as default_positions
from .model import set_default_free_body_pose as set_default_free_body_pose
from .model import set_default_positions as set_default_positions
from .model import set_joint_default_positions as set_joint_default_positions
from .model import actuation_from_array as actuation_from_array
from .model import positions_from_array as positions_from_array
from .model import set_actuation_in_array as set_actuation_in_array
from .model import set_positions_in_array as set_positions_in_array
from .model import set_velocities_in_array as set_velocities_in_array
from .model import velocities_from_array as velocities_from_array
from .model import AbstractDistribution as AbstractDistribution
from .model import GaussianDistribution as GaussianDistribution
from .model import UniformDistribution as UniformDistribution
from .model import UniformRotation as UniformRotation
from .model import set_free_body_random_rotation_distribution as set_free_body_random_rotation_distribution
from .model import (
    set_free_body_random_rotation_distribution_to_uniform as set_free_body_random_rotation_distribution_to_uniform,
)
from .model import set_free_body_random_translation_distribution as set_free_body_random_translation_distribution
from .model import set_joint_random_position_distribution as set_joint_random_position_distribution
from .model import set_joint_random_velocity_distribution as set_joint_random_velocity_distribution
from .simulation import free_body_pose as free_body_pose
from .simulation import free_body_spatial_velocity as free_body_spatial_velocity
from .simulation import set_free_body_pose as set_free_body_pose
from .simulation import set_free_body_pose_in_anchored_frame as set_free_body_pose_in_anchored_frame
from .simulation import set_free_body_pose_in_world_frame as set_free_body_pose_in_world_frame
from .simulation import set_free_body_spatial_velocity as set_free_body_spatial_velocity
from .simulation import (
    set_free_body_spatial_velocity_in_anchored_frame as set_free_body_spatial_velocity_in_anchored_frame,
)
from .simulation import set_free_body_spatial_velocity_in_world_frame as set_free_body_spatial_velocity_in_world_frame
from .simulation import random_state_within_limits as random_state_within_limits
from .simulation import actuation_matrix_pseudoinverse as actuation_matrix_pseudoinverse
from .simulation import actuator_selector_matrix as actuator_selector_matrix
from .simulation import state_selector_matrix as state_selector_matrix
from .simulation import positions as positions
from .simulation import positions_and_velocities as positions_and_velocities
from .simulation import set_positions as set_positions
from .simulation import set_positions_and_velocities as set_positions_and_velocities
from .simulation import set_velocities as set_velocities
from .simulation import velocities as velocities
from .visualization import animate as show
