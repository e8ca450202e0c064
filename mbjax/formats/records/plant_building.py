"""Adds a `RobotRecord` to a plant, by all of its calls or none."""

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from mbjax.errors import ModelError, ModelWarning, ParseError
from mbjax.joints import QuaternionFloatingJoint, WeldJoint
from mbjax.model import IGNORED, REPAIRED, USED, Body, DeformableMaterial, matching_places
from mbjax.model.elements import rotation_quaternion
from mbjax.plant import MultibodyPlant
from mbjax.plant.number_checks import find_overflow
from mbjax.spatial import RigidTransform

from ..notes.load_notes import LoadNotes
from .degrees import note_limits_in_degrees
from .record_names import Elements, instance_names, with_free_name
from .robot_records import WORLD, ActuatorRecord, ConstraintRecord, FrameRecord, JointRecord, RobotRecord
from .states_and_filters import add_filtered_pairs, add_states

CALLER_OF_PARSER = 4  # add_robots, Parser._add_models, add_models or load, and then whoever called that
BASES = ("file", "fixed", "floating")
ACTUATORS = ("file", "joints")
UNDRIVEN = (
    'the file has no actuators, and an effort limit makes none, as in Drake; say actuators="joints" for one at each '
    'joint, or actuators="file" if none is meant. Joints with effort limits'
)
BODIES_OF = {"distance": ("body_A", "body_B"), "ball": ("body_A", "body_B"), "weld": ("body_A", "body_B")}
JOINTS_OF = {"coupler": ("joint0", "joint1")}


class NeedsTimeStepError(ParseError):
    """A file has deformable bodies, which a continuous plant cannot hold."""


def add_robots(
    plant: MultibodyPlant,
    robots: Sequence[RobotRecord],
    notes: LoadNotes,
    base: str,
    actuators: str | Sequence[str] | None,
    dtype: Any,
    *,
    is_of_caller: bool = True,
) -> list[int]:
    """Adds each robot as a new model instance and returns these; on an error a caller's plant is unchanged.

    Numbers that a model of `dtype` could not compute with are a `ParseError`. Everything is tried on an empty plant
    first, and warnings are given before the first change; a plant that is thrown away on an error needs no trial.
    """
    require_discrete_plant(plant, robots)
    note_what_deformables_lack(robots, notes)
    note_limits_in_degrees(robots, notes)
    chosen = None if actuators is None or isinstance(actuators, str) else chosen_joints(robots, actuators)
    for k, robot in enumerate(robots):
        if chosen is not None:
            keep_actuators(robot, chosen[k], notes)
            add_missing_actuators(robot, notes, chosen[k])
        elif actuators == "joints":
            add_missing_actuators(robot, notes)
        else:
            note_missing_actuators(robot, notes, is_wanted=actuators == "file")
    names = instance_names(robots, plant.instance_names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        trial = MultibodyPlant(plant.time_step) if is_of_caller else plant
        instances = _add_elements(trial, robots, [robot.name for robot in robots] if is_of_caller else names, base)
    _reject_overflow(trial, robots[0], dtype)
    for text in notes.warnings():
        warnings.warn(text, ModelWarning, stacklevel=CALLER_OF_PARSER)
    for robot, name in zip(robots, names, strict=True):
        if name != robot.name and not robot.is_world:
            message = f"the plant has a model instance of that name; this one is called '{name}'"
            notes.add(REPAIRED, f"robot '{robot.name}'", message, f"{robot.file}:{robot.line}")
    if is_of_caller:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelWarning)
            instances = _add_elements(plant, robots, names, base)
    for entry in notes.entries:
        plant.report.add(entry.status, entry.element, entry.message, entry.place)
    return instances


def require_discrete_plant(plant: MultibodyPlant, robots: Sequence[RobotRecord]) -> None:
    """Raises where a file has a deformable body, and the plant no step."""
    found = next((record for robot in robots for record in robot.deformables), None)
    if found is not None and not plant.time_step > 0.0:
        raise NeedsTimeStepError(
            f"link '{found.name}' is deformable, and deformable bodies move by the steps of a discrete model: give "
            "load(…, time_step=0.005), or MultibodyPlant(time_step=0.005), in s.",
            **placed_at(found.place),
        )


def note_what_deformables_lack(robots: Sequence[RobotRecord], notes: LoadNotes) -> None:
    """Lists the colors of deformable bodies, which are not kept."""
    for record in (record for robot in robots for record in robot.deformables):
        if record.rgba is not None:
            notes.add(IGNORED, f"color of deformable body '{record.name}'", "not kept", record.place)


