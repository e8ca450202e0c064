"""A model as the records that readers make of files, one for each model instance: one walk for all writers."""

import dataclasses
from collections.abc import Container
from typing import Any

import jax
import numpy as np

from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS, QuaternionFloatingJoint
from mbjax.model import (
    BodyInfo,
    FrameInfo,
    JointInfo,
    Keyframe,
    MultibodyModel,
    all_joint_positions,
    all_joint_velocities,
)
from mbjax.number_rules import is_known
from mbjax.spatial import SpatialInertia, UnitInertia

from ..notes.write_notes import WriteNotes
from .deformables_of_models import deformable_records
from .force_records import constraint_records, force_element_records
from .names import NameRules, Names
from .numbers import as_double, as_rigid_transform, pose_of_quaternion
from .robot_records import (
    WORLD,
    ActuatorRecord,
    CollisionFilterRecord,
    ConstraintRecord,
    FrameRecord,
    JointRecord,
    KeyframeRecord,
    LinkRecord,
    MimicRecord,
    RobotRecord,
)
from .shape_records import PLACE, CollisionShapes
from .touching_pairs import TouchingPairs, touch_as_in_drake

OUR_PACKAGE = "mbjax."


@dataclasses.dataclass
class ModelRecords:
    """`robots` by model instance (or one for all), `world` what belongs to none: shapes and frames of the world."""

    model: MultibodyModel
    names: Names
    robots: list[RobotRecord]
    world: RobotRecord
    touching: TouchingPairs
    time_step: float
    has_contact: bool


def records_of(model: Any, notes: WriteNotes, rules: NameRules) -> ModelRecords:
    """Everything that the model holds; what no format has goes to `notes`."""
    if not isinstance(model, MultibodyModel):
        raise ModelError(f"{notes.call}: expected a MultibodyModel, got {type(model).__name__}.")
    if not all(map(is_known, jax.tree.leaves(model))):
        raise ModelError(f"{notes.call}: numbers of the model are traced; write a model outside of jit, vmap and grad.")
    model.require_one(notes.call)
    return Walk(model, notes, rules).records()


