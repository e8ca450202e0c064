"""Checks names and tree of a robot file: duplicates, missing links, two parents, cycles; errors give both lines."""

from collections.abc import Sequence

from mbjax.errors import ParseError

from ..xml.values import did_you_mean
from .robot_records import WORLD, FrameRecord, JointRecord, LinkRecord, RobotRecord


def check_graph(robot: RobotRecord) -> None:
    """Raises ParseError unless the joints join the links into trees."""
    _check_unique("link", robot.links)
    _check_unique("joint", robot.joints)
    _check_unique("frame", robot.frames)
    links = {link.name: link for link in robot.links}
    for frame in robot.frames:
        if frame.name in links:
            raise _error(
                frame,
                f"frame '{frame.name}' has the name of a link (line {links[frame.name].line}); rename one.",
            )
        if frame.link not in links and frame.link != WORLD:
            raise _no_link(robot, frame, f"frame '{frame.name}'", "is fixed to", frame.link)
    parent_joints: dict[str, JointRecord] = {}
    for joint in robot.joints:
        for role, name in (("parent", joint.parent), ("child", joint.child)):
            if name not in links and name != WORLD:
                raise _no_link(robot, joint, f"joint '{joint.name}'", f"has {role}", name)
        first = parent_joints.setdefault(joint.child, joint)
        if first is not joint:
            raise _error(
                joint,
                f"link '{joint.child}' has two parents: joint '{first.name}' (line {first.line}, from "
                f"'{first.parent}') and joint '{joint.name}' (line {joint.line}, from '{joint.parent}'). "
                "A link hangs on one joint; remove the other, and close a loop with a constraint.",
            )
    _check_cycles(robot, parent_joints)


def _check_cycles(robot: RobotRecord, parent_joints: dict[str, JointRecord]) -> None:
    attached: set[str] = set()
    for link in robot.links:
        path: list[JointRecord] = []
        on_path: set[str] = set()
        name = link.name
        while name in parent_joints and name not in attached:
            if name in on_path:
                start = next(i for i, joint in enumerate(path) if joint.child == name)
                cycle = path[start:][::-1]
                way = ", ".join(f"'{joint.name}' (line {joint.line})" for joint in cycle)
                raise _error(
                    cycle[0],
                    f"link '{name}' is its own ancestor through the joints {way}. Joints make a tree; remove "
                    "one of these, and close the loop with a constraint.",
                )
            on_path.add(name)
            path.append(parent_joints[name])
            name = parent_joints[name].parent
        attached |= on_path


def _check_unique(what: str, records: Sequence[LinkRecord] | Sequence[JointRecord] | Sequence[FrameRecord]) -> None:
    lines: dict[str, int] = {}
    for record in records:
        if record.name in lines:
            raise _error(
                record,
                f"two {what}s are named '{record.name}' (lines {lines[record.name]} and {record.line}); rename one.",
            )
        lines[record.name] = record.line


def _no_link(robot: RobotRecord, record: JointRecord | FrameRecord, who: str, role: str, name: str) -> ParseError:
    hint = did_you_mean(name, [link.name for link in robot.links])
    return _error(record, f"{who} {role} link '{name}', which does not exist. {hint}")


def _error(record: LinkRecord | JointRecord | FrameRecord, message: str) -> ParseError:
    file, _, line = record.place.rpartition(":")
    return ParseError(message, file=file, line=int(line))
