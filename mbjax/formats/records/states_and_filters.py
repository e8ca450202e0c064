"""Default positions, keyframes and filtered pairs of a `RobotRecord` → calls of the plant."""

from collections.abc import Callable, Mapping
from typing import Any

from mbjax.errors import ModelError, ParseError
from mbjax.geometry import Geometry
from mbjax.joints import AbstractJoint
from mbjax.plant import MultibodyPlant

from .robot_records import RobotRecord


def add_filtered_pairs(
    plant: MultibodyPlant, robot: RobotRecord, instance: int, shapes: Mapping[str, Geometry]
) -> None:
    """Geometries of the file that must not touch, one group for each of them; `shapes` by `link::name` in the file."""
    if robot.lists_contacts:
        plant.instances_that_list_contacts.add(instance)
    if not robot.filtered_pairs:
        return
    others: dict[str, list[Geometry]] = {}
    for one, other in robot.filtered_pairs:
        others.setdefault(one, []).append(shapes[other])
    for name, group in others.items():
        plant.exclude_collision_geometries_with_collision_filter_group_pair(
            (name, [shapes[name]]), (f"not with {name}", group)
        )


def add_states(
    plant: MultibodyPlant, robot: RobotRecord, instance_name: str, joint_of: Callable[[str], AbstractJoint]
) -> None:
    """Default positions, and keyframes, named `instance::name` where the plant has one of that name."""
    for joint, q in robot.default_positions.items():
        joint_of(joint).set_default_positions(q)
    for keyframe in robot.keyframes:
        taken = {known.name for known in plant.keyframes}
        name = f"{instance_name}::{keyframe.name}" if keyframe.name in taken else keyframe.name
        positions: dict[Any, Any] = {joint_of(joint): q for joint, q in keyframe.positions.items()}
        velocities: dict[Any, Any] = {joint_of(joint): v for joint, v in keyframe.velocities.items()}
        try:
            plant.add_keyframe(name, positions, velocities, time=keyframe.time)
        except ModelError as error:
            raise ParseError(str(error), file=robot.file, line=keyframe.line) from None
