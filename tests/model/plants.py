"""Small plants the tests of models share, and dynamics compiled once for all of them."""

import jax
import numpy as np

import mbjax
from tests.models import relative_error

mass_matrix = jax.jit(mbjax.mass_matrix)
bias_term = jax.jit(mbjax.bias_term)
gravity_forces = jax.jit(mbjax.gravity_generalized_forces)
forward_dynamics = jax.jit(mbjax.forward_dynamics)
force_elements = jax.jit(mbjax.force_elements_contribution)


def inertia(mass=1.3, com=(0.1, -0.05, 0.2), sides=(0.3, 0.4, 0.5)):
    com = np.asarray(com, float)
    return mbjax.SpatialInertia(mass, com, mbjax.UnitInertia.solid_box(*sides).shift_from_center_of_mass(-com))


def hinge(name, parent, child, **keywords):
    return mbjax.RevoluteJoint(name, parent, child, **{"axis": (0.2, 0.9, -0.3), "X_PF": (0.0, 0.1, 0.4)} | keywords)


def two_links() -> mbjax.MultibodyPlant:
    plant = mbjax.MultibodyPlant()
    for name in ("upper", "lower"):
        plant.add_rigid_body(name, inertia())
    plant.add_joint(hinge("shoulder", "world", "upper"))
    plant.add_joint(hinge("elbow", "upper", "lower"))
    return plant


def dynamics(model):
    """M, bias and gravity at one generic state."""
    state = mbjax.random_state(model, jax.random.key(1))
    q, v = state.q, state.v
    return {"M": mass_matrix(model, q), "bias": bias_term(model, q, v), "gravity": gravity_forces(model, q)}


def assert_same_dynamics(got, expected, tolerance=1e-13):
    """Same tree, same numbers."""
    a, b = dynamics(got), dynamics(expected)
    for name in b:
        assert relative_error(a[name], b[name]) < tolerance, name


def chain_of(*inertias, rotor=0.0):
    plant = mbjax.MultibodyPlant()
    parent = "world"
    for i, M in enumerate(inertias):
        plant.add_rigid_body(f"link{i}", M)
        plant.add_joint(hinge(f"joint{i}", parent, f"link{i}"))
        parent = f"link{i}"
    if rotor:
        plant.add_joint_actuator("motor", f"joint{len(inertias) - 1}", rotor_inertia=rotor)
    return plant
