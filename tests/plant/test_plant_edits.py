"""Removal, renaming and queries before finalize: as Drake does them, and as if the rest had been built alone."""

import numpy as np
import pytest
from pydrake.multibody.tree import BodyIndex, ModelInstanceIndex

import mbjax
from tests.model.plants import hinge, inertia, two_links
from tests.model.populations import Population


def three_links(*, extra: bool) -> Population:
    """An arm with an actuator per joint, and with `extra` a joint and actuators that are to be removed again."""
    both = Population()
    arm = both.instance("arm")
    a, b = both.body("a", arm), both.body("b", arm)
    c, d = both.body("c"), both.body("d")
    both.joint("revolute", "shoulder", 0, a)
    if extra:
        both.joint("prismatic", "odd", a, c)
        both.actuator("odd_motor", 1)
        both.actuator("weak", 0)
    elbow = 2 if extra else 1
    both.joint("revolute", "elbow", a, b)
    both.actuator("motor", elbow)
    both.joint("weld", "mount", c, d)
    return both


def removed() -> Population:
    both = three_links(extra=True)
    both.drake.RemoveJointActuator(both.drake.GetJointActuatorByName("odd_motor"))
    both.drake.RemoveJointActuator(both.drake.GetJointActuatorByName("weak"))
    both.drake.RemoveJoint(both.drake.GetJointByName("odd"))
    both.plant.remove_joint_actuator("odd_motor")
    both.plant.remove_joint_actuator(both.plant.actuator("weak"))
    both.plant.remove_joint("odd")
    return both


def test_removal_leaves_what_drake_leaves():
    both = removed()
    plant, drake = both.plant, both.drake
    assert plant.topology_graphviz_string() == drake.GetTopologyGraphvizString()
    assert [j.index for j in plant.joints] == [0, 1, 2]  # without gaps, unlike Drake's 0, 2, 3
    assert [a.index for a in plant.actuators] == [0]
    assert plant.num_joints == drake.num_joints()
    assert plant.num_actuators == drake.num_actuators()
    for name in ("odd", "elbow"):
        assert plant.has_joint_named(name) == drake.HasJointNamed(name)
    for name in ("odd_motor", "weak", "motor"):
        assert plant.has_joint_actuator_named(name) == drake.HasJointActuatorNamed(name)
    model = both.finalize()
    assert sorted(model.position_names()) == sorted(drake.GetPositionNames())
    assert [model.joint(i).name for i in range(model.num_joints)] == ["shoulder", "elbow", "mount", "c"]
    assert model.body("c").is_floating
    assert model.actuator("motor").velocity == model.joint("elbow").v_start


def test_removal_equals_never_added():
    ours, never = removed().plant.finalize(), three_links(extra=False).plant.finalize()
    assert ours.layout == never.layout
    assert ours.topology == never.topology


def test_a_removed_joint_takes_its_frames_and_can_come_back():
    plant = two_links()
    elbow, frames = plant.joint("elbow"), plant.num_frames
    plant.set_joint_random_position_distribution("elbow", mbjax.UniformDistribution(-1.0, 1.0))
    plant.remove_joint(elbow)
    assert plant.num_frames == frames - 1
    assert not plant.has_frame_named("elbow_parent")
    assert [f.index for f in plant.frames] == list(range(frames - 1))
    assert plant.bodies_welded_to("lower") == (2,)
    plant.add_joint(elbow)
    assert plant.finalize().layout == two_links().finalize().layout


def test_a_removed_joint_takes_its_numbers_out_of_keyframes():
    """Else another joint has them, or none fits: `lower` floats where it hung, with 7 numbers at their defaults."""
    plant = two_links()
    plant.add_keyframe("home", {"shoulder": 0.3, "elbow": 0.5}, {"elbow": 2.0})
    plant.remove_joint("elbow")
    model = plant.finalize()
    (home,) = model.keyframes
    expected = np.asarray(mbjax.default_state(model).q).copy()
    expected[model.joint("shoulder").q] = 0.3
    np.testing.assert_allclose(home.q, expected, rtol=1e-6)
    np.testing.assert_array_equal(home.v, 0.0)


def test_frames_in_use_stay():
    plant = two_links()
    plant.add_frame("tool", "elbow_parent", [0.0, 0.0, 0.1])
    plant.remove_joint("elbow")
    assert plant.has_frame_named("elbow_parent")
    plant.add_joint(mbjax.RevoluteJoint("elbow", "elbow_parent", "lower", axis=(0.2, 0.9, -0.3)))
    assert plant.finalize().num_velocities == 2


def test_renaming_an_instance():
    both = Population()
    arm = both.instance("arm")
    both.joint("revolute", "shoulder", 0, both.body("a", arm))
    both.plant.rename_model_instance("arm", "left")
    both.drake.RenameModelInstance(ModelInstanceIndex(arm), "left")
    assert both.plant.has_model_instance_named("left")
    assert not both.plant.has_model_instance_named("arm")
    assert both.plant.body("left::a").index == 1
    model = both.finalize()
    assert list(model.position_names()) == both.drake.GetPositionNames() == ["left_shoulder_q"]
    assert model.joint("left::shoulder").scoped_name == "left::shoulder"


def test_queries_before_finalize():
    both = three_links(extra=True)
    plant, drake = both.plant, both.drake
    for i in range(plant.num_bodies):
        theirs = drake.GetBodiesWeldedTo(drake.get_body(BodyIndex(i)))
        assert list(plant.bodies_welded_to(i)) == sorted(int(b.index()) for b in theirs)
    assert plant.body_indices("arm") == (1, 2)
    assert plant.body("a", model_instance="arm") is plant.bodies[1]
    assert plant.joint_index("elbow") == 2
    assert plant.num_bodies_with_name("a") == 1
    assert not plant.is_discrete
    assert mbjax.MultibodyPlant(0.01).is_discrete
    with pytest.raises(mbjax.ModelError, match=r"no body named 'a' in model instance 'Default.*'arm::a'"):
        plant.body("a", model_instance=1)
    with pytest.raises(mbjax.ModelError, match="'a' belongs to another plant"):
        plant.body(three_links(extra=False).plant.body("a"))


def test_default_positions_of_a_joint():
    plant = two_links()
    plant.set_joint_default_positions("elbow", 0.7)
    model = plant.finalize()
    np.testing.assert_array_equal(model.parameters.default_positions, [0.0, 0.7])


def test_a_joint_after_a_removed_one_keeps_its_numbers():
    """Parameters follow the joint, not its old number."""
    plant = two_links()
    plant.add_rigid_body("tip", inertia())
    plant.add_joint(hinge("wrist", "lower", "tip", damping=0.3, position_limits=(-1.0, 2.0)))
    plant.add_joint_actuator("first", "shoulder", 1.0)
    plant.add_joint_actuator("last", "wrist", 9.0)
    plant.remove_joint_actuator("first")
    plant.remove_joint("elbow")
    model = plant.finalize()
    wrist, (motor,) = model.joint("wrist"), model.layout.actuators
    assert (motor.name, motor.joint, motor.velocity) == ("last", wrist.index, wrist.v_start)
    np.testing.assert_array_equal(model.effort_upper_limits, [9.0])
    np.testing.assert_array_equal(model.parameters.joint_damping[wrist.v], [0.3])
    np.testing.assert_array_equal(model.position_upper_limits[wrist.q], [2.0])