def chosen_joints(robots: Sequence[RobotRecord], patterns: Sequence[str]) -> list[set[str]]:
    """Names of each robot's joints that the patterns name and that an actuator can drive.

    Raises where a pattern names none. A joint that is named itself and cannot be driven is an error that says why.
    """
    chosen: list[set[str]] = [set() for _ in robots]
    joints = [(k, robot, joint) for k, robot in enumerate(robots) for joint in robot.joints]
    for pattern in patterns:
        matching = [joints[i] for i in matching_places([pattern], [(joint.name,) for _, _, joint in joints])]
        drivable = [(k, joint.name) for k, robot, joint in matching if not why_undriven(robot, joint)]
        if matching and not drivable:
            _, robot, joint = matching[0]
            message = f"actuators: joint '{joint.name}' cannot be driven: {why_undriven(robot, joint)}."
            raise ParseError(message, **placed_at(joint.place))
        if not matching:
            names = ", ".join(f"'{joint.name}'" for _, _, joint in joints)
            raise ParseError(
                f"actuators: no joint is called '{pattern}'; there are {names or 'none'}. Give names of joints, or "
                'patterns such as "left_*".'
            )
        for k, name in drivable:
            chosen[k].add(name)
    return chosen


def why_undriven(robot: RobotRecord, joint: JointRecord) -> str:
    """Why an actuator cannot drive a joint; empty if it can."""
    if joint.joint_class.num_velocities != 1:
        return f"it has {joint.joint_class.num_velocities} degrees of freedom, and an actuator drives one"
    if any(mimic.joint == joint.name for mimic in robot.mimics):
        return "it mimics another joint"
    is_driven = any(actuator.joint == joint.name for actuator in robot.actuators)
    return "its effort limit is 0" if joint.effort_limit == 0.0 and not is_driven else ""


def keep_actuators(robot: RobotRecord, joints: set[str], notes: LoadNotes) -> None:
    """Leaves out the file's actuators at other joints."""
    for actuator in robot.actuators:
        if actuator.joint not in joints:
            message = f"left out, as actuators= does not name its joint '{actuator.joint}'"
            notes.add(IGNORED, f"actuator '{actuator.name}'", message, actuator.place)
    robot.actuators = [actuator for actuator in robot.actuators if actuator.joint in joints]


def add_missing_actuators(robot: RobotRecord, notes: LoadNotes, wanted: set[str] | None = None) -> None:
    """One actuator for each joint of one degree of freedom that has none and can bear an effort, or is wanted.

    It has the joint's name, or `name_1`, … where an actuator is called so, and the joint's effort limit. Joints that
    mimic others get none.
    """
    driven = {actuator.joint for actuator in robot.actuators} | {mimic.joint for mimic in robot.mimics}
    taken = {actuator.name for actuator in robot.actuators}
    for joint in robot.joints:
        if joint.joint_class.num_velocities != 1 or joint.name in driven:
            continue
        if wanted is not None and joint.name not in wanted:
            continue
        if joint.effort_limit < 0.0:
            raise ParseError(
                f"actuators=\"joints\": joint '{joint.name}' has the negative effort limit {joint.effort_limit:g}; "
                "give a number above 0, or leave it out for none.",
                **placed_at(joint.place),
            )
        if joint.effort_limit == 0.0:
            notes.add(USED, f"joint '{joint.name}'", "effort limit 0: no actuator", joint.place)
            continue
        name, count = joint.name, 0
        while name in taken:
            count += 1
            name = f"{joint.name}_{count}"
        taken.add(name)
        options = {"effort_limit": joint.effort_limit}
        robot.actuators.append(ActuatorRecord(name, joint.line, joint.place, joint.name, options))


def note_missing_actuators(robot: RobotRecord, notes: LoadNotes, is_wanted: bool) -> None:
    """Notes joints that have an effort limit and no actuator; warns where no joint of the robot has one.

    The limit alone makes no actuator: a URDF must give it for every revolute and prismatic joint, passive ones too.
    """
    driven = {actuator.joint for actuator in robot.actuators} | {mimic.joint for mimic in robot.mimics}
    for joint in robot.joints:
        if joint.joint_class.num_velocities != 1 or joint.name in driven or not 0.0 < joint.effort_limit < math.inf:
            continue
        notes.add(
            IGNORED,
            f"joint '{joint.name}'",
            f"effort limit {joint.effort_limit:g}, but no actuator drives it, as in Drake; "
            'actuators="joints" gives it one',
            joint.place,
        )
        if not robot.actuators and not is_wanted:
            notes.warn(UNDRIVEN, f"'{joint.name}'")


def _reject_overflow(trial: MultibodyPlant, robot: RobotRecord, dtype: Any) -> None:
    found = find_overflow(trial, dtype)
    if found is not None:
        raise ParseError(found.message, **placed_at(found.source or f"{robot.file}:{robot.line}"))


