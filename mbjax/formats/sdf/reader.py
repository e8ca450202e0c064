"""SDFormat → `RobotRecord`s, one for each model of the file, whatever files it includes."""

import dataclasses
import os
from collections.abc import Mapping

from mbjax.model import USED

from ..files.reading_policy import ReadableFolders
from ..notes.load_notes import LoadNotes
from ..records.contact_shapes import warn_of_missing_files
from ..records.joint_springs import joint_spring
from ..records.robot_graph import check_graph
from ..records.robot_records import WORLD, FrameRecord, JointRecord, LinkRecord, RobotRecord
from ..urdf.reader import read_urdf
from ..xml.source import XmlDocument
from .bounds import report_numbers_no_robot_has
from .includes import IncludeReader
from .leftovers import list_leftovers
from .pose_graph import PoseGraph, is_deformable
from .read_contact import absolute, read_collision_filters
from .read_custom import CustomReader
from .read_deformables import DeformableReader
from .read_joints import JointReader
from .read_links import read_link
from .read_scopes import MODEL_FRAME, Context, Scope, Vertex
from .read_shapes import GeometryReader
from .references import References
from .scoping import ScopeBuilder, version_of
from .values import child_numbers

MAX_LINKS = 20_000


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of the parser that concern a file's contents."""

    package_map: Mapping[str, str | os.PathLike]
    inertia: str
    mimic: str
    hulls: bool


def read_sdf(document: XmlDocument, notes: LoadNotes, options: Options) -> list[RobotRecord]:
    """Everything the file says, checked; what is not used goes to `notes`."""

    def read_robot(included: XmlDocument) -> RobotRecord:
        return read_urdf(included, notes, options.package_map, options.inertia, options.mimic, options.hulls)

    includes = IncludeReader(
        options.package_map, ReadableFolders(document.folder, options.package_map.values()), read_robot
    )
    world = _scopes(document, includes)
    assert world.vertex is not None
    graph = PoseGraph(world.vertex)
    reader = ModelReader(graph, notes, options)
    scopes = [scope for scope in world.all_models() if scope is not world]
    num_links = sum(len(scope.links) for scope in scopes)
    if num_links > MAX_LINKS:
        raise document.root.error(f"{document.root.label} has {num_links} links; at most {MAX_LINKS} are read.")
    if not scopes:
        raise document.root.error(f"{document.root.label} has no <model>; a file needs at least one.")
    robots = {scope: reader.read(scope) for scope in scopes}
    if world.joints or world.frames or world.element.tag == "world":
        robots[world] = reader.read_world(world)
    for scope, records in read_collision_filters(world, notes).items():
        robots[scope].collision_filters += records
    check_graph(reader.as_one_robot(document))
    _rank(world, robots)
    for finder in includes.finders.values():
        warn_of_missing_files(finder, notes)
    roots = [document.root, *includes.roots()]
    report_numbers_no_robot_has(roots, notes)
    list_leftovers(roots, notes)
    _summarize(list(robots.values()), notes)
    return list(robots.values())


def _scopes(document: XmlDocument, includes: IncludeReader) -> Scope:
    """The scope of the world with all models of the file."""
    root = document.root
    worlds, models = root.all("world"), root.all("model")
    if len(worlds) + bool(models) > 1:
        raise root.error(
            f"<{root.tag}> has {len(worlds)} worlds and {len(models)} models; a file holds one world, or models alone."
        )
    holder = worlds[0] if worlds else root
    scope = Scope("", holder)
    context = Context(scope, None, includes.finder_for(document), version_of(root))
    scope.vertex = Vertex("world", WORLD, holder, context)
    builder = ScopeBuilder(includes)
    with includes.within(document, root):
        if worlds:
            builder.add_contents(worlds[0], context)
        for model in models:
            builder.add_model(model, context)
    return scope


def _rank(world: Scope, robots: dict[Scope, RobotRecord]) -> None:
    """The order of building: what is in a model before the model, and the world last."""
    order: list[Scope] = []

    def visit(scope: Scope) -> None:
        for model in scope.models:
            visit(model)
        order.append(scope)

    visit(world)
    for rank, scope in enumerate(order):
        if scope in robots:
            robots[scope].build_rank = rank


