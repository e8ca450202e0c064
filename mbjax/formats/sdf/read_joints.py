"""<joint> and <drake:joint> of an SDFormat model."""

import dataclasses
import math
from typing import Any

import numpy as np

from mbjax import joints
from mbjax.model import IGNORED, USED
from mbjax.spatial import RigidTransform

from ..notes.load_notes import LoadNotes
from ..records.mimic_records import mimic_record
from ..records.open_ends import NONE_IN_SDF, with_open_ends
from ..records.robot_records import ActuatorRecord, JointRecord, MimicRecord
from ..xml.tree import XmlElement
from ..xml.values import did_you_mean, number, required_number, required_text
from .pose_graph import PoseGraph
from .read_scopes import Context, Part, Vertex, look_up
from .references import References
from .values import child_flag, child_number, child_numbers, child_text, product, text_numbers, unit_vector

JOINT_TYPES: dict[str, type[joints.AbstractJoint]] = {
    "revolute": joints.RevoluteJoint,
    "continuous": joints.RevoluteJoint,
    "prismatic": joints.PrismaticJoint,
    "screw": joints.ScrewJoint,
    "universal": joints.UniversalJoint,
    "ball": joints.BallRpyJoint,
    "fixed": joints.WeldJoint,
}
REFUSED_TYPES = ("revolute2", "gearbox")
AXIS_TYPES = ("revolute", "continuous", "prismatic", "screw")
LIMITED_TYPES = ("revolute", "prismatic")
SPRUNG_TYPES = ("revolute", "continuous", "prismatic")
USE_PARENT_FRAME_BEFORE = (1, 5)  # older files express axes in the model's frame


@dataclasses.dataclass
class Axis:
    """<axis> or <axis2> in plain values; the direction is in the joint's frame."""

    direction: np.ndarray
    element: XmlElement | None = None
    position_limits: tuple[float, float] = (-math.inf, math.inf)
    effort: float = math.inf
    velocity: float = math.inf
    acceleration: float = math.inf
    damping: float = 0.0
    friction: float = 0.0
    spring_reference: float = 0.0
    spring_stiffness: float = 0.0


