"""What a model says of itself equals what Drake says of its twin, element by element."""

import numpy as np
import pytest
from pydrake.multibody.tree import BodyIndex, FrameIndex, JointActuatorIndex, JointIndex, ModelInstanceIndex

import mbjax
from tests.model.populations import SIDES, Population, population

SEEDS = (0, 1, 2)
SHAPES = (mbjax.Sphere(0.1), mbjax.Box((0.1, 0.2, 0.3)))


def explicit_base(model) -> int:
    """The body a declared six-dof joint puts on the world: it floats too (Drake since 1.40 says no)."""
    return model.joint("middle::base").child_body


def ints(indices) -> list[int]:
    return [int(i) for i in indices]


@pytest.mark.parametrize("seed", SEEDS)
def test_elements_are_drakes(seed):
    model, drake = population(seed)
    assert model.num_bodies == drake.num_bodies()
    assert model.num_frames == drake.num_frames()
    assert model.num_joints == drake.num_joints()
    assert model.num_actuators == drake.num_actuators() == model.num_actuated_dofs == drake.num_actuated_dofs()
    assert model.num_model_instances == drake.num_model_instances()
    assert model.num_multibody_states == drake.num_multibody_states()
    for body in model.layout.bodies:
        theirs = drake.get_body(BodyIndex(body.index))
        assert (body.name, body.scoped_name) == (theirs.name(), theirs.scoped_name().get_full())
        assert body.model_instance == int(theirs.model_instance())
        assert body.body_frame == int(theirs.body_frame().index())
        assert body.is_floating == (theirs.is_floating_base_body() or body.index == explicit_base(model))
        assert body.has_quaternion_dofs == theirs.has_quaternion_dofs()
    for frame in model.layout.frames:
        theirs = drake.get_frame(FrameIndex(frame.index))
        assert (frame.name, frame.scoped_name) == (theirs.name(), theirs.scoped_name().get_full())
        assert (frame.body, frame.model_instance) == (int(theirs.body().index()), int(theirs.model_instance()))
        assert frame.is_body_frame == theirs.is_body_frame()
    for joint in model.layout.joints:
        theirs = drake.get_joint(JointIndex(joint.index))
        assert (joint.name, joint.kind) == (theirs.name(), theirs.type_name())
        assert joint.model_instance == int(theirs.model_instance())
        assert (joint.parent_body, joint.child_body) == (
            int(theirs.parent_body().index()),
            int(theirs.child_body().index()),
        )
        assert (joint.num_positions, joint.num_velocities) == (theirs.num_positions(), theirs.num_velocities())
        assert list(joint.position_suffixes) == [theirs.position_suffix(k) for k in range(joint.num_positions)]
        assert list(joint.velocity_suffixes) == [theirs.velocity_suffix(k) for k in range(joint.num_velocities)]
    for actuator in model.layout.actuators:
        theirs = drake.get_joint_actuator(JointActuatorIndex(actuator.index))
        assert (actuator.name, actuator.joint) == (theirs.name(), int(theirs.joint().index()))
        assert (actuator.index, actuator.model_instance) == (theirs.input_start(), int(theirs.model_instance()))


@pytest.mark.parametrize("seed", SEEDS)
def test_instances_are_drakes(seed):
    """Counts, members, and the order of coordinates within an instance."""
    model, drake = population(seed)
    q, v, u = (np.arange(n) + 0.5 for n in (model.num_positions, model.num_velocities, model.num_actuators))
    to_drake_q, to_drake_v = (
        np.array([ours.index(name) for name in theirs])
        for ours, theirs in (
            (model.position_names(), drake.GetPositionNames()),
            (model.velocity_names(), drake.GetVelocityNames()),
        )
    )
    for i in range(model.num_model_instances):
        index, instance = ModelInstanceIndex(i), model.model_instance(i)
        assert instance.name == drake.GetModelInstanceName(index) == model.model_instance_name(i)
        assert model.model_instance_index(instance.name) == i
        assert list(instance.bodies) == ints(drake.GetBodyIndices(index)) == list(model.body_indices(instance.name))
        assert list(instance.frames) == ints(drake.GetFrameIndices(index)) == list(model.frame_indices(i))
        assert list(instance.joints) == ints(drake.GetJointIndices(index)) == list(model.joint_indices(i))
        assert list(instance.actuators) == ints(drake.GetJointActuatorIndices(index))
        assert list(model.actuated_joint_indices(i)) == ints(drake.GetActuatedJointIndices(index))
        assert instance.num_positions == drake.num_positions(index)
        assert instance.num_velocities == drake.num_velocities(index)
        assert instance.num_states == drake.num_multibody_states(index)
        assert instance.num_actuators == drake.num_actuators(index)
        assert instance.num_actuated_dofs == drake.num_actuated_dofs(index)
        np.testing.assert_array_equal(q[instance.q], drake.GetPositionsFromArray(index, q[to_drake_q]))
        np.testing.assert_array_equal(v[instance.v], drake.GetVelocitiesFromArray(index, v[to_drake_v]))
        np.testing.assert_array_equal(u[instance.u], drake.GetActuationFromArray(index, u))
    assert list(model.joint_indices()) == ints(drake.GetJointIndices())
    assert list(model.joint_actuator_indices()) == ints(drake.GetJointActuatorIndices())


