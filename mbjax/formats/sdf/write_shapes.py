"""Links of an SDFormat file: mass properties and shapes."""

from typing import Any

import numpy as np

from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, Geometry, HalfSpace, Mesh, Shape, Sphere

from ..notes.write_notes import WriteNotes
from ..records.contact_shapes import unique_name
from ..records.mesh_files import NO_FOLDER, MeshFiles
from ..records.numbers import MOMENTS, central_inertia, is_identity, pose_matrix, roll_pitch_yaw
from ..records.robot_records import LinkRecord
from ..records.unwritten_parts import drake_properties
from ..xml.text import Element, add
from .write_scopes import allowed_name


def add_pose(parent: Element, X: np.ndarray, relative_to: str | None = None) -> None:
    """<pose>, left out where it says nothing."""
    if relative_to is not None or not is_identity(X):
        add(parent, "pose", np.concatenate([X[:3, 3], roll_pitch_yaw(X[:3, :3])]), relative_to=relative_to)


class SdfShapes:
    """Writes what links are made of."""

    def __init__(self, meshes: MeshFiles, has_contact: bool, notes: WriteNotes):
        self.meshes, self.has_contact, self.notes = meshes, has_contact, notes

    def add_contents(self, element: Element, link: LinkRecord) -> None:
        """Inertia and shapes of a link; a massless link says so, since SDFormat's default is 1 kg."""
        mass, com, moments = (
            (0.0, np.zeros(3), np.zeros((3, 3))) if link.inertia is None else central_inertia(link.inertia)
        )
        inertial = add(element, "inertial")
        add_pose(inertial, pose_matrix(np.eye(3), com))
        add(inertial, "mass", mass)
        inner = add(inertial, "inertia")
        for name, i, j in MOMENTS:
            add(inner, name, moments[i, j])
        self.add_shapes(element, link)

    def add_shapes(self, element: Element, link: LinkRecord) -> None:
        seen: dict[str, int] = {}
        touching: dict[str, int] = {}
        for geometry in link.visual:
            shape = self._add_shape(element, "visual", geometry, link.name, seen)
            if shape is not None and geometry.rgba is not None:
                add(add(shape, "material"), "diffuse", geometry.rgba)
        for record in link.collision:
            shape = self._add_shape(element, "collision", record.geometry, link.name, touching)
            if shape is not None and not isinstance(record.geometry.shape, Mesh):
                label = f"shape '{record.geometry.name}' of '{link.name}'"
                inner = add(shape, "drake:proximity_properties")
                for tag, value in drake_properties(record.properties, label, self.has_contact, self.notes).items():
                    add(inner, tag, value)

    def _add_shape(
        self, link: Element, tag: str, geometry: Geometry, link_name: str, taken: dict[str, int]
    ) -> Element | None:
        """<visual> or <collision>; None where the format has no such shape."""
        made = self._shape(geometry, f"{link_name}_{geometry.name}")
        if made is None:
            refuse = self.notes.unsupported if tag == "collision" and self.has_contact else self.notes.ignored
            refuse(f"{tag} shape '{geometry.name}' of '{link_name}'", NO_FOLDER)
            return None
        name = unique_name(allowed_name(geometry.name), taken)
        if name != geometry.name:
            message = f"written as '{name}': SDFormat reserves its name, or the link has another of it"
            self.notes.repaired(f"{tag} shape '{geometry.name}' of '{link_name}'", message)
        element = add(link, tag, name=name)
        add_pose(element, pose_matrix(geometry.rotation, geometry.translation))
        shape = add(add(element, "geometry"), made[0])
        for name, value in made[1].items():
            add(shape, name, value)
        return element

    def _shape(self, geometry: Geometry, file_name: str) -> tuple[str, dict[str, Any]] | None:
        shape: Shape = geometry.shape
        match shape:
            case Box(size):
                return "box", {"size": size}
            case Sphere(radius):
                return "sphere", {"radius": radius}
            case Cylinder(radius, length):
                return "cylinder", {"radius": radius, "length": length}
            case Capsule(radius, length):
                return "capsule", {"radius": radius, "length": length}
            case Ellipsoid(a, b, c):
                return "ellipsoid", {"radii": (a, b, c)}
            case HalfSpace():
                return "plane", {"normal": (0.0, 0.0, 1.0)}
            case Mesh():
                return "mesh", {"uri": self.meshes.name_of(shape), "scale": shape.scale}
            case Convex():
                file = self.meshes.write_hull(file_name, shape)
                if file is None:
                    return None
                self.notes.repaired(f"hull '{geometry.name}'", 'a mesh file; load it with meshes="hull"')
                return "mesh", {"uri": file}
