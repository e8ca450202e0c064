"""MJCF → `RobotRecord`: what MuJoCo's compiler made of the file, in the words of the plant."""

import os
from collections.abc import Mapping
from pathlib import Path

from mbjax.model import USED

from ..notes.load_notes import LoadNotes
from ..records.robot_graph import check_graph
from ..records.robot_records import WORLD, RobotRecord
from ..xml.source import XmlDocument
from .bounds import report_numbers_no_robot_has
from .compiled import Compiled, compile_model
from .leftovers import list_leftovers
from .read_actuators import read_actuators
from .read_bodies import read_bodies, read_sites
from .read_equality import read_equality
from .read_geoms import read_geoms
from .read_keyframes import read_keyframes
from .read_options import read_options
from .read_tendons import check_tendons


def read_mjcf(
    document: XmlDocument,
    notes: LoadNotes,
    package_map: Mapping[str, str | os.PathLike],
    mimic: str,
    hulls: bool,
) -> RobotRecord:
    """Everything the file says, compiled; what is not used goes to `notes`."""
    folders = [Path(folder).expanduser() for folder in package_map.values()]
    compiled = compile_model(document, notes, folders)
    report_numbers_no_robot_has(compiled, notes)
    robot = RobotRecord(compiled.name, document.file, document.root.line)
    read_options(compiled, robot, notes)
    read_bodies(compiled, robot, notes)
    read_sites(compiled, robot, notes)
    read_geoms(compiled, robot, notes, hulls)
    read_actuators(compiled, robot, notes)
    check_tendons(compiled, notes)
    read_equality(compiled, robot, notes, mimic)
    read_keyframes(compiled, robot)
    check_graph(robot)
    list_leftovers(compiled, notes)
    summarize(robot, compiled, notes)
    return robot


def summarize(robot: RobotRecord, compiled: Compiled, notes: LoadNotes) -> None:
    """One entry that counts what was used."""
    kinds: dict[str, int] = {}
    for joint in robot.joints:
        kinds[joint.joint_class.kind] = kinds.get(joint.joint_class.kind, 0) + 1
    joints = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    notes.add(
        USED,
        f"model '{robot.name}'",
        f"compiled by MuJoCo {compiled.mujoco.__version__}: {sum(link.name != WORLD for link in robot.links)} links, "
        f"{len(robot.joints)} joints" + (f" ({joints})" if joints else "") + f", {len(robot.actuators)} actuators, "
        f"{len(robot.frames)} frames, {sum(len(link.visual) for link in robot.links)} visual and "
        f"{sum(len(link.collision) for link in robot.links)} collision shapes, {len(robot.constraints)} constraints, "
        f"{len(robot.keyframes)} keyframes",
        f"{robot.file}:{robot.line}",
    )