def _add_elements(plant: MultibodyPlant, robots: Sequence[RobotRecord], names: Sequence[str], base: str) -> list[int]:
    """All robots: each whole before those that hold it, so that these can name its parts."""
    elements = Elements(plant)
    for robot, name in zip(robots, names, strict=True):
        elements.instances[id(robot)] = 0 if robot.is_world else plant.add_model_instance(name)
        if not robot.is_world:
            elements.by_name[robot.name] = elements.instances[id(robot)]
    for robot, name in sorted(zip(robots, names, strict=True), key=lambda pair: pair[0].build_rank):
        _add_links(elements, robot)
        _add_deformable_bodies(elements, robot)
        _add_frames(elements, robot, [frame for frame in robot.frames if frame.name == "__model__"])
        on_bodies, on_frames = [], []
        for joint in robot.joints:
            (on_bodies if elements.has_bodies_of(robot, joint) else on_frames).append(joint)
        _add_joints(elements, robot, on_bodies)
        _add_mimics(elements, robot, name)
        for actuator in robot.actuators:
            with _placed(actuator.place):
                joint = elements.joint(robot, actuator.joint)
                made = plant.add_joint_actuator(actuator.name, joint, source=actuator.place, **actuator.options)
                made.control = actuator.control
        _add_frames(elements, robot, [frame for frame in robot.frames if frame.name != "__model__"])
        _add_joints(elements, robot, on_frames)
        _add_forces_and_constraints(elements, robot)
        add_states(plant, robot, name, partial(elements.joint, robot))
        _weld_static_links(elements, robot)
        if robot.gravity is not None:
            plant.set_gravity(robot.gravity)
    for robot in robots:
        for pair in robot.collision_filters:
            groups = [
                (name, [elements.link(robot, link) for link in links]) for name, links in (pair.group_A, pair.group_B)
            ]
            plant.exclude_collision_geometries_with_collision_filter_group_pair(*groups)
        shapes = {name: shape for (owner, name), shape in elements.shapes.items() if owner == id(robot)}
        add_filtered_pairs(plant, robot, elements.instances[id(robot)], shapes)
    _add_bases(elements, robots, base)
    return [elements.instances[id(robot)] for robot in robots if not robot.is_world]


def _add_links(elements: Elements, robot: RobotRecord) -> None:
    plant, instance = elements.plant, elements.instances[id(robot)]
    for link in robot.links:
        with _placed(link.place):
            body = plant.world_body
            if link.name != WORLD:
                body = plant.add_rigid_body(
                    link.name, link.inertia, instance, on_invalid_inertia="warn", source=link.place
                )
                elements.add_body(robot, link.name, body)
            of_others: tuple[set[str], set[str]] = (set(), set())
            if link.name == WORLD:  # which robots share
                of_others = {g.name for g in body.visual}, {c.geometry.name for c in plant.collisions if c.body is body}
            for shape in link.visual:
                plant.register_visual_geometry(body, with_free_name(shape, of_others[0], robot))
            for collision in link.collision:
                geometry = with_free_name(collision.geometry, of_others[1], robot)
                plant.register_collision_geometry(body, geometry, collision.properties, source=collision.place)
                elements.shapes[id(robot), f"{link.name}::{collision.geometry.name}"] = geometry


def _add_deformable_bodies(elements: Elements, robot: RobotRecord) -> None:
    plant = elements.plant
    for record in robot.deformables:
        with _placed(record.place):
            material = DeformableMaterial(**record.material)
            made = plant.add_deformable_body(
                record.name, record.mesh, material, pose=record.X_WG, properties=record.properties,
                model_instance=elements.instances[id(robot)], source=record.place,
            )  # fmt: skip
            elements.add_deformable(robot, record.name, made)
        for wall in record.walls:
            with _placed(wall.place):
                plant.set_wall_boundary_condition(made, wall.p_WQ, wall.n_W)


def _add_joints(elements: Elements, robot: RobotRecord, records: Sequence[JointRecord]) -> None:
    for record in records:
        with _placed(record.place):
            parent, child = (elements.frame(robot, name) for name in (record.parent, record.child))
            joint = record.joint_class(record.name, parent, child, **record.options)
            elements.add_joint(robot, record.name, elements.plant.add_joint(joint, source=record.place))


def _add_mimics(elements: Elements, robot: RobotRecord, instance_name: str) -> None:
    plant = elements.plant
    for mimic in robot.mimics:
        with _placed(mimic.place):
            pair = elements.joint(robot, mimic.joint), elements.joint(robot, mimic.leader)
            if mimic.is_coupled:
                name = f"{instance_name}::{mimic.joint} mimics {mimic.leader}"
                plant.add_coupler_constraint(*pair, mimic.multiplier, mimic.offset, name=name)
            else:
                plant.add_mimic(*pair, mimic.multiplier, mimic.offset)


