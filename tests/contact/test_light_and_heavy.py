"""Bodies whose masses are far apart, in single precision: as in double, to within 1e-4 of the speeds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mbjax
from mbjax.geometry import Box, Geometry, ProximityProperties, Sphere
from tests.gradients.checks import compiled

SIDES, RADIUS, DEPTH, WORLDS = np.array([0.3, 0.2, 0.1]), 0.2, 5e-3, 128
LIGHT, HEAVY = 1e-3, 300.0  # kg


def box_and_ball(dtype: str) -> mbjax.MultibodyModel:
    """A contact of 4e4 kg, stiffness times time step times settling time: 4e7 times the box."""
    plant = mbjax.MultibodyPlant(5e-3, penetration_allowance=1e-4, sap_near_rigid_threshold=0.0)
    plant.add_rigid_body("ball", mbjax.SpatialInertia.solid_sphere_with_mass(HEAVY, RADIUS))
    plant.add_rigid_body("box", mbjax.SpatialInertia.solid_box_with_mass(LIGHT, *SIDES))
    for name, shape in (("ball", Sphere(RADIUS)), ("box", Box(SIDES))):
        material = ProximityProperties(0.5, relaxation_time=0.05)
        plant.register_collision_geometry(name, Geometry(name, shape), material)
    return plant.finalize(jnp.dtype(dtype))


@pytest.mark.whole_run("drops of boxes")
def test_a_light_box_struck_at_a_corner() -> None:
    """Its forces are 1e-3 of the ball's, and rounding of the contact's stiffness would exceed its own inertia."""
    rng = np.random.default_rng(3)
    quaternion, corner = rng.normal(size=(WORLDS, 4)), np.sign(rng.normal(size=(WORLDS, 3)))
    normal = corner * np.abs(rng.normal(size=(WORLDS, 3)))  # out of the box: the ball is beyond the corner
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    p_BoAo_B = 0.5 * SIDES * corner + (RADIUS - DEPTH) * normal
    R_WB = np.asarray(jax.vmap(mbjax.spatial.quaternion_to_matrix)(quaternion))
    p_WBo = -np.einsum("nij,nj->ni", R_WB, p_BoAo_B)
    q = np.concatenate([np.tile(np.eye(7)[0], (WORLDS, 1)), quaternion, p_WBo], axis=1)
    v = rng.uniform(-3.0, 3.0, (WORLDS, 12))
    v[:, 3:6] = -5.0 * np.einsum("nij,nj->ni", R_WB, normal)  # towards the box
    after, iterations = {}, {}
    for dtype in ("float32", "float64"):
        model = box_and_ball(dtype)

        def step(q: jax.Array, v: jax.Array, model: mbjax.MultibodyModel = model) -> tuple:
            state, outputs = mbjax.step(model, mbjax.State(q, v, jnp.zeros((), q.dtype)))
            return state.v, outputs.contact_results

        found, contacts = compiled(jax.vmap(step))(q.astype(dtype), v.astype(dtype))
        assert (jnp.linalg.norm(contacts.force[:, 0], axis=1) > 0.0).mean() > 0.8
        assert contacts.converged.all()
        after[dtype], iterations[dtype] = np.asarray(found), np.asarray(contacts.num_iterations)
    apart = np.abs(after["float32"] - after["float64"]).max(axis=1)
    moved = np.abs(after["float64"] - v).max()
    usual, worst = np.quantile(apart, 0.95), apart.max()
    print(f"apart {usual:.1e}, {worst:.1e} of {moved:.1f} m/s; {[x.max() for x in iterations.values()]} iterations")
    assert usual < 1e-4 * moved
    assert worst < 1e-4 * moved
