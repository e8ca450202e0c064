"""A deformable cube of six tetrahedra, for tests of what shows and keeps deformable bodies."""

import numpy as np

import mbjax
from tests.deformable_meshes import box_mesh

SIDE = 0.1
FOAM = mbjax.DeformableMaterial(5e4, 0.3, 300.0, stiffness_damping=0.005)


def cube_mesh() -> tuple[np.ndarray, np.ndarray]:
    """Points (8, 3) of a cube with a corner at the origin, and its tetrahedra (6, 4)."""
    return box_mesh((1, 1, 1), (SIDE, SIDE, SIDE))


def cube_plant(material: mbjax.DeformableMaterial = FOAM) -> mbjax.MultibodyPlant:
    """A cube "foam" held at x = 0 by a wall, beside a ball on a vertical slide."""
    plant = mbjax.MultibodyPlant(0.01)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.03))
    X_PF = np.array([0.0, 0.3, 0.0])
    plant.add_joint(mbjax.PrismaticJoint("slide", "world", "ball", axis=(0, 0, 1), X_PF=X_PF))
    plant.add_deformable_body("foam", cube_mesh(), material)
    plant.set_wall_boundary_condition("foam", [1e-6, 0, 0], [1, 0, 0])
    return plant


def stretched_states(model: mbjax.MultibodyModel) -> mbjax.State:
    """Three states: at rest, stretched by a tenth along x, and moved by 1 m along z at 2 m/s as well."""
    rest = np.asarray(mbjax.default_state(model).nodes.position)
    stretched = rest * np.array([1.1, 1.0, 1.0])
    position = np.stack([rest, stretched, stretched + np.array([0.0, 0.0, 1.0])])
    velocity = np.zeros_like(position)
    velocity[2, :, 2] = 2.0
    q, v = np.zeros((3, model.num_positions)), np.zeros((3, model.num_velocities))
    return mbjax.State(q, v, np.array([0.0, 0.1, 0.2]), mbjax.NodeState(position, velocity))
