"""Reads a URDF into a `RobotRecord`: everything the format has, in the order of the file."""

import os
from collections.abc import Mapping
from pathlib import Path

from mbjax.errors import ParseError
from mbjax.model import IGNORED, KEPT, REPAIRED, USED

from ..files.resource_paths import ResourceFinder
from ..notes.load_notes import LoadNotes
from ..records.contact_shapes import warn_of_missing_files
from ..records.robot_graph import check_graph
from ..records.robot_records import WORLD, FrameRecord, RobotRecord
from ..xml.source import XmlDocument
from ..xml.tree import XmlElement
from ..xml.values import pose, required_text
from .bounds import report_numbers_no_robot_has
from .leftovers import list_leftovers
from .read_contact import read_collision_filters
from .read_joints import read_joint, read_mimic
from .read_links import read_link
from .read_shapes import GeometryReader, read_materials
from .read_transmissions import read_transmission

MAX_LINKS = 20_000
OTHER_FORMATS = {
    "mujocoinclude": "this is a part of an MJCF (MuJoCo) file; load the file that includes it",
    "COLLADA": "this is a COLLADA mesh or scene, not a robot",
    "package": "this is a ROS package manifest, not a robot; give the .urdf file",
    "html": "this is a web page, not a robot; was the download redirected?",
}


def read_urdf(
    document: XmlDocument,
    notes: LoadNotes,
    package_map: Mapping[str, str | os.PathLike],
    inertia: str,
    mimic: str,
    hulls: bool,
) -> RobotRecord:
    """Reads and checks everything in the file; parts that are not used go to `notes`."""
    root = document.root
    check_format(root)
    name = _robot_name(document, notes)
    robot = RobotRecord(name, document.file, root.line)
    _drop_ignored(root, notes)
    finder = ResourceFinder(document.folder, package_map)
    geometry = GeometryReader(finder, notes, read_materials(root, notes), hulls)
    if len(root.all("link")) > MAX_LINKS:
        raise root.error(f"{root.label} has {len(root.all('link'))} links; at most {MAX_LINKS} are read.")
    robot.links = [read_link(element, geometry, notes, inertia) for element in root.all("link")]
    if not robot.links:
        raise root.error(f'<robot name="{name}"> has no <link>; a robot needs at least one.')
    joint_elements = root.all("joint", "drake:joint")
    robot.joints = [read_joint(element, notes) for element in joint_elements]
    robot.frames = [_read_frame(element) for element in root.all("frame")]
    check_graph(robot)
    by_name = {joint.name: joint for joint in robot.joints}
    mimics = [read_mimic(element, by_name, notes, mimic) for element in joint_elements]
    robot.mimics = [record for record in mimics if record is not None]
    actuators = [read_transmission(element, by_name, notes) for element in root.all("transmission")]
    robot.actuators = [actuator for actuator in actuators if actuator is not None]
    _check_actuator_names(robot)
    robot.collision_filters = read_collision_filters(root, robot, notes)
    warn_of_missing_files(finder, notes)
    report_numbers_no_robot_has(root, notes)
    list_leftovers(root, notes)
    _summarize(robot, notes)
    return robot


def _robot_name(document: XmlDocument, notes: LoadNotes) -> str:
    """Name of the robot from its attribute, or from the file's name where there is none."""
    name = document.root.attributes.get("name", "").strip()
    if name:
        return name
    if document.folder is None:
        raise document.root.error('<robot> has no name; write <robot name="…">.')
    name = Path(document.file).stem
    message = f"<robot> has no name; called '{name}' after the file"
    notes.add(REPAIRED, f"robot '{name}'", message, document.root.place)
    notes.warn(message, f"line {document.root.line}")
    return name


def check_format(root: XmlElement) -> None:
    """Refuses a document that is not an expanded URDF, naming what it looks like."""
    if root.tag != "robot":
        what = OTHER_FORMATS.get(
            root.tag, "this is no format mbjax knows; it reads URDF, SDFormat, MJCF and model directives"
        )
        raise root.error(f"the outermost element is <{root.tag[:60]}>, where URDF has <robot>: {what}.")
    stack = [root]
    while stack:
        element = stack.pop()
        if element.tag.startswith("xacro:"):
            raise element.error(
                f"<{element.tag}> is a xacro instruction: load it with xacro_arguments={{}} or call it *.xacro, or "
                "expand it first, with `xacro FILE.xacro > FILE.urdf`."
            )
        stack.extend(reversed(element.children))


def _drop_ignored(root: XmlElement, notes: LoadNotes) -> None:
    """Drops links and joints marked drake_ignore="true", as Drake does."""
    kept = []
    for element in root.children:
        can_be_ignored = element.tag in ("link", "joint", "drake:joint")
        if can_be_ignored and element.attributes.get("drake_ignore") == "true":
            notes.add(IGNORED, element.label, 'drake_ignore="true"', element.place)
        else:
            kept.append(element)
    root.children = kept


def _read_frame(element: XmlElement) -> FrameRecord:
    name, link = required_text(element, "name"), required_text(element, "link")
    return FrameRecord(name, element.line, element.place, link, pose(element))


def _check_actuator_names(robot: RobotRecord) -> None:
    lines: dict[str, int] = {}
    for actuator in robot.actuators:
        if actuator.name in lines:
            raise ParseError(
                f"actuator '{actuator.name}' is defined twice (lines {lines[actuator.name]} and "
                f"{actuator.line}); rename one.",
                file=robot.file,
                line=actuator.line,
            )
        lines[actuator.name] = actuator.line


def _summarize(robot: RobotRecord, notes: LoadNotes) -> None:
    roots = robot.root_links()
    if len(roots) > 1:
        names = ", ".join(f"'{link.name}' (line {link.line})" for link in roots)
        message = "several links have no parent joint; each moves by itself"
        notes.add(KEPT, f"robot '{robot.name}'", f"{message}: {names}", f"{robot.file}:{robot.line}")
        notes.warn(message, names)
    kinds: dict[str, int] = {}
    for joint in robot.joints:
        kinds[joint.joint_class.kind] = kinds.get(joint.joint_class.kind, 0) + 1
    joints = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    notes.add(
        USED,
        f"robot '{robot.name}'",
        f"{sum(link.name != WORLD for link in robot.links)} links, {len(robot.joints)} joints"
        + (f" ({joints})" if joints else "")
        + f", {len(robot.actuators)} actuators, {len(robot.frames)} frames, "
        f"{sum(len(link.visual) for link in robot.links)} visual and "
        f"{sum(len(link.collision) for link in robot.links)} collision shapes",
        f"{robot.file}:{robot.line}",
    )