@dataclasses.dataclass
class JointReader:
    """Reads the joints of a file, each in the frames of the links it joins."""

    graph: PoseGraph
    references: References
    notes: LoadNotes
    bodies: dict[int, tuple[Vertex, Vertex]] = dataclasses.field(default_factory=dict)  # by id of the record

    def read(self, joint: Vertex, axes: dict[str, Axis | None]) -> JointRecord:
        """One <joint>; its frames F and M are where the joint is on the parent and on the child."""
        element, type_name = joint.element, joint_type(joint.element)
        parent, child = self._bodies(joint)
        X_PJ, X_CJ = self.graph.relative_pose(parent, joint), self.graph.relative_pose(child, joint)
        options: dict[str, Any] = {"X_PF": X_PJ, "X_BM": X_CJ}
        scope = joint.context.scope
        names = [self.references.body_name(body, scope, element) for body in (parent, child)]
        joint_class = JOINT_TYPES[type_name]
        record = JointRecord(joint.name, element.line, element.place, joint_class, names[0], names[1], options)
        self.bodies[id(record)] = parent, child
        axis = axes["axis"]
        if type_name in AXIS_TYPES:
            assert axis is not None
            record.effort_limit = axis.effort
            options["axis"] = axis.direction
        if axis is not None and type_name != "fixed":
            self._read_axis(type_name, axis, axes["axis2"], options, joint)
        if type_name == "universal":
            R_JI = universal_frame(element, axes)
            options["X_PF"], options["X_BM"] = product(X_PJ, R_JI), product(X_CJ, R_JI)
        if is_identity(options["X_BM"]):
            del options["X_BM"]
        if type_name == "screw":
            options["screw_pitch"] = screw_pitch(element)
        return record

    def axes(self, joint: Vertex) -> dict[str, Axis | None]:
        """<axis> and <axis2>; what a type of joint needs is there."""
        element, type_name = joint.element, joint_type(joint.element)
        needed = {"axis": type_name in (*AXIS_TYPES, "universal"), "axis2": type_name == "universal"}
        found: dict[str, Axis | None] = {}
        for tag, is_needed in needed.items():
            child = element.only(tag)
            if child is None and is_needed:
                raise element.error(f"{element.label}: a {type_name} joint needs <{tag}>; add one.")
            if child is not None and tag == "axis2" and not is_needed:
                self.notes.add(IGNORED, element.label, f"<axis2> has no meaning on a {type_name} joint", child.place)
                child = None
            found[tag] = None if child is None or type_name == "fixed" else self._axis(child, joint)
        return found

    def read_custom(self, part: Part) -> JointRecord:
        """A <drake:joint>: it joins two frames."""
        element, context = part.element, part.context
        type_name, name = required_text(element, "type"), required_text(element, "name")
        if type_name != "planar":
            known = " Curvilinear joints are not simulated." if type_name == "curvilinear" else ""
            raise element.error(f"{element.label}: type '{type_name[:60]}' where 'planar' is expected.{known}")
        if element.only("pose") is not None:
            raise element.error(f"{element.label}: it takes no <pose>, as in Drake; use frames as parent and child.")
        ends = [self._frame(element, tag, context) for tag in ("drake:parent", "drake:child")]
        damping = child_numbers(element, "drake:damping", 3)
        if np.any(damping < 0.0):
            raise element.error(f"{element.label}: the damping is negative, which would create energy.")
        parent, child = (self.references.frame_name(end, context.scope, element) for end in ends)
        options = {"damping": damping}
        record = JointRecord(name, element.line, element.place, joints.PlanarJoint, parent, child, options)
        self.bodies[id(record)] = self.graph.body_of(ends[0]), self.graph.body_of(ends[1])
        return record

    def _frame(self, element: XmlElement, tag: str, context: Context) -> Vertex:
        name = child_text(element, tag)
        return look_up(name, context, element, self.graph.world)

    def _bodies(self, joint: Vertex) -> tuple[Vertex, Vertex]:
        element = joint.element
        parent = look_up(child_text(element, "parent"), joint.context, element, self.graph.world)
        child = self.graph.attached(joint)
        if parent is joint or child is joint:
            raise element.error(f"{element.label}: it names itself as parent or child.")
        bodies = self.graph.body_of(parent), self.graph.body_of(child)
        if bodies[1] is self.graph.world:
            raise element.error(
                f"{element.label}: the world cannot be a child. Make it the parent, and turn the axis around."
            )
        if bodies[0] is bodies[1]:
            raise element.error(f"{element.label}: parent and child are the same link '{bodies[0].name}'.")
        return bodies

    def _axis(self, element: XmlElement, joint: Vertex) -> Axis:
        """One axis, turned into the joint's frame."""
        xyz = element.only("xyz")
        direction = np.array([0.0, 0.0, 1.0])
        if xyz is not None and xyz.text:
            direction = unit_vector(xyz, text_numbers(xyz, 3))
        expressed_in = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
        in_model = child_flag(element, "use_parent_model_frame", joint.context.version < USE_PARENT_FRAME_BEFORE)
        if expressed_in or in_model:
            frame = look_up(expressed_in or "__model__", joint.context, xyz or element, self.graph.world)
            direction = np.asarray(self.graph.relative_pose(joint, frame).rotation) @ direction
        axis = Axis(direction, element)
        self._read_limit(element.only("limit"), axis, joint)
        self._read_dynamics(element.only("dynamics"), axis, joint)
        return axis

    def _read_limit(self, limit: XmlElement | None, axis: Axis, joint: Vertex) -> None:
        if limit is None:
            return
        lower, upper = (
            child_number(limit, tag, default, allow_infinite=True)
            for tag, default in (("lower", -math.inf), ("upper", math.inf))
        )
        if lower > upper:
            raise limit.error(f"{joint.element.label}: <lower> {lower:g} is above <upper> {upper:g}; swap the two.")
        axis.position_limits = lower, upper
        effort, velocity = (child_number(limit, tag, -1.0, allow_infinite=True) for tag in ("effort", "velocity"))
        axis.effort = effort if effort >= 0.0 else math.inf
        axis.velocity = velocity if velocity >= 0.0 else math.inf
        axis.acceleration = child_number(limit, "drake:acceleration", math.inf, lowest=0.0, allow_infinite=True)

    def _read_dynamics(self, dynamics: XmlElement | None, axis: Axis, joint: Vertex) -> None:
        if dynamics is None:
            return
        for tag in ("damping", "friction", "spring_stiffness"):
            value = child_number(dynamics, tag, 0.0)
            if value < 0.0:
                raise dynamics.error(
                    f"{joint.element.label}: <{tag}> {value:g} is negative, which would create energy; give a "
                    "number >= 0."
                )
            setattr(axis, tag, value)
        axis.spring_reference = child_number(dynamics, "spring_reference", 0.0)

    def _read_axis(
        self, type_name: str, axis: Axis, axis2: Axis | None, options: dict[str, Any], joint: Vertex
    ) -> None:
        """Limits, damping and friction of the axes into the options of the joint."""
        label, place = joint.element.label, joint.element.place
        if axis2 is not None and axis2.damping != axis.damping:
            message = f"one damping for both axes, as in Drake: {axis.damping:g}, not {axis2.damping:g}"
            self.notes.add(IGNORED, label, message, place)
            self.notes.warn("damping of a second axis that is not used", f"{label} (line {joint.element.line})")
        options["damping"] = axis.damping
        if type_name in (*AXIS_TYPES, "universal"):
            options["friction"] = axis.friction if axis2 is None else [axis.friction, axis2.friction]
        elif axis.friction:
            self.notes.unsupported(joint.element, "friction of a ball joint is not read")
        if type_name in SPRUNG_TYPES:
            options["velocity_limits"] = (-axis.velocity, axis.velocity)
            options["acceleration_limits"] = (-axis.acceleration, axis.acceleration)
        for each in (axis, axis2):
            if each is None:
                continue
            if type_name in LIMITED_TYPES:
                options["position_limits"] = with_open_ends(each.position_limits, NONE_IN_SDF, label, place, self.notes)
            elif any(abs(limit) < NONE_IN_SDF for limit in each.position_limits):
                message = f"position limits have no meaning on a {type_name} joint, as in Drake"
                self.notes.add(IGNORED, label, message, place)
            if each.spring_stiffness and type_name not in SPRUNG_TYPES:
                self.notes.unsupported(joint.element, f"springs in {type_name} joints are not simulated")

    def read_mimic(self, joint: Vertex, by_name: dict[str, JointRecord], choice: str) -> MimicRecord | None:
        """The relation to another joint of the model, None where there is none to keep."""
        axis = joint.element.only("axis")
        own = joint.element.only("drake:mimic")
        mimic = own if own is not None or axis is None else axis.only("mimic")
        if mimic is None:
            return None
        leader = required_text(mimic, "joint")
        if own is not None:
            pair = required_number(mimic, "multiplier"), required_number(mimic, "offset")
        else:
            multiplier = child_number(mimic, "multiplier")
            pair = multiplier, child_number(mimic, "offset", 0.0) - multiplier * child_number(mimic, "reference", 0.0)
        return mimic_record(mimic, joint.name, leader, pair, by_name, self.notes, choice)

    def read_actuator(self, joint: Vertex, record: JointRecord) -> ActuatorRecord | None:
        """A joint with an axis and an effort limit other than zero has an actuator, as in Drake."""
        element = joint.element
        if joint_type(element) not in AXIS_TYPES:
            return None
        if record.effort_limit == 0.0:
            self.notes.add(USED, element.label, "effort limit 0: no actuator, as in Drake", element.place)
            return None
        options: dict[str, Any] = {"effort_limit": record.effort_limit}
        if element.only("drake:rotor_inertia") is not None:
            options["rotor_inertia"] = child_number(element, "drake:rotor_inertia", lowest=0.0)
        if element.only("drake:gear_ratio") is not None:
            options["gear_ratio"] = child_number(element, "drake:gear_ratio")
        gains = element.only("drake:controller_gains")
        if gains is not None:
            for name, attribute in (("kp", "p"), ("kd", "d")):
                required_text(gains, attribute)
                options[name] = number(gains, attribute, 0.0, lowest=0.0)
        return ActuatorRecord(joint.name, element.line, element.place, joint.name, options)


