"""All kinds of parameters: those of `mbjax.parameters`, with inertias in kg m², and those of sensors and drives."""

import dataclasses

from mbjax.model import MultibodyModel
from mbjax.parameters import NumberKind
from mbjax.parameters.kind_table import DAMPING, TORQUE, kinds_of
from mbjax.parameters.named_numbers import Places, of_bodies, of_the_whole

from .kinds import FrameTurn, Kind, LogCholeskyInertia
from .system import velocity_labels

SIX = ("xx", "yy", "zz", "xy", "xz", "yz")
SCALES = {  # typical changes, in the kinds' units; 1 for the others
    "center_of_mass": 0.05, "joint_friction": 0.1, "joint_damping": 0.1, "armature": 0.01, "rotor_inertia": 1e-4,
    "effort_limit": 10.0, "kp": 10.0, "frame_translation": 0.01, "frame_rotation": 0.05, "friction": 0.1,
    "stiffness": 1e3, "relaxation_time": 0.01, "geometry_size": 0.01, "geometry_translation": 0.01, "time_step": 1e-3,
    "default_position": 0.1, "friction_velocity": 0.01, "youngs_modulus": 1e4, "poissons_ratio": 0.05,
    "mass_density": 100.0, "mass_damping": 0.1, "stiffness_damping": 1e-3,
}  # fmt: skip
SPECIAL = {"inertia": LogCholeskyInertia, "frame_rotation": FrameTurn}


def of_velocities(model: MultibodyModel) -> Places:
    """Places of numbers by velocity."""
    return {label: ((i,), ("",)) for i, label in enumerate(velocity_labels(model))}


SENSOR_KINDS = tuple(
    Kind(NumberKind(name, unit, (leaf,), places, words), "sensors", scale)
    for name, unit, leaf, places, scale, words in (
        ("position_bias", "rad or m", "position_bias", of_velocities, 0.01, "a joint's offset"),
        ("velocity_bias", "rad/s or m/s", "velocity_bias", of_velocities, 0.01, "of a sensor"),
        ("effort_gain", "", "effort_gain", of_velocities, 0.1, "measured over true, a motor constant"),
        ("effort_bias", TORQUE, "effort_bias", of_velocities, 0.1, "of a sensor"),
        ("delay", "s", "effort_delay", of_the_whole("effort", ("",)), 0.01, "of measured efforts"),
    )
)

DRIVE_KINDS = tuple(
    Kind(NumberKind(name, unit, (name,), of_velocities, words), "drives", 0.1)
    for name, unit, words in (
        ("stribeck", TORQUE, "breakaway friction above Coulomb's, which fades with speed; of Torques alone"),
        ("stribeck_velocity", "rad/s or m/s", "at which 37 % of it are left"),
        ("friction_asymmetry", TORQUE, "by how much Coulomb friction forwards exceeds the mean; of Torques alone"),
        ("damping_asymmetry", DAMPING, "by how much damping forwards exceeds the mean; of Torques alone"),
    )
)


def identifiable_kinds(model: MultibodyModel) -> tuple[Kind, ...]:
    """All kinds, in the order in which they are written, with those of the model's force elements."""
    return (*(kind_of(of) for of in kinds_of(model)), *SENSOR_KINDS, *DRIVE_KINDS)


def kind_of(of: NumberKind) -> Kind:
    """The kind of parameters for a kind of a model's numbers."""
    if of.name == "inertia":
        of = dataclasses.replace(of, unit="kg m²", places=of_bodies(6, SIX), words="about the centre of mass")
    return SPECIAL.get(of.name, Kind)(of, scale=SCALES.get(of.name, 1.0))
