"""Comparison with Drake, the reference parser."""

import jax.numpy as jnp
import numpy as np
import pytest
from pydrake.multibody.plant import MultibodyPlant as DrakePlant
from pydrake.multibody.tree import BodyIndex, FrameIndex, JointIndex

from mbjax.plant import MultibodyPlant


@pytest.fixture
def assert_same_plant():
    """Compares a plant with Drake's, both not finalized: names, order and every number the parsers read."""
    return check_same_plant


def check_same_plant(ours: MultibodyPlant, theirs: DrakePlant) -> None:
    """Mass properties that no body can have are not compared: Drake replaces them by those of a ball."""
    bodies = [theirs.get_body(BodyIndex(i)) for i in range(1, theirs.num_bodies())]
    not_physical = {e.element for e in ours.report.entries if "non-physical inertia" in e.message}
    not_physical |= {e.element.replace("link", "body") for e in ours.report.entries if "mass is 0" in e.message}
    tolerance = 1e-12 if jnp.zeros(0).dtype == jnp.float64 else 1e-6
    assert [body.name for body in ours.bodies[1:]] == [body.name() for body in bodies]
    for body, reference in zip(ours.bodies[1:], bodies, strict=True):
        if f"body '{body.name}'" in not_physical:
            continue
        M = reference.default_spatial_inertia().CopyToFullMatrix6()
        mine = np.zeros((6, 6)) if body.inertia is None else body.inertia.copy_to_full_matrix6()
        np.testing.assert_allclose(mine, M, rtol=tolerance, atol=tolerance * max(1.0, np.abs(M).max()))
    joints = [theirs.get_joint(JointIndex(i)) for i in range(theirs.num_joints())]
    assert [joint.name for joint in ours.joints] == [joint.name() for joint in joints]
    for mine, reference in zip(ours.joints, joints, strict=True):
        assert_same_joint(mine, reference)
    actuators = [theirs.get_joint_actuator(i) for i in theirs.GetJointActuatorIndices()]
    assert [a.name for a in ours.actuators] == [a.name() for a in actuators]
    for mine, reference in zip(ours.actuators, actuators, strict=True):
        assert mine.joint.name == reference.joint().name()
        assert mine.effort_limit == reference.effort_limit()
        assert mine.rotor_inertia == reference.default_rotor_inertia()
        assert mine.gear_ratio == reference.default_gear_ratio()
        gains = reference.get_controller_gains() if reference.has_controller() else None
        assert (mine.kp, mine.kd) == ((None, None) if gains is None else (gains.p, gains.d))
    names = [theirs.get_frame(FrameIndex(i)).name() for i in range(theirs.num_frames())]
    assert [f.name for f in ours.frames if f.name in names or not is_left_out(f)] == names


def is_left_out(frame) -> bool:
    """Whether it is a joint's that Drake no longer adds (1.58), since it is the frame of the parent."""
    is_of_parent = frame.X_PF is not None and np.all(frame.X_PF.as_matrix4() == np.eye(4))
    return frame.name.endswith("_parent") and is_of_parent


def assert_same_joint(mine, reference) -> None:
    assert mine.kind == reference.type_name()
    assert mine.parent.body.name == reference.parent_body().name()
    assert mine.child.body.name == reference.child_body().name()
    for frame, other in (
        (mine.parent, reference.frame_on_parent()),
        (mine.child, reference.frame_on_child()),
    ):
        X = other.GetFixedPoseInBodyFrame()
        rotation, translation = (
            (np.eye(3), np.zeros(3)) if frame.X_PF is None else (frame.X_PF.rotation, frame.X_PF.translation)
        )
        np.testing.assert_allclose(rotation, X.rotation().matrix(), atol=1e-14)
        np.testing.assert_allclose(translation, X.translation(), atol=1e-14)
    if hasattr(reference, "revolute_axis"):
        np.testing.assert_allclose(mine.axis, reference.revolute_axis(), atol=1e-15)
    if hasattr(reference, "translation_axis"):
        np.testing.assert_allclose(mine.axis, reference.translation_axis(), atol=1e-15)
    if hasattr(reference, "screw_axis"):
        np.testing.assert_allclose(mine.axis, reference.screw_axis(), atol=1e-15)
        assert mine.screw_pitch == reference.screw_pitch()
    np.testing.assert_array_equal(mine.damping, reference.default_damping_vector())
    lowest, highest = reference.position_lower_limits(), reference.position_upper_limits()
    lowest, highest = np.where(lowest <= -1e16, -np.inf, lowest), np.where(highest >= 1e16, np.inf, highest)
    for ours, lower, upper in (
        (mine.position_limits, lowest, highest),  # Drake keeps ±1e16
        (mine.velocity_limits, reference.velocity_lower_limits(), reference.velocity_upper_limits()),
        (
            mine.acceleration_limits,
            reference.acceleration_lower_limits(),
            reference.acceleration_upper_limits(),
        ),
    ):
        np.testing.assert_array_equal(ours, np.stack([lower, upper]).reshape(ours.shape))