class Walk:
    """Goes over a model once; numbers are NumPy's, in double precision."""

    def __init__(self, model: MultibodyModel, notes: WriteNotes, rules: NameRules):
        self.model, self.notes, self.layout = model, notes, model.layout
        self.numbers: Any = jax.tree.map(as_double, model.parameters)
        soft = () if model.deformables is None else model.deformables.layout.bodies
        self.names = Names(self.layout, rules, notes, soft)
        self.shapes = CollisionShapes(model, notes)
        self._rows = {frame: row for row, frame in enumerate(self.layout.offset_frames)}

    def records(self) -> ModelRecords:
        names = self.names
        if names.is_flat:
            robots = {instance: RobotRecord(names.robot, "model", 0) for instance in names.instances[:1]}
            by_instance = dict.fromkeys(range(len(self.layout.instance_names)), next(iter(robots.values())))
        else:
            robots = {i: RobotRecord(names.of_instances[i], "model", 0) for i in names.instances}
            by_instance = dict(robots)
        world = RobotRecord("", "model", 0, is_world=True)
        world.gravity = tuple(self.numbers.gravity.tolist())
        self._add_links(by_instance, world)
        self._add_joints(by_instance)
        self._add_frames(by_instance, world)
        self._add_actuators(by_instance)
        for instance, record in constraint_records(self.model, names, self.notes):
            by_instance[instance].constraints.append(record)
        for instance, record in force_element_records(self.model, names, self.notes):
            by_instance[instance].force_elements.append(record)
        for instance, record in deformable_records(self.model, names, self.notes):
            by_instance[instance].deformables.append(record)
        self._add_keyframes(robots[names.instances[0]])
        self._list_what_no_format_has()
        touching = TouchingPairs(self.model)
        has_contact = self.layout.contact.contact_model != "none"
        time_step = float(self.numbers.time_step)
        return ModelRecords(self.model, names, list(robots.values()), world, touching, time_step, has_contact)

    def frame_pose(self, frame: int) -> np.ndarray:
        """X_BF of a frame in its body."""
        info = self.layout.frames[frame]
        if info.parent is None:
            return np.eye(4)
        row = self._rows[frame]
        X_PF = pose_of_quaternion(self.numbers.frame_quaternion[row], self.numbers.frame_translation[row])
        return self.frame_pose(info.parent) @ X_PF

    def _add_links(self, by_instance: dict[int, RobotRecord], world: RobotRecord) -> None:
        for body in self.layout.bodies:
            if body.index == 0:
                link = LinkRecord(WORLD, 0, PLACE)
                record = world
            else:
                record = by_instance[body.model_instance]
                link = LinkRecord(self.names.local("body", body.index), 0, PLACE, self._inertia(body))
            link.visual = list(self.layout.visual[body.index])
            link.collision = self.shapes.of_body(body.index)
            if body.index or link.visual or link.collision:
                record.links.append(link)

    def _inertia(self, body: BodyInfo) -> SpatialInertia | None:
        mass, com, six = (
            getattr(self.numbers, name)[body.index - 1] for name in ("body_mass", "body_com", "body_unit_inertia")
        )
        if mass == 0.0:
            return None
        return SpatialInertia(float(mass), com, UnitInertia(*map(float, six)), skip_validity_check=True)

    def _add_joints(self, by_instance: dict[int, RobotRecord]) -> None:
        for joint in self.layout.joints:
            robot = by_instance[joint.model_instance]
            if self._is_implied(joint):
                q = self.numbers.default_positions[joint.q]
                name = self.names.local("body", joint.child_body)
                robot.free_poses[name] = as_rigid_transform(pose_of_quaternion(q[:4], q[4:]))
                continue
            robot.joints.append(self._joint(joint))
            if joint.mimics is not None:
                robot.mimics.append(self._mimic(joint))
            elif joint.num_velocities and np.any(self.numbers.velocity_locked[joint.v]):
                self.notes.unsupported(f"joint '{joint.name}'", "it is locked, which no file says; weld it")

    def _is_implied(self, joint: JointInfo) -> bool:
        """Whether it is the joint that a body without one gets: between the world and the body, free of all forces."""
        body = self.layout.bodies[joint.child_body]
        is_plain = joint.kind == QuaternionFloatingJoint.kind and joint.name.lstrip("_") == body.name.lstrip("_")
        at_origins = joint.parent_frame == 0 and joint.child_frame == body.body_frame
        p, v = self.numbers, joint.all_v
        dissipates = any(np.any(x[v] != 0.0) for x in (p.joint_damping, p.joint_friction, p.joint_armature))
        return is_plain and at_origins and not dissipates

    def _joint(self, joint: JointInfo) -> JointRecord:
        cls, p, q, v = JOINT_KINDS[joint.kind], self.numbers, joint.all_q, joint.all_v
        if not cls.__module__.startswith(OUR_PACKAGE):
            self.notes.unsupported(f"joint '{joint.name}'", f"no file has joints of your class {cls.__qualname__}")
        options: dict[str, Any] = {
            "X_PF": self.frame_pose(joint.parent_frame),
            "X_BM": self.frame_pose(joint.child_frame),
        }
        if cls.num_velocities:
            options |= {
                "damping": p.joint_damping[v],
                "friction": p.joint_friction[v],
                "armature": p.joint_armature[v],
                "position_limits": (p.position_lower_limits[q], p.position_upper_limits[q]),
                "velocity_limits": (p.velocity_lower_limits[v], p.velocity_upper_limits[v]),
                "acceleration_limits": (p.acceleration_lower_limits[v], p.acceleration_upper_limits[v]),
                "default_positions": p.default_positions[joint.q] if joint.mimics is None else np.zeros(1),
            }
        if cls.has_axis:
            axis = p.joint_axis[self.layout.axis_joints.index(joint.index)]
            options["axis"] = axis / np.linalg.norm(axis)
        if cls.has_pitch:
            options["screw_pitch"] = float(p.screw_pitch[self.layout.screw_joints.index(joint.index)])
        efforts = [p.effort_limit[a.index] for a in self.layout.actuators if a.joint == joint.index]
        parent = self.names.seen_from(joint.model_instance, "body", joint.parent_body)
        child = self.names.seen_from(joint.model_instance, "body", joint.child_body)
        name, limit = self.names.local("joint", joint.index), float(max(efforts, default=np.inf))
        return JointRecord(name, 0, PLACE, cls, parent, child, options, limit)

    def _mimic(self, joint: JointInfo) -> MimicRecord:
        row = [mobod for mobod, _ in self.model.topology.followers].index(joint.mobod)
        assert joint.mimics is not None
        leader = self.names.seen_from(joint.model_instance, "joint", joint.mimics)
        numbers = (float(getattr(self.numbers, f"mimic_{what}")[row]) for what in ("multiplier", "offset"))
        return MimicRecord(0, self.names.local("joint", joint.index), leader, *numbers, is_coupled=False, place=PLACE)

    def _add_frames(self, by_instance: dict[int, RobotRecord], world: RobotRecord) -> None:
        for frame in self.layout.frames:
            if frame.is_body_frame or frame.name == "__model__":
                continue
            if self.names.is_made_by_readers(frame) and not self._is_named_by_a_bushing(frame):
                continue
            robot = by_instance.get(frame.model_instance, world) if frame.body else world
            link = self.names.seen_from(frame.model_instance, "body", frame.body)
            X_BF = as_rigid_transform(self.frame_pose(frame.index))
            robot.frames.append(FrameRecord(self.names.local("frame", frame.index), 0, PLACE, link, X_BF))

    def _is_named_by_a_bushing(self, frame: FrameInfo) -> bool:
        ends = ((getattr(e, "frame_A", None), getattr(e, "frame_C", None)) for e in self.model.force_elements)
        return any(frame.index in pair for pair in ends)

    def _add_actuators(self, by_instance: dict[int, RobotRecord]) -> None:
        p = self.numbers
        for actuator in self.layout.actuators:
            i = actuator.index
            options = {
                "effort_limit": float(p.effort_limit[i]),
                "rotor_inertia": float(p.rotor_inertia[i]),
                "gear_ratio": float(p.gear_ratio[i]),
            }
            if p.proportional_gain[i] or p.derivative_gain[i]:
                options |= {"kp": float(p.proportional_gain[i]), "kd": float(p.derivative_gain[i])}
            joint = self.names.seen_from(actuator.model_instance, "joint", actuator.joint)
            name = self.names.local("actuator", i)
            record = ActuatorRecord(name, 0, PLACE, joint, options, actuator.control)
            by_instance[actuator.model_instance].actuators.append(record)

    def _add_keyframes(self, robot: RobotRecord) -> None:
        moving = [joint for joint in self.layout.joints if joint.mobod >= 0]
        for keyframe in self.model.keyframes:
            q, v = (np.asarray(x, float) for x in self._of_all_joints(keyframe))
            keys = [
                self.names.local(*(("body", j.child_body) if self._is_implied(j) else ("joint", j.index)))
                for j in moving
            ]
            positions = {key: tuple(q[j.all_q].tolist()) for key, j in zip(keys, moving, strict=True)}
            velocities = {key: tuple(v[j.all_v].tolist()) for key, j in zip(keys, moving, strict=True)}
            time = float(keyframe.time)
            robot.keyframes.append(KeyframeRecord(keyframe.name, 0, PLACE, positions, velocities, time))

    def _of_all_joints(self, keyframe: Keyframe) -> tuple[Any, Any]:
        """Positions and velocities of all joints, those that mimic others included."""
        return all_joint_positions(self.model, keyframe.q), all_joint_velocities(self.model, keyframe.v)

    def _list_what_no_format_has(self) -> None:
        if self.model.random_distributions:
            self.notes.ignored("random distributions", "no robot file has them; mbjax.save keeps them")
        for instance, enabled in enumerate(self.layout.gravity_enabled):
            heavy = any(
                b.model_instance == instance and b.index and self.numbers.body_mass[b.index - 1]
                for b in self.layout.bodies
            )
            if not enabled and heavy:
                name = self.layout.instance_names[instance]
                self.notes.unsupported(f"model instance '{name}'", "its bodies feel no gravity, which no file says")


