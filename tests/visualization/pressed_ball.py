"""A soft ball above a rigid ground, for tests of what shows the surface of their contact."""

import mbjax
from mbjax.geometry import Geometry, HalfSpace, ProximityProperties, Sphere


def ball_on_ground() -> mbjax.MultibodyModel:
    """A ball of 10 cm and 1 kg, compliant with 1e5 Pa."""
    plant = mbjax.MultibodyPlant(time_step=0.01)
    rigid = ProximityProperties(0.5).add_rigid_hydroelastic_properties()
    soft = ProximityProperties(0.5).add_compliant_hydroelastic_properties(0.1, hydroelastic_modulus=1e5)
    plant.register_collision_geometry("world", Geometry("ground", HalfSpace()), rigid)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.register_collision_geometry("ball", Geometry("skin", Sphere(0.1)), soft)
    return plant.finalize()
