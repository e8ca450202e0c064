"""Model directives → `RobotRecord`s: models, welds, frames and groups that exclude collisions."""

import dataclasses
import os
from collections.abc import Callable, Mapping

import numpy as np

from mbjax.joints import WeldJoint
from mbjax.spatial import RigidTransform

from ..files.reading_policy import MAX_FILES, MAX_FILES_INSIDE, ReadableFolders
from ..files.resource_paths import ResourceFinder, words_for_tried
from ..notes.load_notes import LoadNotes
from ..records.robot_records import WORLD, FrameRecord, JointRecord, RobotRecord
from ..xml.values import did_you_mean, rotation_from_quaternion, rotation_from_rpy
from .placing import Placed, note_welded, place_body
from .yaml_source import Value, YamlFile, find_directives, read_yaml

DELIMITER = "::"
# What is read: the keys of each directive, and of what stands in them.
KEYS = {
    "add_model": ("file", "name", "default_joint_positions", "default_free_body_pose"),
    "add_model_instance": ("name",),
    "add_frame": ("name", "X_PF"),
    "add_weld": ("parent", "child", "X_PC"),
    "add_directives": ("file", "model_namespace"),
}
TRANSFORM = ("base_frame", "translation", "rotation")
ROTATIONS = {"!Rpy": ("deg",), "!AngleAxis": ("angle_deg", "axis"), "!Identity": ()}
REFUSED = {"add_collision_filter_group": "it is not read; write the groups into the models' files"}
KINDS = (*KEYS, *REFUSED)


