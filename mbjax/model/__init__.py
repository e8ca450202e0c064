"""The frozen model that mbjax's functions take: structure, numbers, constraints, queries and setters."""

from .abstract_force_element import AbstractForceElement as AbstractForceElement
from .collision_parameters import CollisionParameters as CollisionParameters
from .collision_parameters import GeometryParameters as GeometryParameters
from .collision_setters import collision_geometry_pose as collision_geometry_pose
from .collision_setters import collision_geometry_size as collision_geometry_size
from .collision_setters import collision_geometry_vertices as collision_geometry_vertices
from .collision_setters import friction as friction
from .collision_setters import set_collision_geometry_pose as set_collision_geometry_pose
from .collision_setters import set_collision_geometry_size as set_collision_geometry_size
from .collision_setters import set_collision_geometry_vertices as set_collision_geometry_vertices
from .collision_setters import set_friction as set_friction
from .collision_setters import set_penetration_allowance as set_penetration_allowance
from .collision_setters import set_proximity_properties as set_proximity_properties
from .collision_setters import set_sap_near_rigid_threshold as set_sap_near_rigid_threshold
from .collision_setters import set_contact_smoothing_length as set_contact_smoothing_length
from .collision_setters import set_stiction_tolerance as set_stiction_tolerance
from .contact_layout import CollisionGeometryRecord as CollisionGeometryRecord
from .contact_layout import ContactLayout as ContactLayout
from .elements import Body as Body
from .elements import Frame as Frame
from .elements import JointActuator as JointActuator
from .geometry_selection import GeometryNames as GeometryNames
from .geometry_selection import checked_pairs as checked_pairs
from .geometry_selection import select_pairs as select_pairs
from .load_report import IGNORED as IGNORED
from .load_report import KEPT as KEPT
from .load_report import RECORDED as RECORDED
from .load_report import REPAIRED as REPAIRED
from .load_report import USED as USED
from .load_report import LoadReport as LoadReport
from .load_report import ReportEntry as ReportEntry
from .known_coordinates import require_finite as require_finite
from .known_coordinates import require_positions as require_positions
from .known_coordinates import require_velocities as require_velocities
from .leaf_rules import COLLISION_RULES as COLLISION_RULES
from .leaf_rules import ELEMENT_RULES as ELEMENT_RULES
from .leaf_rules import ORDERED_LIMITS as ORDERED_LIMITS
from .leaf_rules import PARAMETER_RULES as PARAMETER_RULES
from .leaf_setting import checked_pose as checked_pose
from .leaf_setting import set_rows as set_rows
from .locking import is_body_locked as is_body_locked
from .locking import is_joint_locked as is_joint_locked
from .locking import lock_body as lock_body
from .locking import lock_joint as lock_joint
from .locking import locked_velocities as locked_velocities
from .locking import unlock_body as unlock_body
from .locking import unlock_joint as unlock_joint
from .locking import zero_where_locked as zero_where_locked
from .lookup import near_matches as near_matches
from .mimic_relations import actuator_ratios as actuator_ratios
from .mimic_relations import all_joint_positions as all_joint_positions
from .mimic_relations import all_joint_velocities as all_joint_velocities
from .mimic_relations import direction_ratios as direction_ratios
from .mimic_relations import sum_joint_coefficients as sum_joint_coefficients
from .mimic_relations import sum_joint_forces as sum_joint_forces
from .mimics import joint_positions as joint_positions
from .mimics import joint_velocities as joint_velocities
from .mimics import require_own_coordinates as require_own_coordinates
from .mimics import set_mimic as set_mimic
from .model_layout import ActuatorInfo as ActuatorInfo
from .model_layout import BodyInfo as BodyInfo
from .model_layout import FrameInfo as FrameInfo
from .model_layout import JointInfo as JointInfo
from .array_summary import number_text as number_text
from .array_summary import range_text as range_text
from .array_summary import summary_of as summary_of
from .model_layout import ModelInstanceInfo as ModelInstanceInfo
from .model_status import ModelStatus as ModelStatus
from .model_status import model_status as model_status
from .number_findings import find_numbers as find_numbers
from .number_findings import leaf_name as leaf_name
from .number_findings import sentences as sentences
from .multibody_model import MultibodyModel as MultibodyModel
from .multibody_model import without_unread_geometry as without_unread_geometry
from .multibody_model import astype as astype
from .parameters import MultibodyParameters as MultibodyParameters
from .setters import mass as mass
from .setters import set_mass as set_mass
from .setters import center_of_mass_in_body_frame as center_of_mass_in_body_frame
from .setters import set_center_of_mass_in_body_frame as set_center_of_mass_in_body_frame
from .setters import (
    set_center_of_mass_in_body_frame_and_preserve_central_inertia as set_center_of_mass_in_body_frame_and_preserve_central_inertia,
)
from .setters import spatial_inertia_in_body_frame as spatial_inertia_in_body_frame
from .setters import set_spatial_inertia_in_body_frame as set_spatial_inertia_in_body_frame
from .setters import frame_pose as frame_pose
from .setters import set_frame_pose as set_frame_pose
from .setters import set_joint_axis as set_joint_axis
from .setters import set_joint_damping as set_joint_damping
from .setters import set_joint_friction as set_joint_friction
from .setters import controller_gains as controller_gains
from .setters import has_controller as has_controller
from .setters import set_controller_gains as set_controller_gains
from .setters import set_effort_limit as set_effort_limit
from .setters import set_position_limits as set_position_limits
from .setters import set_rotor_inertia as set_rotor_inertia
from .setters import set_gear_ratio as set_gear_ratio
from .setters import set_gravity as set_gravity
from .setters import set_time_step as set_time_step
from .setters import set_masses as set_masses
from .default_positions import default_free_body_pose as default_free_body_pose
from .default_positions import default_positions as default_positions
from .default_positions import set_default_free_body_pose as set_default_free_body_pose
from .default_positions import set_default_positions as set_default_positions
from .default_positions import set_joint_default_positions as set_joint_default_positions
from .free_joints import free_joint as free_joint
from .free_joints import pose_of_positions as pose_of_positions
from .free_joints import positions_of_pose as positions_of_pose
from .instance_arrays import actuation_from_array as actuation_from_array
from .instance_arrays import as_array as as_array
from .instance_arrays import as_coordinates as as_coordinates
from .instance_arrays import positions_from_array as positions_from_array
from .instance_arrays import set_actuation_in_array as set_actuation_in_array
from .instance_arrays import set_positions_in_array as set_positions_in_array
from .instance_arrays import set_velocities_in_array as set_velocities_in_array
from .instance_arrays import velocities_from_array as velocities_from_array
from .random_distributions import AbstractDistribution as AbstractDistribution
from .random_distributions import GaussianDistribution as GaussianDistribution
from .random_distributions import UniformDistribution as UniformDistribution
from .random_distributions import UniformRotation as UniformRotation
from .random_distributions import (
    set_free_body_random_rotation_distribution as set_free_body_random_rotation_distribution,
)
from .random_distributions import (
    set_free_body_random_rotation_distribution_to_uniform as set_free_body_random_rotation_distribution_to_uniform,
)
from .random_distributions import (
    set_free_body_random_translation_distribution as set_free_body_random_translation_distribution,
)
from .random_distributions import set_joint_random_position_distribution as set_joint_random_position_distribution
from .random_distributions import set_joint_random_velocity_distribution as set_joint_random_velocity_distribution
from .abstract_constraint import AbstractConstraint as AbstractConstraint
from .abstract_constraint import find_bodies as find_bodies
from .abstract_constraint import resolve_constraints as resolve_constraints
from .abstract_constraint import unknown_constraint as unknown_constraint
from .abstract_constraint import with_names as with_names
from .constraint_elements import BallConstraint as BallConstraint
from .constraint_elements import ContactConstraint as ContactConstraint
from .constraint_elements import CouplerConstraint as CouplerConstraint
from .constraint_elements import CustomConstraint as CustomConstraint
from .constraint_elements import DistanceConstraint as DistanceConstraint
from .constraint_elements import LockConstraint as LockConstraint
from .constraint_elements import LoopConstraint as LoopConstraint
from .constraint_elements import WeldConstraint as WeldConstraint
from .constraint_status import constraint_active_status as constraint_active_status
from .constraint_status import set_constraint_active_status as set_constraint_active_status