@pytest.mark.parametrize("seed", SEEDS)
def test_names_are_found_as_in_drake(seed):
    model, drake = population(seed)
    names = {"link0", "link3", "alone", "joint2", "motor4", "tip1", "base", "nobody"}
    for ours, theirs in (
        (model.has_body_named, drake.HasBodyNamed),
        (model.has_frame_named, drake.HasFrameNamed),
        (model.has_joint_named, drake.HasJointNamed),
        (model.has_joint_actuator_named, drake.HasJointActuatorNamed),
    ):
        for name in names:
            try:
                expected = theirs(name)
            except RuntimeError:  # in several instances
                with pytest.raises(mbjax.ModelError, match=f"named '{name}'; say which: '.*::{name}', '.*::{name}'"):
                    ours(name)
            else:
                assert ours(name) == expected
            for side in SIDES:
                instance = drake.GetModelInstanceByName(side)
                assert ours(name, side) == ours(f"{side}::{name}") == theirs(name, instance)
    for name in names:
        assert model.num_bodies_with_name(name) == drake.NumBodiesWithName(name)
    for side in SIDES:
        instance = drake.GetModelInstanceByName(side)
        assert model.body("link3", side).index == int(drake.GetBodyByName("link3", instance).index())
        assert model.frame("link3", side).index == int(drake.GetFrameByName("link3", instance).index())
        assert model.body_index("link3", side) == model.body_index(f"{side}::link3") == model.body("link3", side).index
    assert model.has_model_instance_named("left")
    assert not model.has_model_instance_named("link0")
    assert model.has_joint(model.num_joints - 1)
    assert not model.has_joint(model.num_joints)
    assert not model.has_joint_actuator(model.num_actuators)


def test_what_is_not_found_is_named():
    model, _ = population(0)
    for call, message in (
        (lambda: model.body("lnk3", "left"), r"no body named 'lnk3' in model instance 'left'. Did you mean 'link3'"),
        (
            lambda: model.body("alone", "left"),
            r"named 'alone' in model instance 'left'. There is 'DefaultModelInst.*::",
        ),
        (lambda: model.body(0, "left"), r"body 0 \('world'\) belongs to 'WorldModelInstance', not .* 'left'"),
        (lambda: model.joint(-1), r"there is no joint -1: indices run from 0 to"),
        (lambda: model.frame(1.5), "the frame must be given by name or index, got 1.5"),
        (lambda: model.actuator(True), "the actuator must be given by name or index, got True"),
        (lambda: model.model_instance("lefd"), "no model instance named 'lefd'. Did you mean 'left'"),
        (lambda: model.model_instance_name(99), "no model instance 99: indices run from 0 to"),
        (lambda: model.force_element(0), "no force element 0: there are none"),
        (lambda: model.mobilizer(0), "is the world and has no mobilizer"),
        (lambda: model.body("world").floating_positions_start, "'world' does not float: it is the world"),
        (lambda: model.body("hovering").floating_position_suffix(0), r"float: joint 'hover' \(quaternion_floating\)"),
        (lambda: model.unique_free_base_body("right"), "'right' has no unique floating base body"),
        (lambda: model.bodies_kinematically_affected_by(["anchor"]), "joint 'anchor' is a weld"),
    ):
        with pytest.raises(mbjax.ModelError, match=message):
            call()
    assert model.body(np.int64(3)).index == 3


@pytest.mark.parametrize("seed", SEEDS)
def test_tree_is_drakes(seed):
    model, drake = population(seed)
    bodies = [drake.get_body(BodyIndex(i)) for i in range(model.num_bodies)]
    for i, body in enumerate(bodies):
        assert list(model.bodies_welded_to(i)) == sorted(int(b.index()) for b in drake.GetBodiesWeldedTo(body))
        assert model.is_anchored(i) == drake.IsAnchored(body)
    expected = {int(i) for i in drake.GetFloatingBaseBodies()} | {explicit_base(model)}
    assert set(model.floating_base_bodies()) == expected
    moving = [j.index for j in model.layout.joints if j.kind != "weld"]
    for chosen in ([], moving[:1], moving[2:5], moving[-1:], moving):
        expected = drake.GetBodiesKinematicallyAffectedBy([JointIndex(j) for j in chosen])
        assert list(model.bodies_kinematically_affected_by(chosen)) == ints(expected)
    for i in range(2, model.num_model_instances):
        unique = drake.HasUniqueFloatingBaseBody(ModelInstanceIndex(i))
        explicit = model.body(explicit_base(model)).model_instance == i
        assert model.has_unique_free_base_body(i) == (unique or explicit)
        if explicit:
            assert model.unique_free_base_body(i).index == explicit_base(model)
        if unique:
            theirs = drake.GetUniqueFloatingBaseBodyOrThrow(ModelInstanceIndex(i))
            assert model.unique_free_base_body(i).index == int(theirs.index())
    assert model.topology_graphviz_string() == drake.GetTopologyGraphvizString()
    assert model.num_mobilizers == len(moving) == model.topology.num_mobods - 1
    assert [model.mobilizer(m).mobod for m in range(1, model.num_mobilizers + 1)] == list(
        range(1, model.num_mobilizers + 1)
    )
    assert model.tree_height == 1 + max(depth(model, joint) for joint in model.layout.joints)