@dataclasses.dataclass
class DirectivesReader:
    """Reads a file of directives and those it adds; `read_model` reads a model's file by its path."""

    package_map: Mapping[str, str | os.PathLike]
    read_model: Callable[[str], list[RobotRecord]]
    notes: LoadNotes
    robots: list[RobotRecord] = dataclasses.field(default_factory=list)
    placed: list[Placed] = dataclasses.field(default_factory=list)
    open_files: list[str] = dataclasses.field(default_factory=list)
    num_files: int = 0
    readable: ReadableFolders | None = None

    def read(self, source: YamlFile, namespace: str = "", asking: Value | None = None) -> list[RobotRecord]:
        """All that the file adds, in its order."""
        root = read_yaml(source)
        if source.file in self.open_files:
            raise (asking or root).error(f"'{source.file}' adds itself, perhaps through other files.")
        self.open_files.append(source.file)
        if self.readable is None:
            self.readable = ReadableFolders(source.folder, self.package_map.values())
        finder = ResourceFinder(source.folder, self.package_map, self.readable)
        entries = root.mapping("model directives", "directives")
        if "directives" not in entries:
            raise root.error("expected `directives:`, a list of directives.")
        for entry in entries["directives"].items("directives"):
            directive = entry.mapping("directive", *KINDS)
            if len(directive) != 1:
                raise entry.error(f"a directive has one of the keys {', '.join(KINDS)}, this has {len(directive)}.")
            ((kind, value),) = directive.items()
            self._add(kind, value, namespace, finder)
        self.open_files.pop()
        if not self.open_files:
            note_welded(self.placed, self.robots, self.notes)
        return self.robots

    def _keep(self, robots: list[RobotRecord]) -> None:
        """Built after all that is there."""
        last = max((robot.build_rank for robot in self.robots), default=-1)
        for robot in robots:
            robot.build_rank += last + 1
        self.robots += robots

    def _add(self, kind: str, value: Value, namespace: str, finder: ResourceFinder) -> None:
        match kind:
            case "add_model":
                self._add_model(value, namespace, finder)
            case "add_model_instance":
                name = required(value.mapping(kind, *KEYS[kind]), "name", value).text("name")
                self._keep([RobotRecord(joined(namespace, name), value.file, value.line)])
            case "add_frame":
                self._add_frame(value, namespace)
            case "add_weld":
                self._add_weld(value, namespace)
            case "add_directives":
                entries = value.mapping(kind, *KEYS[kind])
                found = find_directives(self._find(required(entries, "file", value), finder))
                if found is None:
                    raise value.error(f"{kind}: the file holds no model directives.")
                inner = entries["model_namespace"].text("model_namespace") if "model_namespace" in entries else ""
                self.read(found, joined(namespace, inner), value)
            case _:
                raise value.error(f"{kind}: {REFUSED[kind]}.")

    def _find(self, uri: Value, finder: ResourceFinder) -> str:
        self.num_files += 1
        if self.num_files > MAX_FILES or len(self.open_files) > MAX_FILES_INSIDE:
            raise uri.error(
                f"more than {MAX_FILES} files, or {MAX_FILES_INSIDE} inside one another; no scene needs that."
            )
        path, tried = finder.find_model(uri.text("file"))
        if path is None or os.path.isdir(path):
            hint = 'Give package_map={"package": "folder"}.'
            raise uri.error(f"'{uri.text('file')[:200]}' was not found ({words_for_tried(tried)}). {hint}")
        if not finder.readable.allows(path):
            raise uri.error(finder.readable.refusal(path))
        return path

    def _add_model(self, value: Value, namespace: str, finder: ResourceFinder) -> None:
        entries = value.mapping("add_model", *KEYS["add_model"])
        name = joined(namespace, required(entries, "name", value).text("name"))
        robots = self.read_model(self._find(required(entries, "file", value), finder))
        main = [robot for robot in robots if DELIMITER not in robot.name]
        if len(main) != 1 or main[0].is_world:
            raise value.error(
                f"add_model: the file of '{name}' holds {len(main)} models or a world; give one with one."
            )
        old = main[0].name
        for robot in robots:
            rename(robot, old, name)
        by_name = {joint.name: joint for joint in main[0].joints}
        of_joints: dict[str, Value] = {}
        if "default_joint_positions" in entries:
            of_joints = entries["default_joint_positions"].mapping("default_joint_positions")
            for joint, positions in of_joints.items():
                if joint not in by_name:
                    raise positions.error(
                        f"model '{name}' has no joint '{joint[:100]}'. {did_you_mean(joint, by_name)}"
                    )
                size = by_name[joint].joint_class.num_positions
                by_name[joint].options["default_positions"] = positions.numbers(f"joint '{joint}'", size)
        if "default_free_body_pose" in entries:
            self._place_bodies(entries["default_free_body_pose"], robots, main[0], of_joints)
        self._keep(robots)

    def _place_bodies(
        self, value: Value, robots: list[RobotRecord], robot: RobotRecord, of_joints: dict[str, Value]
    ) -> None:
        """Poses of bodies of `robot`, one of the file's `robots`; `of_joints` are the positions given to joints."""
        links = [link.name for link in robot.links]
        soft = {record.name: record for record in robot.deformables}
        for body, pose in value.mapping("default_free_body_pose").items():
            if body not in links and body not in soft:
                known = [*links, *soft]
                raise pose.error(f"model '{robot.name}' has no body '{body[:100]}'. {did_you_mean(body, known)}")
            base, X_WB = transform(pose)
            if base not in ("", WORLD):
                raise pose.error(f"the pose of '{body}' is in '{base}'; only poses in the world are read.")
            if body not in soft:
                placed = place_body(robots, robot, body, X_WB, pose, of_joints)
                self.placed += [] if placed is None else [placed]
            elif soft[body].walls:
                raise pose.error(
                    f"the pose of '{body}', which its file puts behind walls of the world, is not changed."
                )
            else:
                soft[body].X_WG = X_WB

    def _add_frame(self, value: Value, namespace: str) -> None:
        entries = value.mapping("add_frame", *KEYS["add_frame"])
        name = required(entries, "name", value).text("name")
        base, X_PF = transform(required(entries, "X_PF", value))
        if not base:
            raise value.error("add_frame: X_PF has no base_frame; name the frame that it is relative to.")
        base = joined(namespace, base)
        scope, _, local = name.rpartition(DELIMITER)
        owner = joined(namespace, scope) if scope else base.rpartition(DELIMITER)[0]
        record = FrameRecord(local, value.line, value.place, self._known(base, value), X_PF, owner == "", owner)
        if owner and owner not in [robot.name for robot in self.robots]:
            raise value.error(f"add_frame '{name}': there is no model instance '{owner[:200]}' so far.")
        holder = RobotRecord(owner, value.file, value.line, is_world=True)
        holder.frames.append(record)
        self._keep([holder])

    def _add_weld(self, value: Value, namespace: str) -> None:
        entries = value.mapping("add_weld", *KEYS["add_weld"])
        ends = [joined(namespace, required(entries, key, value).text(key)) for key in ("parent", "child")]
        base, X_PC = transform(entries["X_PC"]) if "X_PC" in entries else ("", identity())
        if base:
            raise value.error("add_weld: X_PC takes no base_frame, which is the parent.")
        parent, child = (self._known(end, value) for end in ends)
        name = f"{local_name(parent)}_welds_to_{local_name(child)}"
        holder = RobotRecord("", value.file, value.line, is_world=True)
        holder.joints.append(JointRecord(name, value.line, value.place, WeldJoint, parent, child, {"X_PF": X_PC}))
        self._keep([holder])

    def _known(self, name: str, value: Value) -> str:
        """A link or frame that has been added so far."""
        if name == WORLD:
            return name
        known = set()
        for robot in self.robots:
            prefix = f"{robot.name}{DELIMITER}" if robot.name else ""
            known |= {prefix + element.name for element in (*robot.links, *robot.frames) if element.name != WORLD}
        if name not in known:
            raise value.error(f"there is no link or frame '{name[:200]}' so far. {did_you_mean(name, known)}")
        return name


