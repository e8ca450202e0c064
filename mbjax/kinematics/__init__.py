"""Kinematics: poses and motions of bodies from q, v and v̇, one record per level, and Jacobians."""

from mbjax.model import as_coordinates as as_coordinates

from .acceleration_kinematics import AccelerationKinematics as AccelerationKinematics
from .acceleration_kinematics import calc_acceleration_kinematics as calc_acceleration_kinematics
from .bodies import body_poses_and_velocities as body_poses_and_velocities
from .bodies import body_poses_in_world as body_poses_in_world
from .bodies import body_spatial_velocities_in_world as body_spatial_velocities_in_world
from .bodies import calc_body_accelerations as calc_body_accelerations
from .bodies import calc_body_offsets as calc_body_offsets
from .bodies import calc_body_velocities as calc_body_velocities
from .bodies import spatial_accelerations_from_vdot as spatial_accelerations_from_vdot
from .coordinate_maps import difference_configuration as difference_configuration
from .coordinate_maps import is_velocity_equal_to_qdot as is_velocity_equal_to_qdot
from .coordinate_maps import integrate_configuration as integrate_configuration
from .coordinate_maps import qdot_to_velocity as qdot_to_velocity
from .coordinate_maps import qdot_to_velocity_matrix as qdot_to_velocity_matrix
from .coordinate_maps import velocity_to_qdot as velocity_to_qdot
from .coordinate_maps import velocity_to_qdot_matrix as velocity_to_qdot_matrix
from .direction_rates import calc_direction_rates as calc_direction_rates
from .direction_rates import calc_hinge_changes as calc_hinge_changes
from .direction_rates import calc_hinge_map_rate_in_F as calc_hinge_map_rate_in_F
from .direction_rates import motions_within_tree as motions_within_tree
from .direction_rates import velocities_of_origins as velocities_of_origins
from .frames import calc_frame_pose as calc_frame_pose
from .frames import points_positions as points_positions
from .frames import relative_rotation_matrix as relative_rotation_matrix
from .frames import relative_transform as relative_transform
from .joint_groups import joint_groups as joint_groups
from .joint_rows import JointStepRows as JointStepRows
from .joint_rows import OtherPoses as OtherPoses
from .joint_rows import Pose as Pose
from .joint_rows import axis_kinds as axis_kinds
from .joint_rows import calc_advances as calc_advances
from .joint_rows import calc_joint_rows as calc_joint_rows
from .joint_rows import pose_across as pose_across
from .joint_rows import q_indices as q_indices
from .joint_shifts import turning as turning
from .jacobians import bias_spatial_acceleration as bias_spatial_acceleration
from .jacobians import bias_translational_acceleration as bias_translational_acceleration
from .jacobians import calc_point_jacobian as calc_point_jacobian
from .jacobians import jacobian_angular_velocity as jacobian_angular_velocity
from .jacobians import jacobian_position_vector as jacobian_position_vector
from .jacobians import jacobian_spatial_velocity as jacobian_spatial_velocity
from .jacobians import jacobian_translational_velocity as jacobian_translational_velocity
from .body_placement import BodyPlacement as BodyPlacement
from .body_placement import MobodInertia as MobodInertia
from .body_placement import all_feel_gravity as all_feel_gravity
from .body_placement import bodies_with_gravity as bodies_with_gravity
from .body_placement import calc_body_placement as calc_body_placement
from .body_placement import calc_inertia_in_mobod as calc_inertia_in_mobod
from .model_placement import calc_hinge_maps_in_P as calc_hinge_maps_in_P
from .model_placement import calc_model_placement as calc_model_placement
from .model_placement import inertia_rows_of_mobods as inertia_rows_of_mobods
from .model_placement import only_if as only_if
from .recursive_poses import calc_poses_of_bodies as calc_poses_of_bodies
from .recursive_poses import cross_joint as cross_joint
from .placed_model import for_worlds_of as for_worlds_of
from .placed_model import placed as placed
from .position_kinematics import calc_position_kinematics as calc_position_kinematics
from .rigid_body import (
    body_center_of_mass_translational_acceleration_in_world as body_center_of_mass_translational_acceleration_in_world,
)
from .rigid_body import (
    body_center_of_mass_translational_velocity_in_world as body_center_of_mass_translational_velocity_in_world,
)
from .rigid_body import body_pose_in_world as body_pose_in_world
from .rigid_body import body_spatial_acceleration_in_world as body_spatial_acceleration_in_world
from .rigid_body import body_spatial_velocity_in_world as body_spatial_velocity_in_world
from .velocity_kinematics import VelocityKinematics as VelocityKinematics
from .velocity_kinematics import calc_velocity_kinematics as calc_velocity_kinematics
from .tree_poses import JointShift as JointShift
from .tree_poses import PositionKinematics as PositionKinematics
from .tree_poses import calc_body_poses as calc_body_poses
from .tree_poses import calc_hinge_maps as calc_hinge_maps
from .tree_poses import calc_joint_kinematics as calc_joint_kinematics
from .with_placement import PlacedModel as PlacedModel
from .with_placement import placement_of as placement_of
from .with_placement import without_placement as without_placement
