"""Writes a model as SDFormat, with Drake's extensions where the format itself has no word for a part."""

import os
from pathlib import Path
from typing import Literal

import numpy as np

from mbjax.joints import PlanarJoint
from mbjax.model import MultibodyModel

from ..notes.write_notes import WriteNotes, Written
from ..records.mesh_files import MeshFiles
from ..records.model_records import ModelRecords, drake_filters, records_of
from ..records.names import NameRules
from ..records.numbers import as_matrix, inverse_pose, is_identity
from ..records.robot_records import WORLD, JointRecord, LinkRecord, RobotRecord
from ..records.unwritten_parts import (
    is_gravity_of_earth,
    joint_label,
    list_default_positions,
    list_keyframes,
    list_limits_without_place,
    list_time_step,
    refuse_armature,
    refuse_dissipation,
)
from ..xml.text import Element, add, document_text, new
from .write_custom import add_custom
from .write_deformables import add_deformable
from .write_joints import FLOATING, TYPES, SdfJoints
from .write_scopes import Place, Scopes, allowed_name
from .write_shapes import SdfShapes, add_pose

VERSION = "1.9"
MODEL = "__model__"
SHAPES_OF_WORLD = "shapes_of_the_world"


def to_sdf(
    model: MultibodyModel,
    path: str | os.PathLike | None = None,
    *,
    on_unsupported: Literal["error", "warn"] = "error",
    mesh_folder: str | os.PathLike | None = None,
) -> Written:
    """The model with its numbers of now as the text of an SDFormat file, which is also written to `path` if given.

    Each model instance is a <model>; a <world> stands around them where there are several, or where gravity is not that
    of the earth. `load(text)` has the same motion to rounding. All digits of a number are written. What the
    format, as Drake reads it, does not hold and acts on the motion is refused, or with `on_unsupported="warn"` left
    out; the text's `report` lists it, with all else that is not in the file. A mesh is named as the model names it, or
    with `path` by its path from there. Convex hulls are written as .obj files into `mesh_folder`, and the
    tetrahedra of deformable bodies as .vtk files.
    """
    notes = WriteNotes("to_sdf", "SDFormat", on_unsupported)
    rules = NameRules(False, shared=("body", "joint", "frame", "deformable"), allowed=allowed_name)
    records = records_of(model, notes, rules)
    text = SdfWriter(records, notes, MeshFiles(path, mesh_folder, notes)).text()
    written = notes.finish(text)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return written


