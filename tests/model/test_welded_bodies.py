"""Bodies that welds merge stay addressable and differentiable."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.math import RollPitchYaw

import mbjax
from tests.model.plants import inertia, mass_matrix, two_links
from tests.models import relative_error


def welded_plant(tool_mass=0.7):
    """Two links, and two bodies welded one to the other on the last, with a frame on the outer."""
    plant = two_links()
    pose = DrakeTransform(RollPitchYaw(0.3, -0.5, 0.9), [0.1, 0.2, -0.3]).GetAsMatrix4()
    plant.add_rigid_body("flange", inertia(0.4))
    plant.add_rigid_body("tool", inertia(tool_mass, (0.05, 0.1, -0.02), (0.1, 0.2, 0.3)))
    plant.weld_frames("lower", "flange", pose)
    plant.weld_frames("flange", "tool", pose)
    plant.add_frame("tip", "tool", pose)
    return plant


def test_welded_bodies_stay_addressable():
    model = welded_plant().finalize()
    assert model.topology.num_mobods == 3
    assert model.num_velocities == 2
    assert {"flange", "tool"} <= set(model.body_names)
    assert "tip" in model.frame_names
    assert model.joint("lower_welds_to_flange").kind == "weld"
    X = DrakeTransform(RollPitchYaw(0.3, -0.5, 0.9), [0.1, 0.2, -0.3])
    q = jnp.array([0.4, -0.8])
    got = mbjax.relative_transform(model, q, "lower", "tip")
    expected = X.multiply(X).multiply(X)
    np.testing.assert_allclose(got.rotation, expected.rotation().matrix(), atol=1e-14)
    np.testing.assert_allclose(got.translation, expected.translation(), atol=1e-14)
    assert float(mbjax.mass(model, "tool")) == pytest.approx(0.7)
    assert np.abs(mbjax.body_spatial_velocities_in_world(model, q, jnp.array([0.3, 0.5]))[-1]).min() > 0.0


@pytest.mark.whole_run("values of welded bodies, above, and derivatives by frames in test_recursions_of_own_models.py")
def test_welded_bodies_stay_differentiable():
    model = welded_plant().finalize()
    q = jnp.array([0.4, -0.8])
    mixed = [mass_matrix(welded_plant(m).finalize(), q) for m in (0.8, 0.6)]
    X, h = mbjax.frame_pose(model, "lower_welds_to_flange_parent"), 1e-6

    @jax.jit
    def of_tool_and_weld(mass, p):
        changed = mbjax.set_frame_pose(model, "lower_welds_to_flange_parent", mbjax.RigidTransform(X.rotation, p))
        return mass_matrix(mbjax.set_mass(changed, "tool", mass), q)

    p = np.asarray(X.translation)
    by_mass, by_place = jax.jit(jax.jacrev(of_tool_and_weld, (0, 1)))(0.7, p)
    assert relative_error(by_mass, (mixed[0] - mixed[1]) / 0.2) < 1e-12  # M is linear in the mass
    for axis, step in enumerate(h * np.eye(3)):
        ends = [of_tool_and_weld(0.7, p + s * step)[0, 0] for s in (1.0, -1.0)]
        np.testing.assert_allclose(by_place[0, 0, axis], (ends[0] - ends[1]) / (2 * h), rtol=1e-7)
