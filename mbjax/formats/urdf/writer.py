"""Writes a model as a URDF, with Drake's extensions where the format itself has no word for a part."""

import os
from pathlib import Path
from typing import Any, Literal

import numpy as np

from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, Geometry, HalfSpace, Mesh, Sphere
from mbjax.model import MultibodyModel

from ..notes.write_notes import WriteNotes, Written
from ..records.deformables_of_models import refuse_deformable_bodies
from ..records.mesh_files import NO_FOLDER, MeshFiles
from ..records.model_records import ModelRecords, drake_filters, is_mimic, records_of
from ..records.names import NameRules
from ..records.numbers import MOMENTS, as_matrix, central_inertia, is_identity, pose_matrix, roll_pitch_yaw
from ..records.robot_records import WORLD, LinkRecord, RobotRecord
from ..records.unwritten_parts import (
    drake_properties,
    is_gravity_of_earth,
    list_default_positions,
    list_keyframes,
    list_time_step,
    refuse_armature,
)
from ..xml.text import Element, add, document_text, new
from .write_joints import add_joints, joints_before_links


def to_urdf(
    model: MultibodyModel,
    path: str | os.PathLike | None = None,
    *,
    on_unsupported: Literal["error", "warn"] = "error",
    mesh_folder: str | os.PathLike | None = None,
) -> Written:
    """The model with its numbers of now as the text of a URDF, which is also written to `path` if one is given.

    `load(text)` has the same motion to rounding. All digits of a number are written. What URDF does not hold and acts
    on the motion is refused, or with `on_unsupported="warn"` left out; the text's `report` lists it, with all else that
    is not in the file. A mesh is named as the model names it, or with `path` by its path from there. Convex hulls are
    written as .obj files into `mesh_folder`. Extensions are Drake's: joints, actuators, contact and filters.
    """
    notes = WriteNotes("to_urdf", "URDF", on_unsupported)
    records = records_of(model, notes, NameRules(is_flat=True, shared=("body", "frame")))
    meshes = MeshFiles(path, mesh_folder, notes)
    text = UrdfWriter(records, notes, meshes).text()
    written = notes.finish(text)
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return written


