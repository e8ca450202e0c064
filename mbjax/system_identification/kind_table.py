"""All kinds of parameters by name; `body` stands for the mass, the centre of mass and the inertia of a body."""

from mbjax.model import MultibodyModel

from .kinds import XYZ, Kind, of_actuators, of_bodies, of_frames, of_geometries, of_joints, of_the_whole, of_velocities
from .special_kinds import (
    CenterOfMassKind,
    FrameRotationKind,
    InertiaKind,
    SurfaceFrictionKind,
    element_kinds,
)

PARAMETERS, COLLISION = ("model", "parameters"), ("model", "collision")
SIX = ("xx", "yy", "zz", "xy", "xz", "yz")
TORQUE, DAMPING, INERTIA = "N m or N", "N m s/rad or N s/m", "kg m² or kg"

# In the order in which they are written: an inertia is about the centre of mass.
KINDS = (
    Kind("mass", "kg", (*PARAMETERS, "body_mass"), of_bodies(1), words="mass of a body"),
    CenterOfMassKind(
        "center_of_mass", "m", (*PARAMETERS, "body_com"), of_bodies(3, XYZ), 0.05, "centre of mass in the body's frame"
    ),
    InertiaKind(
        "inertia", "kg m²", (*PARAMETERS, "body_unit_inertia"), of_bodies(6, SIX), 1.0, "about the centre of mass"
    ),
    Kind("joint_friction", TORQUE, (*PARAMETERS, "joint_friction"), of_joints, 0.1, "Coulomb friction"),
    Kind("joint_damping", DAMPING, (*PARAMETERS, "joint_damping"), of_joints, 0.1, "viscous damping"),
    Kind("armature", INERTIA, (*PARAMETERS, "joint_armature"), of_joints, 0.01, "inertia on the diagonal of M"),
    Kind("rotor_inertia", INERTIA, (*PARAMETERS, "rotor_inertia"), of_actuators, 1e-4, "of a motor, before its gear"),
    Kind("gear_ratio", "", (*PARAMETERS, "gear_ratio"), of_actuators, 1.0, "rotor turns per joint turn"),
    Kind("effort_limit", TORQUE, (*PARAMETERS, "effort_limit"), of_actuators, 10.0, "largest effort of an actuator"),
    Kind("kp", "N m/rad or N/m", (*PARAMETERS, "proportional_gain"), of_actuators, 10.0, "gain of a PD controller"),
    Kind("kd", DAMPING, (*PARAMETERS, "derivative_gain"), of_actuators, 1.0, "gain of a PD controller"),
    Kind(
        "frame_translation", "m", (*PARAMETERS, "frame_translation"), of_frames(3), 0.01,
        "place of a frame; a joint's are joint_parent and joint_child",
    ),
    FrameRotationKind(
        "frame_rotation", "rad", (*PARAMETERS, "frame_quaternion"), of_frames(4), 0.05, "turn from the model's pose"
    ),
    Kind("gravity", "m/s²", (*PARAMETERS, "gravity"), of_the_whole("world", XYZ), 1.0, "in the world's frame"),
    SurfaceFrictionKind(
        "friction", "", (*COLLISION, "static_friction"), of_geometries(None), 0.1, "friction coefficient of a surface"
    ),
    Kind("stiffness", "N/m", (*COLLISION, "stiffness"), of_geometries("stiffness_index"), 1e3, "of a surface's points"),
    Kind(
        "dissipation", "s/m", (*COLLISION, "hunt_crossley_dissipation"), of_geometries("dissipation_index"), 1.0,
        "Hunt-Crossley's, of a surface",
    ),
    Kind("relaxation_time", "s", (*COLLISION, "relaxation_time"), of_geometries(None), 0.01, "of a surface's contacts"),
    Kind("position_bias", "rad or m", ("sensors", "position_bias"), of_velocities, 0.01, "a joint's offset"),
    Kind("velocity_bias", "rad/s or m/s", ("sensors", "velocity_bias"), of_velocities, 0.01, "of a sensor"),
    Kind("effort_gain", "", ("sensors", "effort_gain"), of_velocities, 0.1, "measured over true, a motor constant"),
    Kind("effort_bias", TORQUE, ("sensors", "effort_bias"), of_velocities, 0.1, "of a sensor"),
    Kind("delay", "s", ("sensors", "effort_delay"), of_the_whole("effort", ("",)), 0.01, "of measured efforts"),
)  # fmt: skip
GROUPS = {"body": ("mass", "center_of_mass", "inertia")}


def kinds_of(model: MultibodyModel) -> tuple[Kind, ...]:
    """All kinds, with those of the model's force elements."""
    return KINDS + tuple(kind for kind, _ in element_kinds(model))
