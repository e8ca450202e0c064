"""Coordinate names equal Drake's; bodies without a joint float."""

import jax
import numpy as np
import pydrake.multibody.tree as drake_tree
import pytest
from pydrake.math import RollPitchYaw
from pydrake.multibody.plant import MultibodyPlant as DrakePlant

import mbjax
from tests.model.plants import inertia, two_links
from tests.models import ALL_KINDS, JOINT_CLASSES


def test_bodies_without_a_joint_float():
    plant = two_links()
    plant.add_rigid_body("alone", inertia())
    X = RollPitchYaw(0.4, -0.7, 1.1).ToRotationMatrix().matrix()
    plant.set_default_free_body_pose("alone", mbjax.RigidTransform(X, np.array([1.0, -2.0, 3.0])))
    model = plant.finalize()
    assert model.joint("alone").kind == "quaternion_floating"
    pose = jax.jit(mbjax.body_poses_in_world)(model, mbjax.default_state(model).q)
    np.testing.assert_allclose(pose.rotation[-1], X, atol=1e-15)
    np.testing.assert_allclose(pose.translation[-1], [1.0, -2.0, 3.0])


@pytest.mark.parametrize("kind", [k for k in ALL_KINDS if k != "weld"])
def test_coordinate_names_equal_drakes(kind):
    ours, theirs = mbjax.MultibodyPlant(), DrakePlant(0.0)
    our_class, their_class = JOINT_CLASSES[kind]
    instance = ours.add_model_instance("robot")
    body = ours.add_rigid_body("link", inertia(), instance)
    pitch = {"screw_pitch": 0.7} if our_class.has_pitch else {}
    ours.add_joint(our_class("joint", "world", body, **pitch))
    M = drake_tree.SpatialInertia.SolidSphereWithMass(1.0, 0.2)
    link = theirs.AddRigidBody("link", theirs.AddModelInstance("robot"), M)
    extra = {"revolute": ([0, 0, 1],), "prismatic": ([0, 0, 1],), "screw": ([0, 0, 1], 0.7, 0.0)}.get(kind, ())
    extra = ([0, 0, 0],) if kind == "planar" else extra
    theirs.AddJoint(their_class("joint", theirs.world_frame(), link.body_frame(), *extra))
    theirs.Finalize()
    model = ours.finalize()
    assert list(model.position_names()) == theirs.GetPositionNames()
    assert list(model.velocity_names()) == theirs.GetVelocityNames()
    assert list(model.state_names()) == theirs.GetStateNames()
    for prefix in (True, False):
        got = model.position_names(add_model_instance_prefix=prefix)
        assert list(got) == theirs.GetPositionNames(add_model_instance_prefix=prefix)