class UrdfWriter:
    """Writes the records of a model into the elements of a URDF."""

    def __init__(self, records: ModelRecords, notes: WriteNotes, meshes: MeshFiles):
        self.records, self.notes, self.meshes = records, notes, meshes
        (self.robot,) = records.robots
        refuse_deformable_bodies(records.robots, notes)
        self.root = new("robot", name=self.robot.name, **{"xmlns:drake": "http://drake.mit.edu"})

    def text(self) -> str:
        robot, world = self.robot, self.records.world
        if world.links or any(joint.parent == WORLD for joint in robot.joints) or world.frames:
            self._add_link((world.links or [LinkRecord(WORLD, 0, "")])[0])
        for link in robot.links:
            self._add_link(link)
        add_joints(self.root, robot, self.notes)
        self._add_transmissions()
        for frame in [*robot.frames, *world.frames]:
            add(self.root, "frame", name=frame.name, link=frame.link, **pose_attributes(as_matrix(frame.X_PF)))
        self._add_filters()
        self._list_the_rest(robot)
        return document_text(self.root)

    def _add_link(self, link: LinkRecord) -> None:
        element = add(self.root, "link", name=link.name)
        if link.inertia is not None:
            mass, com, moments = central_inertia(link.inertia)
            inertial = add(element, "inertial")
            add_origin(inertial, pose_matrix(np.eye(3), com))
            add(inertial, "mass", value=mass)
            add(inertial, "inertia", **{name: moments[i, j] for name, i, j in MOMENTS})
        for geometry in link.visual:
            self._add_shape(element, "visual", geometry, link.name)
        for record in link.collision:
            shape = self._add_shape(element, "collision", record.geometry, link.name)
            if shape is not None and not isinstance(record.geometry.shape, Mesh):
                label = f"shape '{record.geometry.name}' of '{link.name}'"
                found = drake_properties(record.properties, label, self.records.has_contact, self.notes)
                inner = add(shape, "drake:proximity_properties")
                for tag, value in found.items():
                    add(inner, tag, value=value)

    def _add_shape(self, link: Element, tag: str, geometry: Geometry, link_name: str) -> Element | None:
        """<visual> or <collision>; None where the format has no such shape."""
        made = self._shape(geometry, tag, link_name)
        if made is None:
            return None
        element = add(link, tag, name=geometry.name)
        add_origin(element, pose_matrix(geometry.rotation, geometry.translation))
        shape, attributes = made
        add(add(element, "geometry"), shape, **attributes)
        if tag == "visual" and geometry.rgba is not None:
            add(add(element, "material", name=f"color of {link_name} {geometry.name}"), "color", rgba=geometry.rgba)
        return element

    def _shape(self, geometry: Geometry, tag: str, link_name: str) -> tuple[str, dict[str, Any]] | None:
        match geometry.shape:
            case Box(size):
                return "box", {"size": size}
            case Sphere(radius):
                return "sphere", {"radius": radius}
            case Cylinder(radius, length):
                return "cylinder", {"radius": radius, "length": length}
            case Capsule(radius, length):
                return "capsule", {"radius": radius, "length": length}
            case Ellipsoid(a, b, c):
                return "drake:ellipsoid", {"a": a, "b": b, "c": c}
            case Mesh() as mesh:
                return "mesh", {"filename": self.meshes.name_of(mesh), "scale": mesh.scale}
            case Convex() as hull:
                file = self.meshes.write_hull(f"{link_name}_{geometry.name}", hull)
                if file is not None:
                    self.notes.repaired(f"hull '{geometry.name}'", 'a mesh file; load it with meshes="hull"')
                    return "mesh", {"filename": file}
                why = NO_FOLDER
            case HalfSpace():
                why = "URDF has no plane; load(…, ground=True) adds one"
        refuse = self.notes.unsupported if tag == "collision" and self.records.has_contact else self.notes.ignored
        refuse(f"{tag} shape '{geometry.name}' of '{link_name}'", why)
        return None

    def _add_transmissions(self) -> None:
        reflected = refuse_armature([self.robot], self.notes)
        limits: dict[str, float] = {}
        for actuator in self.robot.actuators:
            label, limit = f"actuator '{actuator.name}'", actuator.options["effort_limit"]
            if limits.setdefault(actuator.joint, limit) != limit:
                self.notes.unsupported(label, "another actuator of its joint has another effort limit; URDF has one")
            if limit == 0.0:
                self.notes.unsupported(label, "with an effort limit of 0 it would be none, as in Drake")
                continue
            element = add(self.root, "transmission", name=f"{actuator.name}_transmission")
            add(element, "type", "transmission_interface/SimpleTransmission")
            add(element, "joint", name=actuator.joint)
            inner = add(element, "actuator", name=actuator.name)
            numbers = reflected[f"{self.robot.name}::{actuator.name}"]
            if numbers["rotor_inertia"] or numbers["gear_ratio"] != 1.0:
                add(inner, "drake:rotor_inertia", value=numbers["rotor_inertia"])
                add(inner, "drake:gear_ratio", value=numbers["gear_ratio"])
            if "kp" in actuator.options:
                add(inner, "drake:controller_gains", p=actuator.options["kp"], d=actuator.options["kd"])

    def _add_filters(self) -> None:
        """One group a link that has some, which names those that it does not touch."""
        ignored: dict[str, list[str]] = {}
        refuse = self.notes.unsupported if self.records.has_contact else self.notes.ignored
        for record in drake_filters(self.records, self.notes, joints_before_links(self.robot)):
            (_, (a,)), (_, (b,)) = record.group_A, record.group_B
            if WORLD in (a, b):
                refuse(f"shapes of '{a}' and '{b}'", "collision filter groups of a URDF do not hold the world")
                continue
            ignored.setdefault(a, []).append(b)
            ignored.setdefault(b, [])
        for link, others in ignored.items():
            element = add(self.root, "drake:collision_filter_group", name=f"links like {link}")
            add(element, "drake:member", link=link)
            for other in others:
                add(element, "drake:ignored_collision_filter_group", name=f"links like {other}")

    def _list_the_rest(self, robot: RobotRecord) -> None:
        notes = self.notes
        if not is_gravity_of_earth(self.records.model):
            notes.unsupported("gravity", f"{self.records.world.gravity} m/s² is not in a URDF; use mbjax.set_gravity")
        for link, X_WB in robot.free_poses.items():
            if not is_identity(as_matrix(X_WB)):
                notes.ignored(
                    f"link '{link}'", "its default pose is not in the file; set_default_free_body_pose sets it"
                )
        for joint in robot.joints:
            list_default_positions(joint, notes)
        for record in robot.force_elements:
            notes.unsupported(f"{record.element_class.__name__} '{record.name}'", "URDF has no force elements")
        for constraint in robot.constraints:
            if not is_mimic(constraint, robot):
                notes.unsupported(f"{constraint.kind} constraint '{constraint.name}'", "URDF has no such constraint")
        list_keyframes(robot, notes)
        list_time_step(self.records, notes)


def pose_attributes(X: np.ndarray) -> dict[str, Any]:
    return {"xyz": X[:3, 3], "rpy": roll_pitch_yaw(X[:3, :3])}


def add_origin(parent: Element, X: np.ndarray) -> None:
    if not is_identity(X):
        add(parent, "origin", **pose_attributes(X))
