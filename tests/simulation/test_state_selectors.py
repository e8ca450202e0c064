"""Selector matrices and the actuation matrix, as Drake's."""

import numpy as np
import pytest

import mbjax
from tests.simulation.instances import ACTUATED, BODIES, two_instances

JOINTS = [f"{name}_joint" for name, _, kind, _ in BODIES if kind is not None] + ["free", "other"]


def test_state_selector_matrix() -> None:
    model, drake = two_instances().model, two_instances().plant
    rng = np.random.default_rng(0)
    for count in (0, 1, 4, len(JOINTS)):
        chosen = [JOINTS[i] for i in rng.permutation(len(JOINTS))[:count]]
        expected = drake.MakeStateSelectorMatrix([drake.GetJointByName(name).index() for name in chosen])
        np.testing.assert_array_equal(mbjax.state_selector_matrix(model, chosen), expected)
        indices = [model.joint_index(name) for name in chosen]
        np.testing.assert_array_equal(mbjax.state_selector_matrix(model, indices), expected)
    with pytest.raises(mbjax.ModelError, match="'arm_joint' is given twice"):
        mbjax.state_selector_matrix(model, ["arm_joint", "turret_joint", "arm_joint"])


def test_actuator_selector_matrix() -> None:
    model, drake = two_instances().model, two_instances().plant
    rng = np.random.default_rng(1)
    for count in (0, 1, 3, 4):
        chosen = [ACTUATED[i] for i in rng.permutation(len(ACTUATED))[:count]]
        motors, joints = [f"{name}_motor" for name in chosen], [f"{name}_joint" for name in chosen]
        expected = np.zeros((4, 0))
        if count:
            expected = drake.MakeActuatorSelectorMatrix([drake.GetJointActuatorByName(m).index() for m in motors])
            by_joint = drake.MakeActuatorSelectorMatrix([drake.GetJointByName(j).index() for j in joints])
            np.testing.assert_array_equal(by_joint, expected)
        np.testing.assert_array_equal(mbjax.actuator_selector_matrix(model, motors), expected)
        np.testing.assert_array_equal(mbjax.actuator_selector_matrix(model, joints=joints), expected)
    with pytest.raises(mbjax.ModelError, match="joint 'hand_joint' has no actuator"):
        mbjax.actuator_selector_matrix(model, joints=["hand_joint"])
    for arguments in ({}, {"actuators": ["arm_motor"], "joints": ["arm_joint"]}):
        with pytest.raises(mbjax.ModelError, match="either actuators or joints"):
            mbjax.actuator_selector_matrix(model, **arguments)


def test_actuation_matrix_and_its_pseudoinverse() -> None:
    model, drake = two_instances().model, two_instances().plant
    B = mbjax.actuation_matrix(model)
    np.testing.assert_array_equal(B, drake.MakeActuationMatrix())
    expected = drake.MakeActuationMatrixPseudoinverse().toarray()
    np.testing.assert_array_equal(mbjax.actuation_matrix_pseudoinverse(model), expected)


def test_two_actuators_of_one_joint() -> None:
    """The pseudoinverse is one (Drake's is B's transpose); asking for the joint's actuator is ambiguous."""
    plant = mbjax.MultibodyPlant()
    plant.add_rigid_body("link", mbjax.SpatialInertia.solid_sphere_with_mass(1.0, 0.1))
    plant.add_joint(mbjax.RevoluteJoint("hinge", "world", "link"))
    for name in ("fast", "strong"):
        plant.add_joint_actuator(name, "hinge")
    model = plant.finalize()
    pseudoinverse = np.linalg.pinv(mbjax.actuation_matrix(model))
    np.testing.assert_allclose(mbjax.actuation_matrix_pseudoinverse(model), pseudoinverse, atol=1e-15)
    with pytest.raises(mbjax.ModelError, match="'fast', 'strong'; select by actuators"):
        mbjax.actuator_selector_matrix(model, joints=["hinge"])
