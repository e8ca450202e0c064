"""BUILD → FINALIZE: the mutable plant, and the frozen model the functions take."""

from .abstract_force_element import AbstractForceElement as AbstractForceElement
from .elements import Body as Body
from .elements import Frame as Frame
from .elements import JointActuator as JointActuator
from .elements import near_matches as near_matches
from .load_report import IGNORED as IGNORED
from .load_report import KEPT as KEPT
from .load_report import RECORDED as RECORDED
from .load_report import REPAIRED as REPAIRED
from .load_report import USED as USED
from .load_report import LoadReport as LoadReport
from .load_report import ReportEntry as ReportEntry
from .multibody_model import ActuatorInfo as ActuatorInfo
from .multibody_model import JointInfo as JointInfo
from .multibody_model import MultibodyModel as MultibodyModel
from .multibody_model import astype as astype
from .multibody_plant import MultibodyPlant as MultibodyPlant
from .parameters import MultibodyParameters as MultibodyParameters
from .setters import mass as mass
from .setters import set_mass as set_mass
from .setters import center_of_mass_in_body_frame as center_of_mass_in_body_frame
from .setters import set_center_of_mass_in_body_frame as set_center_of_mass_in_body_frame
from .setters import (
    set_center_of_mass_in_body_frame_and_preserve_central_inertia as set_center_of_mass_in_body_frame_and_preserve_central_inertia,  # noqa: E501
)
from .setters import spatial_inertia_in_body_frame as spatial_inertia_in_body_frame
from .setters import set_spatial_inertia_in_body_frame as set_spatial_inertia_in_body_frame
from .setters import frame_pose as frame_pose
from .setters import set_frame_pose as set_frame_pose
from .setters import set_joint_axis as set_joint_axis
from .setters import set_joint_damping as set_joint_damping
from .setters import set_joint_friction as set_joint_friction
from .setters import set_default_positions as set_default_positions
from .setters import set_controller_gains as set_controller_gains
from .setters import set_effort_limit as set_effort_limit
from .setters import set_rotor_inertia as set_rotor_inertia
from .setters import set_gear_ratio as set_gear_ratio
from .setters import set_gravity as set_gravity
from .setters import set_time_step as set_time_step
from .setters import set_masses as set_masses