def rename(robot: RobotRecord, old: str, new: str) -> None:
    """Another name for a model, in front of those in it and wherever records name its parts.

    A name without a scope is one of the robot's own elements, be it that of the model too.
    """

    def renamed(name: str) -> str:
        return new + name.removeprefix(old) if name.startswith(old + DELIMITER) else name

    robot.name = new if robot.name == old else renamed(robot.name)
    for joint in robot.joints:
        joint.parent, joint.child = renamed(joint.parent), renamed(joint.child)
    for frame in robot.frames:
        frame.link = renamed(frame.link)
    for record in (*robot.constraints, *robot.force_elements):
        record.options = {key: renamed(v) if isinstance(v, str) else v for key, v in record.options.items()}
    for pair in robot.collision_filters:
        pair.group_A, pair.group_B = (
            (name, tuple(renamed(link) for link in links)) for name, links in (pair.group_A, pair.group_B)
        )


def transform(value: Value) -> tuple[str, RigidTransform]:
    """The base frame, empty where none is named, and the pose in it."""
    entries = value.mapping("transform", *TRANSFORM)
    base = entries["base_frame"].text("base_frame") if "base_frame" in entries else ""
    p = entries["translation"].numbers("translation", 3) if "translation" in entries else np.zeros(3)
    R = rotation(entries["rotation"]) if "rotation" in entries else np.eye(3)
    return base, RigidTransform(R, p)


def rotation(value: Value) -> np.ndarray:
    """!Rpy {deg: [roll, pitch, yaw]} or !AngleAxis {angle_deg: a, axis: [x, y, z]}."""
    match value.tag:
        case "!Rpy":
            entries = value.mapping("!Rpy", *ROTATIONS["!Rpy"])
            return rotation_from_rpy(np.deg2rad(required(entries, "deg", value).numbers("deg", 3)))
        case "!AngleAxis":
            entries = value.mapping("!AngleAxis", *ROTATIONS["!AngleAxis"])
            half = 0.5 * np.deg2rad(required(entries, "angle_deg", value).numbers("angle_deg", 1)[0])
            axis = entries["axis"].numbers("axis", 3) if "axis" in entries else np.array([0.0, 0.0, 1.0])
            length = float(np.linalg.norm(axis))
            if not 1e-12 < length < 1e12:
                raise value.error("!AngleAxis: the axis has no direction; give a vector other than zero.")
            x, y, z = np.sin(half) * axis / length
            return rotation_from_quaternion(x, y, z, np.cos(half))
        case "!Identity":
            return np.eye(3)
        case _:
            raise value.error(f"rotation {value.tag[:60]}: expected !Rpy {{deg: [0, 0, 90]}} or !AngleAxis.")


def required(entries: Mapping[str, Value], key: str, holder: Value) -> Value:
    if key not in entries:
        raise holder.error(f"'{key}' is missing.")
    return entries[key]


def joined(namespace: str, name: str) -> str:
    """A scoped name; the world is the same everywhere."""
    return name if not namespace or name == WORLD else f"{namespace}{DELIMITER}{name}" if name else namespace


def local_name(name: str) -> str:
    return name.rpartition(DELIMITER)[2]


def identity() -> RigidTransform:
    return RigidTransform(np.eye(3), np.zeros(3))