@dataclasses.dataclass
class ModelReader:
    """Reads the models of a file into records, and remembers which link each joint joins to which."""

    graph: PoseGraph
    notes: LoadNotes
    options: Options
    links: list[LinkRecord] = dataclasses.field(default_factory=list)
    joints: list[JointRecord] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self.references = References(self.graph)
        self.joint_reader = JointReader(self.graph, self.references, self.notes)
        self.custom_reader = CustomReader(self.graph, self.references, self.notes)
        self.geometry = GeometryReader(self.graph, self.notes, self.options.hulls)
        self.deformables = DeformableReader(self.graph, self.geometry, self.notes)

    def read(self, scope: Scope) -> RobotRecord:
        """One model, without those in it."""
        file, _, line = scope.element.place.rpartition(":")
        robot = RobotRecord(scope.name, file, int(line))
        for vertex in scope.links:
            if is_deformable(vertex):
                robot.deformables.append(self.deformables.read(vertex, is_static=scope.is_static))
                continue
            robot.links.append(read_link(vertex, self.geometry, self.notes, self.options.inertia))
            robot.free_poses[vertex.name] = self.graph.pose(vertex)
        if scope.is_static:
            robot.static_links = [link.name for link in robot.links]
        assert scope.vertex is not None
        body = self.graph.body_of(scope.vertex)
        X = self.graph.relative_pose(body, scope.vertex)
        place = f"{file}:{line}"
        robot.frames.append(
            FrameRecord(MODEL_FRAME, int(line), place, self.references.body_name(body, scope, scope.element), X)
        )
        self._read_joints(scope, robot)
        for urdf, context in scope.urdfs:
            self._take_urdf(urdf, context, robot)
        self._remember(scope, robot)
        self._read_frames(scope, robot)
        robot.force_elements += self.custom_reader.forces(scope)
        robot.constraints += self.custom_reader.constraints(scope)
        return robot

    def read_world(self, world: Scope) -> RobotRecord:
        """What stands between the models: joints and frames of a <world>, and its gravity."""
        robot = RobotRecord("", world.element.file, world.element.line, is_world=True)
        self._read_joints(world, robot)
        self._remember(world, robot)
        self._read_frames(world, robot)
        if world.element.only("gravity") is not None:
            robot.gravity = tuple(child_numbers(world.element, "gravity", 3).tolist())
            self.notes.add(USED, "<gravity>", f"{robot.gravity} m/s²", world.element.all("gravity")[0].place)
        return robot

    def as_one_robot(self, document: XmlDocument) -> RobotRecord:
        """All links and joints under their scoped names, for the checks of the tree."""
        return RobotRecord("", document.file, document.root.line, self.links, self.joints)

    def _read_joints(self, scope: Scope, robot: RobotRecord) -> None:
        reader = self.joint_reader
        for vertex in scope.joints:
            axes = reader.axes(vertex)
            record = reader.read(vertex, axes)
            robot.joints.append(record)
            actuator = reader.read_actuator(vertex, record)
            if actuator is not None:
                robot.actuators.append(actuator)
            axis = axes["axis"]
            if axis is not None and axis.spring_stiffness and record.joint_class.kind in ("revolute", "prismatic"):
                robot.force_elements.append(joint_spring(record, axis.spring_reference, axis.spring_stiffness))
        by_name = {joint.name: joint for joint in robot.joints}
        mimics = [reader.read_mimic(vertex, by_name, self.options.mimic) for vertex in scope.joints]
        robot.mimics += [mimic for mimic in mimics if mimic is not None]
        robot.joints += [reader.read_custom(part) for part in scope.custom if part.element.tag == "drake:joint"]

    def _read_frames(self, scope: Scope, robot: RobotRecord) -> None:
        """Frames after those that they are attached to."""
        done: set[Vertex] = set()
        for vertex in scope.frames:
            waiting = []
            while (
                vertex is not None and vertex.kind == "frame" and vertex not in done and vertex.context.scope is scope
            ):
                done.add(vertex)
                waiting.append(vertex)
                vertex = self._carrier(vertex)
            for frame in reversed(waiting):
                robot.frames.append(self._frame(frame, scope))

    def _frame(self, frame: Vertex, scope: Scope) -> FrameRecord:
        carrier = self._carrier(frame)
        name = self.references.frame_name(carrier, scope, frame.element)
        held_by = self.graph.body_of(carrier) if carrier.kind == "joint" else carrier
        X_PF = self.graph.relative_pose(held_by, frame)
        return FrameRecord(frame.name, frame.element.line, frame.element.place, name, X_PF, belongs_to_robot=False)

    def _carrier(self, frame: Vertex) -> Vertex:
        self.graph.body_of(frame)  # refuses cycles
        carrier = self.graph.carrier_of(frame)
        assert carrier is not None  # only links and the world have none
        return carrier

    def _take_urdf(self, urdf: RobotRecord, context: Context, robot: RobotRecord) -> None:
        """The contents of an included URDF file; its links without parent joint are where the SDFormat file says."""
        robot.links += urdf.links
        robot.joints += urdf.joints
        robot.actuators += urdf.actuators
        robot.frames += urdf.frames
        robot.mimics += urdf.mimics
        robot.collision_filters += urdf.collision_filters
        for link in urdf.links:
            if link.name != WORLD:
                robot.free_poses[link.name] = self.graph.pose(context.scope.members[link.name])

    def _remember(self, scope: Scope, robot: RobotRecord) -> None:
        """Links and joints under their scoped names."""
        own = {link.name for link in robot.links} - {WORLD}
        self.links += [
            dataclasses.replace(link, name=absolute(scope, link.name)) for link in robot.links if link.name != WORLD
        ]
        for joint in robot.joints:
            ends = self.joint_reader.bodies.get(id(joint))
            if ends is None:  # of an included URDF file
                names = [absolute(scope, name) if name in own else name for name in (joint.parent, joint.child)]
            else:
                names = [self.references.absolute_name(body) for body in ends]
            name = absolute(scope, joint.name)
            self.joints.append(dataclasses.replace(joint, name=name, parent=names[0], child=names[1]))


def _summarize(robots: list[RobotRecord], notes: LoadNotes) -> None:
    for robot in robots:
        if robot.is_world:
            continue
        kinds: dict[str, int] = {}
        for joint in robot.joints:
            kinds[joint.joint_class.kind] = kinds.get(joint.joint_class.kind, 0) + 1
        joints = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
        notes.add(
            USED,
            f"model '{robot.name}'",
            f"{len(robot.links)} links, {len(robot.joints)} joints"
            + (f" ({joints})" if joints else "")
            + f", {len(robot.actuators)} actuators, {len(robot.frames) - 1} frames, "
            f"{sum(len(link.visual) for link in robot.links)} visual and "
            f"{sum(len(link.collision) for link in robot.links)} collision shapes"
            + (f", {len(robot.deformables)} deformable bodies" if robot.deformables else ""),
            f"{robot.file}:{robot.line}",
        )
