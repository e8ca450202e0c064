"""Comparison of a plant with Drake's by names, where both read a file of several models."""

import logging
from pathlib import Path

import numpy as np
from pydrake.multibody.parsing import Parser as DrakeParser
from pydrake.multibody.plant import AddMultibodyPlantSceneGraph
from pydrake.multibody.tree import BodyIndex, FrameIndex
from pydrake.systems.framework import DiagramBuilder

from mbjax.plant import MultibodyPlant

MADE_BY_JOINTS = ("_parent", "_child", "_F", "_M")


def drake_plant(path: Path, packages: dict[str, Path] | None = None):
    """The plant of a file, with geometry; and what keeps it alive."""
    logging.getLogger("drake").setLevel(logging.ERROR)
    builder = DiagramBuilder()
    plant, _ = AddMultibodyPlantSceneGraph(builder, 0.0)
    parser = DrakeParser(plant)
    for name, folder in (packages or {}).items():
        parser.package_map().Add(name, str(folder))
    parser.AddModels(str(path))
    return plant, builder


def assert_same_by_name(ours: MultibodyPlant, theirs) -> None:
    """Instances, bodies, frames, joints, actuators: the names, and every number that the file gives."""
    bodies = {scoped(theirs, b): b for b in (theirs.get_body(BodyIndex(i)) for i in range(1, theirs.num_bodies()))}
    mine = {own(ours, body): body for body in ours.bodies[1:]}
    assert set(mine) == set(bodies)
    for name, body in mine.items():
        M = bodies[name].default_spatial_inertia().CopyToFullMatrix6()
        inertia = np.zeros((6, 6)) if body.inertia is None else body.inertia.copy_to_full_matrix6()
        np.testing.assert_allclose(inertia, M, rtol=1e-12, atol=1e-12 * max(1.0, np.abs(M).max()))
    assert_same_joints(ours, theirs)
    assert_same_frames(ours, theirs)
    actuators = [theirs.get_joint_actuator(i) for i in theirs.GetJointActuatorIndices()]
    assert {own(ours, a): numbers_of(a) for a in ours.actuators} == {
        scoped(theirs, a): (
            a.effort_limit(), a.default_rotor_inertia(), a.default_gear_ratio(),
            (a.get_controller_gains().p, a.get_controller_gains().d) if a.has_controller() else (None, None),
        )
        for a in actuators
    }  # fmt: skip
    assert len(ours.collisions) == theirs.num_collision_geometries()
    assert len(ours.constraints) == theirs.num_constraints()


def assert_same_joints(ours: MultibodyPlant, theirs) -> None:
    joints = {scoped(theirs, j): j for j in (theirs.get_joint(i) for i in theirs.GetJointIndices())}
    mine = {own(ours, joint): joint for joint in ours.joints}
    assert set(mine) == set(joints)
    for name, joint in mine.items():
        reference = joints[name]
        assert joint.kind == reference.type_name()
        ends = (joint.parent, reference.frame_on_parent()), (joint.child, reference.frame_on_child())
        mine_F, mine_M = (pose_in_body(frame) for frame, _ in ends)
        X_F, X_M = (other.GetFixedPoseInBodyFrame().GetAsMatrix4() for _, other in ends)
        assert all(frame.body.name == other.body().name() for frame, other in ends)
        if hasattr(reference, "X_FM"):  # a weld: what is between the bodies counts
            mine_F, mine_M = mine_F @ np.linalg.inv(mine_M), np.eye(4)
            X_F, X_M = X_F @ reference.X_FM().GetAsMatrix4() @ np.linalg.inv(X_M), np.eye(4)
        np.testing.assert_allclose(mine_F, X_F, atol=1e-12)
        np.testing.assert_allclose(mine_M, X_M, atol=1e-12)
        for what in ("revolute_axis", "translation_axis", "screw_axis"):
            if hasattr(reference, what):
                np.testing.assert_allclose(joint.axis, getattr(reference, what)(), atol=1e-12)
        if hasattr(reference, "screw_pitch"):
            np.testing.assert_allclose(joint.screw_pitch, reference.screw_pitch(), rtol=1e-15)
        np.testing.assert_array_equal(joint.damping, reference.default_damping_vector())
        for limits, lower, upper in (
            (joint.position_limits, reference.position_lower_limits(), reference.position_upper_limits()),
            (joint.velocity_limits, reference.velocity_lower_limits(), reference.velocity_upper_limits()),
            (joint.acceleration_limits, reference.acceleration_lower_limits(), reference.acceleration_upper_limits()),
        ):
            np.testing.assert_array_equal(limits, np.stack([lower, upper]).reshape(limits.shape))


def assert_same_frames(ours: MultibodyPlant, theirs) -> None:
    frames = [theirs.get_frame(FrameIndex(i)) for i in range(1, theirs.num_frames())]
    frames = {scoped(theirs, f): f for f in frames if not f.name().endswith(MADE_BY_JOINTS)}
    mine = {own(ours, frame): frame for frame in ours.frames[1:] if not frame.name.endswith(MADE_BY_JOINTS)}
    assert set(mine) == set(frames)
    for name, frame in mine.items():
        assert frame.body.name == frames[name].body().name()
        np.testing.assert_allclose(
            pose_in_body(frame), frames[name].GetFixedPoseInBodyFrame().GetAsMatrix4(), atol=1e-12
        )


def scoped(plant, element) -> tuple[str, str]:
    return plant.GetModelInstanceName(element.model_instance()), element.name()


def own(plant: MultibodyPlant, element) -> tuple[str, str]:
    return plant.instance_names[element.model_instance], element.name


def numbers_of(actuator) -> tuple:
    return actuator.effort_limit, actuator.rotor_inertia, actuator.gear_ratio, (actuator.kp, actuator.kd)


def pose_in_body(frame) -> np.ndarray:
    X_BF = np.eye(4)
    while frame.parent is not None:
        X_PF = np.eye(4)
        X_PF[:3, :3], X_PF[:3, 3] = np.asarray(frame.X_PF.rotation), np.asarray(frame.X_PF.translation)
        X_BF, frame = X_PF @ X_BF, frame.parent
    return X_BF