def _add_frames(elements: Elements, robot: RobotRecord, records: Sequence[FrameRecord]) -> None:
    for frame in records:
        with _placed(frame.place):
            instance = elements.instances[id(robot)] if frame.belongs_to_robot else None
            if frame.owner:
                instance = elements.by_name[frame.owner]
            parent = elements.frame(robot, frame.link)
            made = elements.plant.add_frame(frame.name, parent, frame.X_PF, instance, source=frame.place)
            elements.add_frame(robot, frame.name, made)


def _add_forces_and_constraints(elements: Elements, robot: RobotRecord) -> None:
    for record in robot.force_elements:
        with _placed(record.place):
            options = dict(record.options)
            for key, value in options.items():
                if key == "joint":
                    options[key] = elements.joint(robot, value)
                elif isinstance(value, str):
                    options[key] = elements.frame(robot, value)
            elements.plant.add_force_element(record.element_class(**options))
    for record in robot.constraints:
        with _placed(record.place):
            _add_constraint(elements, robot, record)


def _add_constraint(elements: Elements, robot: RobotRecord, record: ConstraintRecord) -> None:
    plant, options = elements.plant, dict(record.options)
    for key in BODIES_OF.get(record.kind, ()):
        options[key] = elements.body(robot, options[key])
    for key in JOINTS_OF.get(record.kind, ()):
        options[key] = elements.joint(robot, options[key])
    name = record.name or None
    count = 0
    while name is not None and name in plant.constraint_names:
        count += 1
        name = f"{record.name}_{count}"
    getattr(plant, f"add_{record.kind}_constraint")(**options, name=name)


def _weld_static_links(elements: Elements, robot: RobotRecord) -> None:
    """Welds of links to the world, for those that no joint holds and that are not welded to it already."""
    plant = elements.plant
    parents = {joint.child.body: joint.parent.body for joint in plant.joints if isinstance(joint, WeldJoint)}
    for name in robot.static_links:
        body = elements.body(robot, name)
        at: Body = body
        while at in parents:
            at = parents[at]
        if at is not plant.world_body and at is body:
            joint_name = f"sdformat_model_static_world_welds_to_{name}"
            plant.weld_frames(plant.world_frame, body, robot.free_poses.get(name), name=joint_name)
            parents[body] = plant.world_body


def _add_bases(elements: Elements, robots: Sequence[RobotRecord], base: str) -> None:
    """What holds links that no joint holds: nothing, a weld or a floating joint, where the file has them."""
    plant = elements.plant
    children = {joint.child.body for joint in plant.joints}
    roots = [
        (robot, link)
        for robot in robots
        for link in robot.links
        if link.name != WORLD and elements.body(robot, link.name) not in children
    ]
    if base == "floating" and not roots:
        _refuse_floating(robots)
    for robot, link in roots:
        body, X_WB = elements.body(robot, link.name), robot.free_poses.get(link.name)
        with _placed(link.place):
            if base == "fixed":
                plant.weld_frames(plant.world_frame, body, X_WB)
            elif base == "floating":
                floating = QuaternionFloatingJoint(free_joint_name(plant, body), plant.world_body, body)
                if X_WB is not None:
                    floating.set_default_positions(floating_positions(X_WB))
                plant.add_joint(floating, source=link.place)
            elif X_WB is not None:
                plant.free_poses_of_files[body.index] = X_WB


def free_joint_name(plant: MultibodyPlant, body: Body) -> str:
    """The body's name for a joint of it, with underscores in front while its instance has a joint of that name."""
    taken = {joint.name for joint in plant.joints if joint.model_instance == body.model_instance}
    name = body.name
    while name in taken:
        name = f"_{name}"
    return name


def floating_positions(X_WB: RigidTransform) -> np.ndarray:
    """Quaternion and position of a pose."""
    return np.concatenate([rotation_quaternion(np.asarray(X_WB.rotation, float)), np.asarray(X_WB.translation, float)])


def _refuse_floating(robots: Sequence[RobotRecord]) -> None:
    for robot in robots:
        for joint in robot.joints:
            if joint.parent == WORLD:
                raise ParseError(
                    f"base=\"floating\": the file itself attaches '{joint.child}' to the world, by joint "
                    f"'{joint.name}'. Load with base=\"file\", or remove that joint.",
                    **placed_at(joint.place),
                )
        if robot.static_links:
            raise ParseError(
                f'base="floating": model \'{robot.name}\' is static. Load with base="file", or remove <static>.',
                file=robot.file,
                line=robot.line,
            )


def placed_at(place: str) -> dict[str, Any]:
    """File and line of an error."""
    file, _, line = place.rpartition(":")
    return {"file": file, "line": int(line)}


@contextmanager
def _placed(place: str) -> Iterator[None]:
    """Errors of the builder, with the place in the file they come from."""
    try:
        yield
    except ParseError:
        raise
    except ModelError as error:
        raise ParseError(str(error), **placed_at(place)) from None
