"""Names, units and rules of a model's numbers: one line per leaf, shared by all checks."""

import dataclasses

from mbjax.number_rules import (
    DIRECTION,
    FINITE,
    LARGEST,
    LOWER_LIMIT,
    NOT_NEGATIVE,
    POSITIVE,
    POSITIVE_OR_INFINITE,
    UPPER_LIMIT,
    NumberRule,
)


@dataclasses.dataclass(frozen=True)
class LeafRule:
    """A number's name in words, its unit, the rule it must satisfy, and a hint for messages."""

    what: str
    unit: str
    rule: NumberRule
    hint: str = ""


@dataclasses.dataclass(frozen=True)
class BetweenRule(NumberRule):
    """A rule for numbers strictly between two."""

    low: float = 0.0
    high: float = 1.0


PARAMETER_RULES = {
    "body_mass": LeafRule("mass", "kg", NOT_NEGATIVE),
    "body_com": LeafRule("centre of mass", "m", FINITE),
    "body_unit_inertia": LeafRule("unit inertia", "m²", FINITE),
    "frame_quaternion": LeafRule("quaternion", "", DIRECTION),
    "frame_translation": LeafRule("translation", "m", FINITE),
    "joint_axis": LeafRule("axis", "", DIRECTION),
    "screw_pitch": LeafRule("screw pitch", "m per turn", FINITE),
    "mimic_multiplier": LeafRule("multiplier", "", FINITE),
    "mimic_offset": LeafRule("offset", "", FINITE),
    "joint_damping": LeafRule("damping", "", NOT_NEGATIVE),
    "joint_friction": LeafRule("friction", "", NOT_NEGATIVE),
    "joint_armature": LeafRule("armature", "", NOT_NEGATIVE),
    "friction_velocity": LeafRule("friction velocity", "rad/s or m/s", POSITIVE),
    "velocity_locked": LeafRule("locked velocity", "", FINITE),
    "position_lower_limits": LeafRule("lower position limit", "", LOWER_LIMIT),
    "position_upper_limits": LeafRule("upper position limit", "", UPPER_LIMIT),
    "velocity_lower_limits": LeafRule("lower velocity limit", "", LOWER_LIMIT),
    "velocity_upper_limits": LeafRule("upper velocity limit", "", UPPER_LIMIT),
    "acceleration_lower_limits": LeafRule("lower acceleration limit", "", LOWER_LIMIT),
    "acceleration_upper_limits": LeafRule("upper acceleration limit", "", UPPER_LIMIT),
    "effort_limit": LeafRule("effort limit", "", LARGEST, "It bounds the effort in both directions."),
    "rotor_inertia": LeafRule("rotor inertia", "", NOT_NEGATIVE),
    "gear_ratio": LeafRule("gear ratio", "", FINITE),
    "proportional_gain": LeafRule("kp", "", NOT_NEGATIVE),
    "derivative_gain": LeafRule("kd", "", NOT_NEGATIVE),
    "gravity": LeafRule("gravity", "m/s²", FINITE),
    "default_positions": LeafRule("default positions", "", FINITE),
    "time_step": LeafRule("time step", "s", POSITIVE),
}

COLLISION_RULES = {
    "quaternion": LeafRule("quaternion", "", DIRECTION),
    "translation": LeafRule("translation", "m", FINITE),
    "size": LeafRule("size", "m", POSITIVE),
    "vertices": LeafRule("vertices", "m", FINITE),
    "static_friction": LeafRule("static_friction", "", NOT_NEGATIVE),
    "dynamic_friction": LeafRule("dynamic_friction", "", NOT_NEGATIVE),
    "relaxation_time": LeafRule("relaxation_time", "s", NOT_NEGATIVE),
    "stiffness": LeafRule("point_stiffness", "N/m", POSITIVE_OR_INFINITE),
    "hunt_crossley_dissipation": LeafRule("hunt_crossley_dissipation", "s/m", NOT_NEGATIVE),
    "hydroelastic_modulus": LeafRule("hydroelastic_modulus", "Pa", POSITIVE),
    "penetration_allowance": LeafRule("penetration_allowance", "m", POSITIVE),
    "stiction_tolerance": LeafRule("stiction_tolerance", "m/s", POSITIVE),
    "sap_near_rigid_threshold": LeafRule("near_rigid_threshold", "", NOT_NEGATIVE),
    "smoothing_length": LeafRule("contact_smoothing_length", "m", NOT_NEGATIVE),
}

POISSONS_RATIO = BetweenRule(
    "a number between -1 and 0.5, both left out", lambda x: (x > -1.0) & (x < 0.5), low=-1.0, high=0.5
)

# By the names of the fields of deformable bodies.
DEFORMABLE_RULES = {
    "reference_positions": LeafRule("reference positions", "m", FINITE),
    "youngs_modulus": LeafRule("Young's modulus", "Pa", POSITIVE),
    "poissons_ratio": LeafRule("Poisson's ratio", "", POISSONS_RATIO),
    "mass_density": LeafRule("mass density", "kg/m³", POSITIVE),
    "mass_damping": LeafRule("mass damping", "1/s", NOT_NEGATIVE),
    "stiffness_damping": LeafRule("stiffness damping", "s", NOT_NEGATIVE),
    "anchors": LeafRule("anchors", "m", FINITE),
    "enabled": LeafRule("enabled", "", FINITE),
    "dynamic_friction": LeafRule("dynamic_friction", "", NOT_NEGATIVE),
    "relaxation_time": LeafRule("relaxation_time", "s", NOT_NEGATIVE),
    "hunt_crossley_dissipation": LeafRule("hunt_crossley_dissipation", "s/m", NOT_NEGATIVE),
    "force_densities": LeafRule("force density", "", FINITE),
}

# Rules for force elements, constraints and distributions, users' own too, by the names of their fields.
ELEMENT_RULES = {
    "stiffness": LARGEST,
    "damping": NOT_NEGATIVE,
    "free_length": NOT_NEGATIVE,
    "distance": POSITIVE,
    "stabilization_time": POSITIVE_OR_INFINITE,
    "standard_deviation": NOT_NEGATIVE,
    "torque_stiffness_constants": NOT_NEGATIVE,
    "torque_damping_constants": NOT_NEGATIVE,
    "force_stiffness_constants": NOT_NEGATIVE,
    "force_damping_constants": NOT_NEGATIVE,
    "spring_constant": NOT_NEGATIVE,
    "dynamic_friction_torque": NOT_NEGATIVE,
    "static_friction_torque": NOT_NEGATIVE,
    "viscous_friction": NOT_NEGATIVE,
    "catch_width": NOT_NEGATIVE,
    "motion_threshold": NOT_NEGATIVE,
    "quaternion_AP": DIRECTION,
    "quaternion_BS": DIRECTION,
    "quaternion_BQ": DIRECTION,
    "normals": DIRECTION,
    "axes": DIRECTION,
}

# Pairs (lower, upper) of limits that must keep their order.
ORDERED_LIMITS = tuple(
    (f"{what}_lower_limits", f"{what}_upper_limits") for what in ("position", "velocity", "acceleration")
)
