"""Groups of a model's leaves by meaning, as filter specs: trees of truth values for `equinox.partition`."""

from typing import Any

import jax

from mbjax.errors import ModelError
from mbjax.model import MultibodyModel, near_matches

GROUPS = {
    "parameters": {
        "inertial": ("body_mass", "body_com", "body_unit_inertia"),
        "frames": ("frame_quaternion", "frame_translation", "joint_axis", "screw_pitch"),
        "mimics": ("mimic_multiplier", "mimic_offset"),
        "friction": ("joint_damping", "joint_friction"),
        "actuation": (
            "joint_armature",
            "effort_limit",
            "rotor_inertia",
            "gear_ratio",
            "proportional_gain",
            "derivative_gain",
        ),
        "gravity": ("gravity",),
        "limits": tuple(
            f"{what}_{side}_limits" for what in ("position", "velocity", "acceleration") for side in ("lower", "upper")
        ),
        "defaults": ("default_positions",),
        "options": ("time_step", "friction_velocity"),
        "switches": ("velocity_locked",),
    },
    "collision": {
        "contact": (
            "static_friction",
            "dynamic_friction",
            "relaxation_time",
            "stiffness",
            "hunt_crossley_dissipation",
            "hydroelastic_modulus",
        ),
        "geometry": ("quaternion", "translation", "size", "vertices"),
        "options": ("penetration_allowance", "stiction_tolerance", "sap_near_rigid_threshold", "smoothing_length"),
    },
    "deformables": {
        "materials": ("youngs_modulus", "poissons_ratio", "mass_density", "mass_damping", "stiffness_damping"),
        "contact": ("dynamic_friction", "relaxation_time", "hunt_crossley_dissipation"),
        "geometry": ("reference_positions", "anchors"),
        "switches": ("enabled",),
        "force_elements": ("force_densities",),
    },
}
PHYSICAL = (
    "inertial", "frames", "mimics", "friction", "actuation", "gravity", "contact", "geometry", "materials",
    "force_elements", "constraints",
)  # fmt: skip
ALL = (*PHYSICAL, "limits", "defaults", "options", "switches")
GROUP_OF_LEAF = {
    (section, leaf): group for section, groups in GROUPS.items() for group, leaves in groups.items() for leaf in leaves
}


def group_of(path: Any) -> str:
    """Group of a leaf, from its path in the model."""
    names = [key.name for key in path if hasattr(key, "name")]
    section, leaf = names[0], names[-1]
    if section == "constraints":
        return {"active": "switches", "stabilization_time": "options"}.get(leaf, "constraints")
    if section in ("random_distributions", "keyframes"):
        return "defaults"
    if section == "deformables":
        leaf = names[1]
    return section if section == "force_elements" else GROUP_OF_LEAF[section, leaf]


def chosen(model: MultibodyModel, *groups: str) -> MultibodyModel:
    """A spec that is true for the leaves of these groups; `equinox.partition(model, spec)` takes them out.

    Groups are named like the functions of `mbjax.parameters`. Raises `ModelError` for other names.
    """
    for group in groups:
        if group not in ALL:
            raise ModelError(f"parameters.chosen: there is no group '{group}'. {near_matches(str(group), ALL)}")
    return jax.tree_util.tree_map_with_path(lambda path, _: group_of(path) in groups, model)


def inertial(model: MultibodyModel) -> MultibodyModel:
    """A spec of masses, centres of mass and unit inertias."""
    return chosen(model, "inertial")


def frames(model: MultibodyModel) -> MultibodyModel:
    """A spec of the poses of frames, the axes of joints and the pitches of screws: the geometry of the robot."""
    return chosen(model, "frames")


def mimics(model: MultibodyModel) -> MultibodyModel:
    """A spec of multipliers and offsets of joints that mimic others."""
    return chosen(model, "mimics")


def friction(model: MultibodyModel) -> MultibodyModel:
    """A spec of damping and Coulomb friction of joints; friction of surfaces is in `contact`."""
    return chosen(model, "friction")


def actuation(model: MultibodyModel) -> MultibodyModel:
    """A spec of effort limits, armatures, rotor inertias, gear ratios and controllers' gains."""
    return chosen(model, "actuation")


def gravity(model: MultibodyModel) -> MultibodyModel:
    """A spec of the acceleration of gravity."""
    return chosen(model, "gravity")


def contact(model: MultibodyModel) -> MultibodyModel:
    """A spec of friction, stiffness and dissipation of surfaces."""
    return chosen(model, "contact")


def geometry(model: MultibodyModel) -> MultibodyModel:
    """A spec of poses, sizes and vertices of collision geometries, and of the nodes of deformable bodies at rest."""
    return chosen(model, "geometry")


def materials(model: MultibodyModel) -> MultibodyModel:
    """A spec of the elastic numbers, densities and damping of deformable bodies."""
    return chosen(model, "materials")


def force_elements(model: MultibodyModel) -> MultibodyModel:
    """A spec of the numbers of springs, dampers, forces per volume and other force elements."""
    return chosen(model, "force_elements")


def constraints(model: MultibodyModel) -> MultibodyModel:
    """A spec of the numbers of constraints, without their stabilization times and whether they are active."""
    return chosen(model, "constraints")


def limits(model: MultibodyModel) -> MultibodyModel:
    """A spec of the limits of positions, velocities and accelerations; effort limits are in `actuation`."""
    return chosen(model, "limits")


def defaults(model: MultibodyModel) -> MultibodyModel:
    """A spec of default positions, keyframes and random distributions, from which initial states are made."""
    return chosen(model, "defaults")


def options(model: MultibodyModel) -> MultibodyModel:
    """A spec of the numerical method's numbers, not the robot's: time step, tolerances, times of stabilization."""
    return chosen(model, "options")


def switches(model: MultibodyModel) -> MultibodyModel:
    """A spec of leaves that are on or off: locked velocities, active constraints. Derivatives by them are zero."""
    return chosen(model, "switches")


def physical(model: MultibodyModel) -> MultibodyModel:
    """A spec of all leaves that describe the robot and its world; not limits, defaults, options and switches."""
    return chosen(model, *PHYSICAL)


def union(*specs: MultibodyModel) -> MultibodyModel:
    """A spec that is true where any of the given specs is."""
    return jax.tree.map(lambda *chosen: any(chosen), *specs)


def without(spec: MultibodyModel, *others: MultibodyModel) -> MultibodyModel:
    """A spec that is true where `spec` is true and none of the others is."""
    return jax.tree.map(lambda chosen, *more: chosen and not any(more), spec, *others)