def is_identity(X: RigidTransform) -> bool:
    return bool(np.array_equal(X.rotation, np.eye(3)) and not np.any(X.translation))


def joint_type(element: XmlElement) -> str:
    """The type, one that mbjax has."""
    type_name = required_text(element, "type")
    if type_name in REFUSED_TYPES:
        raise element.error(
            f"{element.label}: type '{type_name}' is not simulated, nor by Drake; two joints with a massless link "
            "between them may do."
        )
    if type_name not in JOINT_TYPES:
        raise element.error(f"{element.label}: unknown type '{type_name[:60]}'. {did_you_mean(type_name, JOINT_TYPES)}")
    return type_name


def universal_frame(element: XmlElement, axes: dict[str, Axis | None]) -> RigidTransform:
    """X_JI of the frame with x along the first axis and y along the second."""
    first, second = (axis.direction for axis in axes.values() if axis is not None)
    if abs(float(first @ second)) > 1e-10:
        raise element.error(f"{element.label}: <axis> and <axis2> of a universal joint must be at a right angle.")
    return RigidTransform(np.stack([first, second, np.cross(first, second)], axis=1), np.zeros(3))


def screw_pitch(element: XmlElement) -> float:
    """The advance in m per turn; the older <thread_pitch> is in rad/m, left-handed."""
    if element.only("screw_thread_pitch") is not None:
        return child_number(element, "screw_thread_pitch")
    old = element.only("thread_pitch")
    if old is None:
        return 1.0
    pitch = child_number(element, "thread_pitch")
    if pitch == 0.0:
        raise old.error(f"{element.label}: <thread_pitch> of 0 rad/m; give another number.")
    return -2.0 * math.pi / pitch
