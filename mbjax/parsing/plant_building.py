"""Adds a `RobotRecord` to a plant, by all of its calls or none."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from mbjax.errors import ModelError, ModelWarning, ParseError
from mbjax.joints import QuaternionFloatingJoint
from mbjax.model import REPAIRED
from mbjax.plant import MultibodyPlant
from mbjax.plant.number_checks import find_overflow

from .load_notes import LoadNotes
from .robot_records import WORLD, RobotRecord

CALLER_OF_PARSER = 4  # stack frames: add_robot, Parser._add_models, add_models or load, and its caller
BASES = ("file", "fixed", "floating")


def add_robot(plant: MultibodyPlant, robot: RobotRecord, notes: LoadNotes, base: str, dtype: Any) -> int:
    """Adds the robot as a new model instance and returns its index; on an error the plant is unchanged.

    Numbers that a model of `dtype` could not compute with are a `ParseError`. Everything is tried on an empty plant
    first, and warnings are given before the first change.
    """
    _check_base(robot, base)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        trial = MultibodyPlant()
        _add_elements(trial, robot, robot.name, base)
    _reject_overflow(trial, robot, dtype)
    for text in notes.warnings():
        warnings.warn(text, ModelWarning, stacklevel=CALLER_OF_PARSER)
    name = _free_instance_name(plant, robot.name)
    if name != robot.name:
        message = f"the plant has a model instance of that name; this one is called '{name}'"
        notes.add(REPAIRED, f"robot '{robot.name}'", message, f"{robot.file}:{robot.line}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        instance = _add_elements(plant, robot, name, base)
    for entry in notes.entries:
        plant.report.add(entry.status, entry.element, entry.message, entry.place)
    return instance


def _reject_overflow(trial: MultibodyPlant, robot: RobotRecord, dtype: Any) -> None:
    found = find_overflow(trial, dtype)
    if found is not None:
        line = robot.line if found.source is None else int(found.source.rsplit(":", 1)[1])
        raise ParseError(found.message, file=robot.file, line=line)


def _check_base(robot: RobotRecord, base: str) -> None:
    if base != "floating" or robot.root_links():
        return
    joint = next(joint for joint in robot.joints if joint.parent == WORLD)
    raise ParseError(
        f"base=\"floating\": the file itself attaches '{joint.child}' to the world, by joint '{joint.name}'. "
        'Load with base="file", or remove that joint.',
        file=robot.file,
        line=joint.line,
    )


def _free_instance_name(plant: MultibodyPlant, name: str) -> str:
    """Returns `name`, or `name_1`, `name_2`, … where it is taken, as Drake's auto-renaming does."""
    candidate, count = name, 0
    while candidate in plant.instance_names:
        count += 1
        candidate = f"{name}_{count}"
    return candidate