def depth(model, joint) -> int:
    """Moving joints from the world to the child, this one included."""
    inboard = model.body(joint.parent_body).inboard_joint
    return (joint.kind != "weld") + (0 if inboard is None else depth(model, inboard))


@pytest.mark.parametrize("seed", SEEDS)
def test_floating_bodies_are_drakes(seed):
    """Where their coordinates start and what they are called."""
    model, drake = population(seed)
    q_names, v_names = model.position_names(), model.velocity_names()
    for index in drake.GetFloatingBaseBodies():
        ours, theirs = model.body(int(index)), drake.get_body(index)
        q, v = theirs.floating_positions_start(), theirs.floating_velocities_start_in_v()
        assert q_names[ours.floating_positions_start] == drake.GetPositionNames()[q]
        assert v_names[ours.floating_velocities_start_in_v] == drake.GetVelocityNames()[v]
        suffixes = [theirs.floating_position_suffix(k) for k in range(7)]
        assert [ours.floating_position_suffix(k) for k in range(7)] == suffixes
        suffixes = [theirs.floating_velocity_suffix(k) for k in range(6)]
        assert [ours.floating_velocity_suffix(k) for k in range(6)] == suffixes
    base = model.body(explicit_base(model))
    assert [base.floating_position_suffix(k) for k in range(6)] == ["qx", "qy", "qz", "x", "y", "z"]
    assert q_names[base.floating_positions_start] == "middle_base_qx"


@pytest.mark.parametrize("seed", SEEDS)
def test_limits_are_drakes(seed):
    model, drake = population(seed)
    to_drake_q, to_drake_v = (
        np.array([ours.index(name) for name in theirs])
        for ours, theirs in (
            (model.position_names(), drake.GetPositionNames()),
            (model.velocity_names(), drake.GetVelocityNames()),
        )
    )
    every = slice(None)
    for what, order in (
        ("position", to_drake_q),
        ("velocity", to_drake_v),
        ("acceleration", to_drake_v),
        ("effort", every),
    ):
        for side in ("lower", "upper"):
            ours = np.asarray(getattr(model, f"{what}_{side}_limits"))[order]
            theirs = getattr(drake, f"Get{what.title()}{side.title()}Limits")()
            np.testing.assert_array_equal(ours, theirs)
            assert np.isfinite(theirs).any()
            assert np.isinf(theirs).any()


def test_gravity_and_geometry():
    both = Population()
    left, right = both.instance("left"), both.instance("right")
    a, b = both.body("a", left), both.body("b", right)
    for plant in (both.plant, both.drake):
        plant.set_gravity_enabled(right if plant is both.plant else ModelInstanceIndex(right), False)
    both.plant.set_gravity([1.0, 2.0, 3.0])
    ball, box = (mbjax.Geometry(type(shape).__name__, shape) for shape in SHAPES)
    both.plant.register_visual_geometry("a", ball)
    both.plant.register_visual_geometry("a", box)
    both.plant.register_collision_geometry("b", ball, 1.0)
    plant, model = both.plant, both.finalize()
    for i in range(model.num_model_instances):
        expected = both.drake.is_gravity_enabled(ModelInstanceIndex(i))
        assert model.is_gravity_enabled(i) == plant.is_gravity_enabled(i) == expected
        assert model.model_instance(i).is_gravity_enabled == expected
    np.testing.assert_array_equal(model.gravity_vector, [1.0, 2.0, 3.0])
    for queries in (plant, model):
        assert (queries.num_visual_geometries, queries.num_collision_geometries) == (2, 1)
    assert model.visual_geometries_for_body("a") == (ball, box)
    assert model.collision_geometries_for_body("a") == ()
    assert model.collect_registered_geometries([a, b]) == (ball,)


def test_force_elements_are_counted():
    both = Population()
    both.joint("revolute", "hinge", 0, both.body("a"))
    spring = mbjax.RevoluteSpring("hinge", 0.1, 2.0)
    both.plant.add_force_element(spring)
    assert both.plant.num_force_elements == 1
    assert both.plant.force_element(0) is spring
    model = both.plant.finalize()
    assert model.num_force_elements == 1
    assert isinstance(model.force_element(0), mbjax.RevoluteSpring)
