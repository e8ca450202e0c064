"""<link> with <drake:deformable_properties>: a body of tetrahedra, as Drake reads it."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mbjax.errors import MissingPackageError
from mbjax.geometry import Mesh, ProximityProperties, Shape, TetrahedralMesh, tetrahedra_of
from mbjax.model import IGNORED, USED

from ..files.reading_policy import MAX_TETRAHEDRA
from ..files.resource_paths import words_for_tried
from ..notes.load_notes import LoadNotes
from ..records.deformable_records import DeformableRecord, WallRecord
from ..xml.tree import XmlElement
from ..xml.values import bad_value
from .pose_graph import DEFORMABLE, PoseGraph
from .read_scopes import Vertex
from .read_shapes import GeometryReader, without_prefix
from .values import child_number, child_numbers, child_text, raw_pose, required_child, unit_vector

WALL = "drake:wall_boundary_condition"
HINT = "drake:mesh_resolution_hint"
MATERIAL_MODELS = {
    "linear_corotated": "linear_corotated",
    "corotated": "corotated",
    "neohookean": "neo_hookean",
    "linear": "linear",
}
PROPERTIES = {
    "drake:mu_dynamic": "dynamic_friction",
    "drake:hunt_crossley_dissipation": "hunt_crossley_dissipation",
    "drake:relaxation_time": "relaxation_time",
}
RIGID_PARTS = ("inertial", "gravity", "kinematic", "velocity_decay")


def is_positive(number: float) -> bool:
    return number > 0.0


def is_not_negative(number: float) -> bool:
    return number >= 0.0


def is_poissons_ratio(number: float) -> bool:
    return -1.0 < number < 0.5


NUMBERS: dict[str, tuple[str, Callable[[float], bool], str]] = {
    "drake:youngs_modulus": ("youngs_modulus", is_positive, "a number of Pa above 0 expected."),
    "drake:poissons_ratio": ("poissons_ratio", is_poissons_ratio, "a number between -1 and 0.5 expected."),
    "drake:mass_density": ("mass_density", is_positive, "a number of kg/m³ above 0 expected."),
    "drake:mass_damping": ("mass_damping", is_not_negative, "a number of 1/s, 0 or above, expected."),
    "drake:stiffness_damping": ("stiffness_damping", is_not_negative, "a number of s, 0 or above, expected."),
}


@dataclasses.dataclass
class DeformableReader:
    """Reads the deformable links of a file."""

    graph: PoseGraph
    geometry: GeometryReader
    notes: LoadNotes
    num_tetrahedra: int = 0  # of all links so far

    def read(self, link: Vertex, *, is_static: bool) -> DeformableRecord:
        """One link, whose pose is that of its mesh in the reference configuration."""
        element = link.element
        if is_static:
            raise element.error(
                f"{element.label}: a deformable link stands in a <static> model, which holds links; take it out of the "
                f"model, and hold its nodes by <{WALL}>."
            )
        for part in element.all(*RIGID_PARTS):
            self.notes.unsupported(part, "it is for rigid links; a deformable one has a density, and gravity")
        collision = self._only_collision(link)
        shape = self._shape(collision, link)
        hint = self._hint(collision, is_used=not isinstance(shape, Mesh))
        record = DeformableRecord(
            link.name, element.line, element.place, shape, self._mesh(collision, link, shape, hint),
            self.graph.pose(link), read_material(required_child(element, DEFORMABLE)), self._properties(collision),
            hint, [read_wall(wall) for wall in element.all(WALL)], self._color(element),
        )  # fmt: skip
        self.num_tetrahedra += record.mesh.num_tetrahedra
        if self.num_tetrahedra > MAX_TETRAHEDRA:
            raise element.error(
                f"{element.label}: the deformable links up to here have {self.num_tetrahedra} tetrahedra; at most "
                f"{MAX_TETRAHEDRA} are read of one file."
            )
        what = f"a deformable body of {record.mesh.num_nodes} nodes and {record.mesh.num_tetrahedra} tetrahedra"
        self.notes.add(USED, f"link '{link.name}'", what, element.place)
        return record

    def _only_collision(self, link: Vertex) -> XmlElement:
        found = link.element.all("collision")
        if len(found) != 1:
            raise link.element.error(
                f"{link.element.label}: a deformable link has one <collision>, which is also what it is made of; here "
                f"are {len(found)}."
            )
        X_LG, relative_to = raw_pose(found[0])
        is_moved = np.any(np.asarray(X_LG.rotation) != np.eye(3)) or np.any(np.asarray(X_LG.translation) != 0.0)
        if relative_to or is_moved:
            raise found[0].error(
                f"{found[0].label}: the mesh of a deformable link is at the origin of the link, as in Drake; put the "
                "<pose> into the <link>."
            )
        for tag in ("surface", "density"):
            self._ignore(found[0], tag, "not used for deformable links, as in Drake")
        return found[0]

    def _shape(self, collision: XmlElement, link: Vertex) -> Shape:
        placed = self.geometry.placed_shape(collision, required_child(collision, "geometry"), link)
        if placed is None:
            raise collision.error(
                f"{collision.label}: its <geometry> is empty, but a deformable link is made of it: a <mesh> of "
                "tetrahedra, or a shape that is filled with them."
            )
        return placed[1]

    def _hint(self, collision: XmlElement, *, is_used: bool) -> float | None:
        properties = collision.only("drake:proximity_properties")
        element = None if properties is None else properties.only(HINT)
        if properties is None or element is None:
            return None
        if not is_used:
            self._ignore(properties, HINT, "the tetrahedra of a file are used as they are, as in Drake")
            return None
        hint = child_number(properties, HINT)
        if hint <= 0.0:
            raise bad_value(element, "text", element.text, "a length in m above 0 expected.")
        return hint

    def _mesh(self, collision: XmlElement, link: Vertex, shape: Shape, hint: float | None) -> TetrahedralMesh:
        """The tetrahedra of the shape; what is wrong with them is an error at the <collision>."""
        if isinstance(shape, Mesh) and shape.path is None:
            tried = words_for_tried(link.context.finder.missing.get(shape.filename, ()))
            raise collision.error(
                f"{link.element.label}: its mesh '{shape.filename}' was not found ({tried}). A deformable link is made "
                'of it; give package_map={"package": "folder"}, or correct the name.'
            )
        if not isinstance(shape, Mesh) and hint is None:
            raise collision.error(
                f"{collision.label}: a deformable {type(shape).__name__} is filled with tetrahedra, for which "
                f"<drake:proximity_properties> must say <{HINT}>, about the length of an edge in m."
            )
        try:
            return tetrahedra_of(shape, hint)
        except MissingPackageError:
            raise
        except ValueError as error:
            raise collision.error(f"{link.element.label}: {error}") from None

    def _properties(self, collision: XmlElement) -> ProximityProperties:
        """Friction, dissipation and relaxation time; the coefficient of friction is also the static one."""
        holder = collision.only("drake:proximity_properties")
        if holder is None:
            return ProximityProperties()
        for child in holder.children:
            if child.tag not in (*PROPERTIES, HINT):
                self._ignore(holder, child.tag, "not used for deformable links, as in Drake")
        found: dict[str, Any] = {
            name: child_number(holder, tag, lowest=0.0)
            for tag, name in PROPERTIES.items()
            if holder.only(tag) is not None
        }
        if "dynamic_friction" in found:
            found["static_friction"] = found["dynamic_friction"]
        return ProximityProperties(**found)

    def _color(self, element: XmlElement) -> tuple[float, float, float, float] | None:
        """That of the one <visual>, which otherwise says nothing: the surface of the tetrahedra is drawn."""
        visual = element.only("visual", "drake:visual")
        if visual is None:
            return None
        visual = without_prefix(visual) if visual.tag == "drake:visual" else visual
        holder = visual.only("geometry")
        mesh = None if holder is None else holder.only("mesh")
        if mesh is not None:
            what = "not drawn: a deformable body is drawn by the surface of its tetrahedra"
            self.notes.add(IGNORED, visual.label, what, mesh.place)
        return self.geometry.color(visual)

    def _ignore(self, holder: XmlElement, tag: str, why: str) -> None:
        for element in holder.all(tag):
            self.notes.add(IGNORED, element.label, why, element.place)


def read_material(element: XmlElement) -> dict[str, float | str]:
    """The numbers of <drake:deformable_properties> that are given, and the model."""
    found: dict[str, float | str] = {}
    for tag, (name, is_allowed, wanted) in NUMBERS.items():
        child = element.only(tag)
        if child is None:
            continue
        number = child_number(element, tag)
        if not (math.isfinite(number) and is_allowed(number)):
            raise bad_value(child, "text", child.text, wanted)
        found[name] = number
    child = element.only("drake:material_model")
    if child is not None:
        word = child_text(element, "drake:material_model")
        if word not in MATERIAL_MODELS:
            raise bad_value(child, "text", child.text, f"one of {', '.join(MATERIAL_MODELS)} expected.")
        found["model"] = MATERIAL_MODELS[word]
    return found


def read_wall(element: XmlElement) -> WallRecord:
    """A point and the normal of a plane in the world."""
    p_WQ = child_numbers(element, "drake:point_on_plane", 3)
    normal = required_child(element, "drake:outward_normal")
    n_W = unit_vector(normal, child_numbers(element, "drake:outward_normal", 3))
    return WallRecord(element.place, tuple(p_WQ.tolist()), tuple(n_W.tolist()))
