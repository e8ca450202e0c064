"""Removes joints and actuators from a plant before finalize, and renumbers the others without gaps."""

from typing import Any

from mbjax.errors import ModelError
from mbjax.joints import AbstractJoint
from mbjax.model import Frame, JointActuator

from .queries import PlantQueries


def remove_joint(plant: PlantQueries, joint: AbstractJoint) -> None:
    """Removes a joint, and the frames it made for itself unless something else uses them."""
    call = f"remove_joint('{joint.name}')"
    drives = [f"'{a.name}'" for a in plant.actuators if a.joint is joint]
    if drives:
        raise ModelError(f"{call}: actuator {', '.join(drives)} drives it; call remove_joint_actuator first.")
    related = [m for m in plant.mimics if joint in (m.follower, m.leader)]
    if related:
        raise ModelError(
            f"{call}: joint '{related[0].follower.name}' mimics '{related[0].leader.name}'; remove joints before "
            "add_mimic."
        )
    if plant.force_elements:
        raise ModelError(
            f"{call}: the plant has force elements, which may refer to the joint or to a joint numbered after it; "
            "remove joints before adding force elements."
        )
    if plant.constraints:
        names = ", ".join(f"'{constraint.name}'" for constraint in plant.constraints)
        raise ModelError(
            f"{call}: the plant has constraints ({names}), which may refer to the joint or to a joint numbered after "
            "it; call remove_constraint first, or remove joints before adding constraints."
        )
    plant.random_distributions = [entry for entry in plant.random_distributions if entry[1] is not joint]
    for keyframe in plant.keyframes:
        keyframe.positions.pop(joint, None)
        keyframe.velocities.pop(joint, None)
    take_out(plant, "joint", plant.joints, joint)
    if joint.X_PF is not None:
        joint.parent = release_frame(plant, joint.parent)
    if joint.X_BM is not None:
        joint.child = release_frame(plant, joint.child)


def remove_joint_actuator(plant: PlantQueries, actuator: JointActuator) -> None:
    """Removes an actuator; later ones move up in u."""
    take_out(plant, "actuator", plant.actuators, actuator)


def release_frame(plant: PlantQueries, frame: Frame) -> Frame:
    """Removes a frame if nothing is fixed to it any more; returns the frame it was fixed in."""
    parent = frame.parent
    assert parent is not None  # frames that joints make are fixed in another
    used = any(f.parent is frame for f in plant.frames) or any(frame in (j.parent, j.child) for j in plant.joints)
    if not used:
        take_out(plant, "frame", plant.frames, frame)
    return parent


def take_out(plant: PlantQueries, what: str, elements: list, element: Any) -> None:
    """Removes an element, frees its name and renumbers the others."""
    elements.remove(element)
    plant.names.discard((what, element.model_instance, element.name))
    element.index = -1
    for index, other in enumerate(elements):
        other.index = index
