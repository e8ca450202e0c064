"""A finalize() that raises leaves the plant as it was; mended, it finalizes to the same model as a fresh one."""

import numpy as np
import pytest

import mbjax
from mbjax.errors import ModelError
from mbjax.forces import LinearSpringDamper
from mbjax.model import LoadReport, ReportEntry

INERTIA = mbjax.SpatialInertia(1.0, np.zeros(3), mbjax.UnitInertia(1.0, 1.0, 1.0, 0.0, 0.0, 0.0))


def snapshot(plant):
    lists = (plant.bodies, plant.frames, plant.joints, plant.actuators, plant.force_elements, plant.report.entries)
    return [list(elements) for elements in lists], dict(plant.default_free_poses)


def two_bodies(tip_inertia):
    """A floating base and a tip on a hinge."""
    plant = mbjax.MultibodyPlant()
    base = plant.add_rigid_body("base", INERTIA)
    tip = plant.add_rigid_body("tip", tip_inertia)
    plant.add_joint(mbjax.RevoluteJoint("hinge", base, tip))
    return plant


def refused(plant, message):
    before = snapshot(plant)
    for _ in range(2):
        with pytest.raises(ModelError, match=message):
            plant.finalize()
        assert snapshot(plant) == before
        assert not plant.is_finalized


def matches_fresh_build(model):
    fresh = two_bodies(INERTIA).finalize()
    assert [joint.name for joint in model.layout.joints] == ["hinge", "base"]
    assert model.position_names() == fresh.position_names()
    np.testing.assert_array_equal(model.parameters.default_positions, fresh.parameters.default_positions)


def test_massless_tip_can_be_mended():
    plant = two_bodies(None)
    refused(plant, "body 'tip' has no mass")
    plant.body("tip").inertia = INERTIA
    matches_fresh_build(plant.finalize())


def test_pose_of_a_body_that_does_not_float_can_be_mended():
    plant = two_bodies(INERTIA)
    plant.set_default_free_body_pose("tip", (0.0, 0.0, 1.0))
    refused(plant, "does not float")
    del plant.default_free_poses[plant.body("tip").index]
    matches_fresh_build(plant.finalize())


def test_force_element_without_its_body_can_be_mended():
    plant = two_bodies(INERTIA)
    element = LinearSpringDamper("base", (0.0, 0.0, 0.0), "nowhere", (0.0, 0.0, 0.0), 1.0, 1.0, 0.1)
    plant.add_force_element(element)
    refused(plant, "nowhere")
    plant.force_elements.remove(element)
    matches_fresh_build(plant.finalize())


def test_names_of_floating_joints_are_free_after_an_error():
    plant = two_bodies(None)
    refused(plant, "body 'tip' has no mass")
    plant.add_joint(mbjax.WeldJoint("base", plant.world_body, "base"))
    plant.body("tip").inertia = INERTIA
    assert [joint.name for joint in plant.finalize().layout.joints] == ["hinge", "base"]


def test_names_are_unique_by_kind_and_instance():
    plant = two_bodies(INERTIA)
    with pytest.raises(ModelError, match=r"add_body\('tip'\): model instance 'DefaultModelInstance' has a body"):
        plant.add_rigid_body("tip")
    with pytest.raises(ModelError, match=r"add_frame\('tip'\).* has a frame"):
        plant.add_frame("tip", "base")
    with pytest.raises(ModelError, match=r"add_joint\('hinge'\).* has a joint"):
        plant.add_joint(mbjax.RevoluteJoint("hinge", "tip", plant.add_rigid_body("end")))
    plant.add_joint_actuator("hinge", "hinge")
    with pytest.raises(ModelError, match=r"add_actuator\('hinge'\).* has an actuator"):
        plant.add_joint_actuator("hinge", "hinge")
    plant.add_rigid_body("tip", INERTIA, plant.add_model_instance("other"))


def test_frame_refused_for_its_pose_leaves_the_name_free():
    plant = two_bodies(INERTIA)
    with pytest.raises(ModelError, match="must be finite"):
        plant.add_frame("tool", "tip", (0.0, 0.0, np.nan))
    assert plant.add_frame("tool", "tip").name == "tool"


def test_report_says_nothing_twice():
    report = LoadReport([ReportEntry("used", "a", "fine")])
    report.add("used", "a", "fine")
    report.add("used", "b", "fine")
    report.add("used", "b", "fine")
    assert [entry.element for entry in report.entries] == ["a", "b"]