def _add_elements(plant: MultibodyPlant, robot: RobotRecord, instance_name: str, base: str) -> int:
    instance = plant.add_model_instance(instance_name)
    bodies = {WORLD: plant.world_body}
    for link in robot.links:
        with _placed(robot, link.line):
            if link.name != WORLD:
                bodies[link.name] = plant.add_rigid_body(
                    link.name, link.inertia, instance, on_invalid_inertia="warn", source=link.place
                )
            for shape in link.visual:
                plant.register_visual_geometry(bodies[link.name], shape)
            for collision in link.collision:
                plant.register_collision_geometry(
                    bodies[link.name], collision.geometry, collision.properties, source=collision.place
                )
    joints = {}
    for record in robot.joints:
        with _placed(robot, record.line):
            joint = record.joint_class(record.name, bodies[record.parent], bodies[record.child], **record.options)
            joints[record.name] = plant.add_joint(joint, source=record.place)
    for mimic in robot.mimics:
        with _placed(robot, mimic.line):
            pair, numbers = (joints[mimic.joint], joints[mimic.leader]), (mimic.multiplier, mimic.offset)
            if mimic.is_coupled:
                name = f"{instance_name}::{mimic.joint} mimics {mimic.leader}"
                plant.add_coupler_constraint(*pair, *numbers, name=name)
            else:
                plant.add_mimic(*pair, *numbers)
    for actuator in robot.actuators:
        with _placed(robot, actuator.line):
            plant.add_joint_actuator(actuator.name, joints[actuator.joint], source=actuator.place, **actuator.options)
    for frame in robot.frames:
        with _placed(robot, frame.line):
            plant.add_frame(frame.name, bodies[frame.link], frame.X_PF, instance, source=frame.place)
    for pair in robot.collision_filters:
        groups = [(name, [bodies[link] for link in links]) for name, links in (pair.group_A, pair.group_B)]
        plant.exclude_collision_geometries_with_collision_filter_group_pair(*groups)
    _add_filtered_pairs(plant, robot, instance, bodies)
    _add_laws(plant, robot, instance_name, bodies, joints)
    for link in robot.root_links():
        with _placed(robot, link.line):
            if base == "fixed":
                plant.weld_frames(plant.world_frame, bodies[link.name])
            elif base == "floating":
                floating = QuaternionFloatingJoint(link.name, plant.world_body, bodies[link.name])
                plant.add_joint(floating, source=link.place)
    return instance


def _add_filtered_pairs(plant: MultibodyPlant, robot: RobotRecord, instance: int, bodies: dict[str, Any]) -> None:
    """Geometries of the file that must not touch, one group for each of them."""
    if robot.lists_contacts:
        plant.instances_that_list_contacts.add(instance)
    if not robot.filtered_pairs:
        return
    shapes = {f"{link.name}::{shape.geometry.name}": shape.geometry for link in robot.links for shape in link.collision}
    others: dict[str, list[Any]] = {}
    for one, other in robot.filtered_pairs:
        others.setdefault(one, []).append(shapes[other])
    for name, group in others.items():
        plant.exclude_collision_geometries_with_collision_filter_group_pair(
            (name, [shapes[name]]), (f"not with {name}", group)
        )


def _add_laws(
    plant: MultibodyPlant, robot: RobotRecord, instance_name: str, bodies: dict[str, Any], joints: dict[str, Any]
) -> None:
    """Gravity, force elements, constraints, default positions and keyframes."""
    if robot.gravity is not None:
        plant.set_gravity(robot.gravity)
    for name, positions in robot.default_positions.items():
        joints[name].set_default_positions(positions)
    for record in robot.force_elements:
        with _placed(robot, record.line):
            options = record.options | {"joint": joints[record.options["joint"]]}
            plant.add_force_element(record.element_class(**options))
    for record in robot.constraints:
        with _placed(robot, record.line):
            options = {key: _resolved(key, value, bodies, joints) for key, value in record.options.items()}
            name = f"{instance_name}::{record.name}" if record.name in plant.constraint_names else record.name
            getattr(plant, f"add_{record.kind}_constraint")(**options, name=name)
    for keyframe in robot.keyframes:
        with _placed(robot, keyframe.line):
            taken = {known.name for known in plant.keyframes}
            name = f"{instance_name}::{keyframe.name}" if keyframe.name in taken else keyframe.name
            positions = {joints[joint]: q for joint, q in keyframe.positions.items()}
            velocities = {joints[joint]: v for joint, v in keyframe.velocities.items()}
            plant.add_keyframe(name, positions, velocities, time=keyframe.time)


def _resolved(key: str, value: Any, bodies: dict[str, Any], joints: dict[str, Any]) -> Any:
    """The body or joint that an argument names; other arguments as they are."""
    if key.startswith("body"):
        return bodies[value]
    return joints[value] if key.startswith("joint") else value


@contextmanager
def _placed(robot: RobotRecord, line: int) -> Iterator[None]:
    """Turns the builder's errors into a `ParseError` with file and line."""
    try:
        yield
    except ParseError:
        raise
    except ModelError as error:
        raise ParseError(str(error), file=robot.file, line=line) from None
