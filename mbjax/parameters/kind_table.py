"""All kinds of numbers that have names, and the table of them."""

from mbjax.model import MultibodyModel

from .named_numbers import (
    XYZ,
    of_actuators,
    of_bodies,
    of_deformables,
    of_deformables_with_dissipation,
    of_frames,
    of_geometries,
    of_geometry_places,
    of_joints,
    of_materials,
    of_positions,
    of_sizes,
    of_the_time_step,
    of_the_whole,
)
from .number_kinds import (
    CenterOfMassKind,
    FrameRotationKind,
    JointFrictionKind,
    NumberKind,
    SecondMomentFactors,
    SurfaceFrictionKind,
    element_kinds,
)

TORQUE, DAMPING, INERTIA = "N m or N", "N m s/rad or N s/m", "kg m² or kg"
OF_MODEL, OF_CONTACT, OF_MATERIAL = ("parameters",), ("collision",), ("deformables",)
OF_DEFORMABLE = "of a deformable body, or of each of its elements"

# In the order in which they are written: an inertia is about the centre of mass.
KINDS = (
    NumberKind("mass", "kg", (*OF_MODEL, "body_mass"), of_bodies(1), "of a body; its inertia scales with it"),
    CenterOfMassKind(
        "center_of_mass", "m", (*OF_MODEL, "body_com"), of_bodies(3, XYZ),
        "in the body's frame; the inertia about it stays",
    ),
    SecondMomentFactors(
        "inertia", "factors", (*OF_MODEL, "body_unit_inertia"), of_bodies(6, XYZ),
        "how far a body's mass spreads along x, y and z; any factor > 0 leaves it physical",
    ),
    JointFrictionKind("joint_friction", TORQUE, (*OF_MODEL, "joint_friction"), of_joints, "Coulomb friction"),
    NumberKind("joint_damping", DAMPING, (*OF_MODEL, "joint_damping"), of_joints, "viscous damping"),
    NumberKind(
        "friction_velocity", "rad/s or m/s", (*OF_MODEL, "friction_velocity"), of_the_whole("world", ("",)),
        "at which smooth Coulomb friction has reached 71 %",
    ),
    NumberKind("armature", INERTIA, (*OF_MODEL, "joint_armature"), of_joints, "inertia on the diagonal of M"),
    NumberKind("rotor_inertia", INERTIA, (*OF_MODEL, "rotor_inertia"), of_actuators, "of a motor, before its gear"),
    NumberKind("gear_ratio", "", (*OF_MODEL, "gear_ratio"), of_actuators, "rotor turns per joint turn"),
    NumberKind("effort_limit", TORQUE, (*OF_MODEL, "effort_limit"), of_actuators, "largest effort of an actuator"),
    NumberKind("kp", "N m/rad or N/m", (*OF_MODEL, "proportional_gain"), of_actuators, "gain of a PD controller"),
    NumberKind("kd", DAMPING, (*OF_MODEL, "derivative_gain"), of_actuators, "gain of a PD controller"),
    NumberKind(
        "frame_translation", "m", (*OF_MODEL, "frame_translation"), of_frames(3),
        "place of a frame; a joint's are `joint_parent` and `joint_child`",
    ),
    FrameRotationKind(
        "frame_rotation", "rad", (*OF_MODEL, "frame_quaternion"), of_frames(4),
        "rotation vector from the model's pose, in the frame; zero in the model",
    ),
    NumberKind("default_position", "rad or m", (*OF_MODEL, "default_positions"), of_positions, "where episodes start"),
    NumberKind("gravity", "m/s²", (*OF_MODEL, "gravity"), of_the_whole("world", XYZ), "in the world's frame"),
    NumberKind("time_step", "s", (*OF_MODEL, "time_step"), of_the_time_step, "of a discrete model"),
    SurfaceFrictionKind(
        "friction", "", (*OF_CONTACT, "static_friction"), of_geometries(None),
        "coefficient of a surface; the dynamic one keeps its ratio to the static one",
    ),
    NumberKind(
        "stiffness", "N/m", (*OF_CONTACT, "stiffness"), of_geometries("stiffness_index"), "of a surface that has one"
    ),
    NumberKind(
        "dissipation", "s/m", (*OF_CONTACT, "hunt_crossley_dissipation"), of_geometries("dissipation_index"),
        "Hunt–Crossley's, of a surface that has one",
    ),
    NumberKind(
        "hydroelastic_modulus", "Pa", (*OF_CONTACT, "hydroelastic_modulus"), of_geometries("modulus_index"),
        "of a surface that yields in hydroelastic contact",
    ),
    NumberKind(
        "relaxation_time", "s", (*OF_CONTACT, "relaxation_time"), of_geometries(None), "of a surface's contacts"
    ),
    NumberKind("geometry_size", "m", (*OF_CONTACT, "size"), of_sizes, "lengths of a collision geometry's shape"),
    NumberKind(
        "geometry_translation", "m", (*OF_CONTACT, "translation"), of_geometry_places,
        "place of a collision geometry in its body",
    ),
    NumberKind("youngs_modulus", "Pa", (*OF_MATERIAL, "youngs_modulus"), of_materials("youngs_modulus"), OF_DEFORMABLE),
    NumberKind("poissons_ratio", "", (*OF_MATERIAL, "poissons_ratio"), of_materials("poissons_ratio"), OF_DEFORMABLE),
    NumberKind("mass_density", "kg/m³", (*OF_MATERIAL, "mass_density"), of_materials("mass_density"), OF_DEFORMABLE),
    NumberKind(
        "mass_damping", "1/s", (*OF_MATERIAL, "mass_damping"), of_materials("mass_damping"),
        "Rayleigh's, times the mass matrix; " + OF_DEFORMABLE,
    ),
    NumberKind(
        "stiffness_damping", "s", (*OF_MATERIAL, "stiffness_damping"), of_materials("stiffness_damping"),
        "Rayleigh's, times the stiffness matrix; " + OF_DEFORMABLE,
    ),
    NumberKind(
        "deformable_friction", "", (*OF_MATERIAL, "dynamic_friction"), of_deformables, "of a deformable body"
    ),
    NumberKind(
        "deformable_relaxation_time", "s", (*OF_MATERIAL, "relaxation_time"), of_deformables,
        "of a deformable body's contacts",
    ),
    NumberKind(
        "deformable_dissipation", "s/m", (*OF_MATERIAL, "hunt_crossley_dissipation"), of_deformables_with_dissipation,
        "Hunt–Crossley's, of a deformable body that has one",
    ),
)  # fmt: skip
GROUPS = {"body": ("mass", "center_of_mass", "inertia")}


def kinds_of(model: MultibodyModel) -> tuple[NumberKind, ...]:
    """All kinds, with those of the model's force elements."""
    return (*KINDS, *element_kinds(model))
