"""Model instances: names of their own, gravity of their own."""

import jax.numpy as jnp
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.math import RigidTransform as DrakeTransform
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.model.plants import force_elements, gravity_forces, hinge, inertia
from tests.models import make_twin, relative_error


def two_arms() -> mbjax.MultibodyPlant:
    plant = mbjax.MultibodyPlant()
    for side in ("left", "right"):
        instance = plant.add_model_instance(side)
        body = plant.add_rigid_body("arm", inertia(), instance)
        plant.add_joint(hinge("shoulder", "world", body))
    return plant


def test_equal_names_in_two_instances():
    model = two_arms().finalize()
    assert model.position_names() == ("left_shoulder_q", "right_shoulder_q")
    assert model.joint("right::shoulder").q == slice(1, 2)
    assert model.body_index("left::arm") == 1
    with pytest.raises(mbjax.ModelError, match="say which: 'left::arm', 'right::arm'"):
        model.body_index("arm")
    q = jnp.array([0.3, 0.9])
    assert float(mbjax.total_mass(model, ["right"])) == pytest.approx(1.3)
    left, right = (mbjax.center_of_mass_position_in_world(model, q, [i]) for i in ("left", "right"))
    assert not np.allclose(left, right)
    np.testing.assert_allclose(mbjax.center_of_mass_position_in_world(model, q), (left + right) / 2, atol=1e-15)


def test_gravity_off_for_one_instance_as_in_drake():
    plant = two_arms()
    plant.set_gravity_enabled("right", False)
    plant.set_gravity([1.0, -2.0, -7.0])
    model = plant.finalize()
    theirs = DrakePlant(0.0)
    axis = np.array([0.2, 0.9, -0.3])
    for side in ("left", "right"):
        instance = theirs.AddModelInstance(side)
        G = drake_tree.UnitInertia(*np.asarray(inertia().unit_inertia.moments_products()))
        body = theirs.AddRigidBody("arm", instance, drake_tree.SpatialInertia(1.3, [0.1, -0.05, 0.2], G))
        F = theirs.AddFrame(
            drake_tree.FixedOffsetFrame(f"F{side}", theirs.world_frame(), DrakeTransform([0.0, 0.1, 0.4]), instance)
        )
        theirs.AddJoint(drake_tree.RevoluteJoint("shoulder", F, body.body_frame(), axis / np.linalg.norm(axis)))
    theirs.mutable_gravity_field().set_gravity_vector([1.0, -2.0, -7.0])
    theirs.set_gravity_enabled(theirs.GetModelInstanceByName("right"), False)
    theirs.Finalize()
    twin = make_twin(model, theirs)
    q = np.array([0.3, 0.9])
    context = twin.context(q, np.zeros(2))
    expected = theirs.CalcGravityGeneralizedForces(context)[np.argsort(twin.to_drake_v)]
    got = gravity_forces(model, q)
    assert got[1] == 0.0
    assert got[0] != 0.0
    assert relative_error(got, expected) < 1e-13
    forces = force_elements(model, q, jnp.zeros(2))
    np.testing.assert_array_equal(forces.body[2], 0.0)
    assert relative_error(mbjax.potential_energy(model, q), theirs.CalcPotentialEnergy(context)) < 1e-13