def drake_filters(
    records: ModelRecords, notes: WriteNotes, between: Container[str] = ()
) -> list[CollisionFilterRecord]:
    """Collision filter groups that make Drake's rule the model's pairs; what links cannot say goes to `notes`.

    `between` names joints of the file that are not next to their child: a massless link stands there.
    """

    def joins_bodies(joint: JointInfo) -> bool:
        return records.names.local("joint", joint.index) not in between

    exclude, include, partly = records.touching.differences(touch_as_in_drake(records.model, joins_bodies))
    bodies, names = records.model.layout.bodies, records.names
    refuse = notes.unsupported if records.has_contact else notes.ignored
    for pairs, what in ((include, "touch, as the links of a joint do not in a file"), (partly, "touch in part")):
        for A, B in pairs:
            element = f"shapes of '{bodies[A].name}' and '{bodies[B].name}'"
            refuse(element, f"they {what}; the file's collision filter groups hold links")
    groups = []
    for A, B in exclude:
        a, b = (names.seen_from(bodies[i].model_instance, "body", i) for i in (A, B))
        groups.append(CollisionFilterRecord((f"not_{b}", (a,)), (f"not_{a}", (b,))))
    return groups


def is_mimic(constraint: ConstraintRecord, robot: RobotRecord) -> bool:
    """Whether a constraint is the <mimic> of its first joint, the only one that joint has."""
    if constraint.kind != "coupler":
        return False
    joint = constraint.options["joint0"]
    of_joint = [c for c in robot.constraints if c.kind == "coupler" and c.options["joint0"] == joint]
    return of_joint[0] is constraint and not any(mimic.joint == joint for mimic in robot.mimics)