class SdfWriter:
    """Writes the records of a model into the elements of an SDFormat file."""

    def __init__(self, records: ModelRecords, notes: WriteNotes, meshes: MeshFiles):
        self.records, self.notes = records, notes
        self.scopes = Scopes(records.robots, {frame.name for frame in records.world.frames})
        self.meshes = meshes
        self.shapes = SdfShapes(meshes, records.has_contact, notes)
        self.joints = SdfJoints(refuse_armature(records.robots, notes), notes)
        self.root = new("sdf", version=VERSION, **{"xmlns:drake": "http://drake.mit.edu"})
        self.models: dict[Place, Element] = {}

    def text(self) -> str:
        records, scopes = self.records, self.scopes
        top = [place for place in scopes.places.values() if len(place) == 1]
        between = [
            joint
            for robot in records.robots
            for joint in robot.joints
            if not scopes.common(scopes.find(robot, joint.parent), scopes.find(robot, joint.child))
        ]
        of_world = records.world.frames
        holder = self.root
        if len(top) > 1 or between or of_world or not is_gravity_of_earth(records.model):
            holder = add(self.root, "world", name="default")
            add(holder, "gravity", records.world.gravity)
        self.models[()] = holder
        for robot in sorted(records.robots, key=lambda robot: len(scopes.places[robot.name])):
            place = scopes.places[robot.name]
            self.models[place] = add(self.models[place[:-1]], "model", name=place[-1])
        for robot in records.robots:
            for link in robot.links:
                self._add_link(robot, link)
            for record in robot.deformables:
                add_deformable(self.models[scopes.places[robot.name]], record, self.meshes, self.notes)
        for robot in records.robots:
            self._add_rest(robot)
        self._add_world()
        self._add_filters()
        list_time_step(records, self.notes)
        return document_text(self.root)

    def _add_link(self, robot: RobotRecord, link: LinkRecord) -> None:
        end = self.scopes.find(robot, link.name)
        element = add(self.models[end[0]], "link", name=link.name)
        found = self.scopes.joint_of(end)
        if found is None or found[1].joint_class in FLOATING or self._place(*found) != end[0]:
            add_pose(element, self.scopes.pose(end))
        else:
            X_MB = inverse_pose(np.asarray(found[1].options["X_BM"]))
            at = found[1].name if found[1].joint_class is not PlanarJoint else self._planar_parent(*found)[0]
            add_pose(element, X_MB, MODEL if at == WORLD else at)
        self.shapes.add_contents(element, link)

    def _place(self, robot: RobotRecord, joint: JointRecord) -> Place:
        """The model in which a joint is written."""
        return self.scopes.common(self.scopes.find(robot, joint.parent), self.scopes.find(robot, joint.child))

    def _add_rest(self, robot: RobotRecord) -> None:
        for joint in robot.joints:
            if joint.joint_class in FLOATING:
                self._leave_floating(joint)
            elif joint.joint_class is PlanarJoint:
                self._add_planar(robot, joint)
            else:
                self._add_joint(robot, joint)
        for frame in robot.frames:
            end = self.scopes.find(robot, frame.link)
            place = self.scopes.places[robot.name]
            if end[0][: len(place)] != place:
                self.notes.ignored(f"frame '{frame.name}'", "it is of a model that does not hold its link")
                continue
            name = self.scopes.name_in(place, end)
            element = add(self.models[place], "frame", name=frame.name, attached_to=name)
            add_pose(element, as_matrix(frame.X_PF))
        add_custom(self.models, self.scopes, robot, self.notes)
        list_keyframes(robot, self.notes)

    def _leave_floating(self, joint: JointRecord) -> None:
        """A link without a joint floats: what else a floating joint has is not in the file."""
        notes = self.notes
        refuse_dissipation(joint, notes, ("damping", "friction", "armature"))
        list_limits_without_place(joint, notes, ("position", "velocity", "acceleration"))
        what = "SDFormat has no such joint: the link is free, with a quaternion and the frames of world and link"
        if joint.parent != WORLD:
            notes.unsupported(joint_label(joint), f"{what}; '{joint.parent}', which bears it, is not the world")
            return
        notes.repaired(joint_label(joint), what)

    def _add_joint(self, robot: RobotRecord, joint: JointRecord) -> None:
        scopes, place = self.scopes, self._place(robot, joint)
        parent, child = scopes.find(robot, joint.parent), scopes.find(robot, joint.child)
        element = add(self.models[place], "joint", name=joint.name, type=TYPES[joint.joint_class])
        if place == child[0]:
            X_PF = np.asarray(joint.options["X_PF"])
            add_pose(element, X_PF, MODEL if joint.parent == WORLD else scopes.name_in(place, parent))
        else:
            add_pose(element, np.asarray(joint.options["X_BM"]), scopes.name_in(place, child))
        add(element, "parent", scopes.name_in(place, parent))
        add(element, "child", scopes.name_in(place, child))
        self.joints.add_numbers(element, joint, robot)

    def _planar_parent(self, robot: RobotRecord, joint: JointRecord) -> tuple[str, bool]:
        """Name of what stands at frame F of a planar joint, and whether it has to be made."""
        if is_identity(np.asarray(joint.options["X_PF"])):
            return self.scopes.name_in(self._place(robot, joint), self.scopes.find(robot, joint.parent)), False
        return f"{joint.name}_parent", True

    def _add_planar(self, robot: RobotRecord, joint: JointRecord) -> None:
        """<drake:joint>: it joins two frames, and one that is fixed in the world needs a link to be attached to."""
        scopes, place = self.scopes, self._place(robot, joint)
        model = self.models[place]
        parent_name, is_new = self._planar_parent(robot, joint)
        X_PF, X_BM = (np.asarray(joint.options[key]) for key in ("X_PF", "X_BM"))
        if is_new and joint.parent == WORLD:
            link = add(model, "link", name=parent_name)
            add_pose(link, X_PF)
            self.shapes.add_contents(link, LinkRecord(parent_name, 0, ""))
            weld = add(model, "joint", name=f"{parent_name}_weld", type="fixed")
            add(weld, "parent", WORLD)
            add(weld, "child", parent_name)
            self.notes.repaired(
                joint_label(joint), f"it holds to the massless link '{parent_name}', welded to the world"
            )
        elif is_new:
            held_by = scopes.name_in(place, scopes.find(robot, joint.parent))
            add_pose(add(model, "frame", name=parent_name, attached_to=held_by), X_PF)
        child_name = scopes.name_in(place, scopes.find(robot, joint.child))
        if not is_identity(X_BM):
            frame = add(model, "frame", name=f"{joint.name}_child", attached_to=child_name)
            add_pose(frame, X_BM)
            child_name = f"{joint.name}_child"
        element = add(model, "drake:joint", name=joint.name, type="planar")
        add(element, "drake:parent", parent_name)
        add(element, "drake:child", child_name)
        add(element, "drake:damping", joint.options["damping"])
        refuse_dissipation(joint, self.notes, ("friction", "armature"))
        list_default_positions(joint, self.notes)
        list_limits_without_place(joint, self.notes, ("position", "velocity", "acceleration"))

    def _add_world(self) -> None:
        world, holder = self.records.world, self.models[()]
        for frame in world.frames:
            element = add(holder, "frame", name=frame.name, attached_to=WORLD)
            add_pose(element, as_matrix(frame.X_PF))
        for link in world.links:
            model = self.models[self.scopes.places[self.records.robots[0].name]]
            element = add(model, "link", name=SHAPES_OF_WORLD)
            self.shapes.add_contents(element, LinkRecord(WORLD, 0, "", None, link.visual, link.collision))
            weld = add(model, "joint", name=f"world_welds_to_{SHAPES_OF_WORLD}", type="fixed")
            add(weld, "parent", WORLD)
            add(weld, "child", SHAPES_OF_WORLD)
            what = f"on a link '{SHAPES_OF_WORLD}' that is welded to it, since a world of SDFormat has none of its own"
            self.notes.repaired("shapes of the world", what)

    def _add_filters(self) -> None:
        """One group a link that has some, in the innermost model that holds both links of a pair."""
        groups: dict[tuple[Place, str], list[str]] = {}
        for record in drake_filters(self.records, self.notes):
            ends = [self._link_end(links[0]) for _, links in (record.group_A, record.group_B)]
            place = self.scopes.common(*ends)
            if not place:
                refuse = self.notes.unsupported if self.records.has_contact else self.notes.ignored
                what = f"'{'::'.join((*ends[0][0], ends[0][1]))}' and '{'::'.join((*ends[1][0], ends[1][1]))}'"
                refuse(f"shapes of {what}", "they do not touch, which SDFormat says of links within one model only")
                continue
            a, b = (self.scopes.name_in(place, end) for end in ends)
            groups.setdefault((place, a), []).append(b)
            groups.setdefault((place, b), [])
        for (place, link), others in groups.items():
            element = add(self.models[place], "drake:collision_filter_group", name=group_name(link))
            add(element, "drake:member", link)
            for other in others:
                add(element, "drake:ignored_collision_filter_group", group_name(other))

    def _link_end(self, name: str) -> tuple[Place, str]:
        """Place and name of a link given as `robot::link`, or of that for the shapes of the world."""
        first = self.records.robots[0]
        return self.scopes.find(first, SHAPES_OF_WORLD if name == WORLD else name)


def group_name(link: str) -> str:
    """A group's name; one with :: would belong to another model."""
    return f"links_like_{link.replace('::', '_')}"
