"""<visual> and <collision> of an SDFormat link."""

import dataclasses

import numpy as np

from mbjax.errors import ParseError
from mbjax.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, HalfSpace, Mesh, Shape, Sphere
from mbjax.model import IGNORED, REPAIRED
from mbjax.spatial import RigidTransform

from ..notes.load_notes import LoadNotes
from ..records.contact_shapes import shape_for_contact, shape_name
from ..records.robot_records import CollisionRecord
from ..xml.tree import XmlElement
from ..xml.values import required_text, shortest_rotation_from_z
from .pose_graph import PoseGraph
from .read_contact import read_proximity_properties
from .read_scopes import Vertex
from .values import (
    child_number,
    child_numbers,
    child_text,
    flag,
    product,
    raw_pose,
    required_child,
    text_numbers,
    unit_vector,
)

SHAPE_TAGS = (
    "box",
    "capsule",
    "cylinder",
    "drake:capsule",
    "drake:ellipsoid",
    "ellipsoid",
    "empty",
    "mesh",
    "plane",
    "sphere",
)
NO_SHAPES = ("cone", "heightmap", "image", "polyline")
ROLES = ("drake:perception_properties", "drake:illustration_properties")


@dataclasses.dataclass
class GeometryReader:
    """Reads the shapes of links; with `hulls`, collision meshes become the convex hulls of their vertices."""

    graph: PoseGraph
    notes: LoadNotes
    hulls: bool

    def visuals(self, link: Vertex) -> list[Geometry]:
        """What is seen of a link."""
        found: list[Geometry] = []
        taken_names: dict[str, int] = {}
        for element in link.element.all("visual", "drake:visual"):
            read = without_prefix(element) if element.tag == "drake:visual" else element
            made = None if self._is_off(read) else self._geometry(read, link, taken_names)
            if made is not None:
                found.append(made)
        return found

    def collisions(self, link: Vertex) -> list[CollisionRecord]:
        """What touches of a link."""
        found: list[CollisionRecord] = []
        taken_names: dict[str, int] = {}
        for element in link.element.all("collision"):
            made = self._geometry(element, link, taken_names)
            properties = read_proximity_properties(element, link.name, self.notes)
            if made is not None:
                found.append(CollisionRecord(element.place, made, properties))
        return found

    def _geometry(self, element: XmlElement, link: Vertex, taken_names: dict[str, int]) -> Geometry | None:
        """One <visual> or <collision>; None where it has no shape."""
        holder = required_child(element, "geometry")
        required_text(element, "name")
        if self._has_no_shape(element, holder):
            return None
        placed = self.placed_shape(element, holder, link)
        if placed is None:
            return None
        shape_element, shape, X_LG = placed
        is_collision = element.tag == "collision"
        return Geometry(
            name=shape_name(element, link.name, taken_names, self.notes),
            shape=shape_for_contact(shape_element, shape, self.hulls, self.notes) if is_collision else shape,
            rotation=tuple(np.asarray(X_LG.rotation).tolist()),
            translation=tuple(np.asarray(X_LG.translation).tolist()),
            rgba=None if is_collision else self.color(element),
        )

    def solid(self, collision: XmlElement, link: Vertex) -> tuple[Shape, RigidTransform] | None:
        """The shape of a <collision> as the file gives it, meshes whole, and its pose; None for one without volume."""
        holder = required_child(collision, "geometry")
        other = holder.only(*NO_SHAPES)
        if other is not None:
            raise other.error(
                f'the volume of <{other.tag}> is not computed, for which <inertial auto="true"> of link '
                f"'{link.name}' asks. Write <mass> and <inertia>."
            )
        placed = self.placed_shape(collision, holder, link)
        return None if placed is None else placed[1:]

    def placed_shape(
        self, element: XmlElement, holder: XmlElement, link: Vertex
    ) -> tuple[XmlElement, Shape, RigidTransform] | None:
        """The element of the shape, the shape and its pose in the link; None where it is empty."""
        shape_element = holder.only(*SHAPE_TAGS)
        if shape_element is None:
            found = ", ".join(f"<{child.tag[:60]}>" for child in holder.children) or "nothing"
            raise holder.error(
                f"<geometry> of link '{link.name}' holds {found}; expected one of "
                + ", ".join(f"<{tag}>" for tag in SHAPE_TAGS)
                + "."
            )
        if shape_element.tag == "empty":
            return None
        X_VG, relative_to = raw_pose(element)
        X_LG = self.graph.pose_in(link, X_VG, relative_to, dataclasses.replace(link, element=element))
        shape = self._shape(shape_element, link)
        if shape_element.tag == "plane":
            X_LG = product(X_LG, plane_pose(shape_element))
        return shape_element, shape, X_LG

    def _has_no_shape(self, element: XmlElement, holder: XmlElement) -> bool:
        """Whether it is of a kind that mbjax has no shape for; one that would touch changes the motion."""
        other = holder.only(*NO_SHAPES)
        if other is None:
            return False
        if element.tag == "collision":
            self.notes.unsupported(other, f"mbjax has no shape '{other.tag}', so it would touch nothing")
        else:
            self.notes.add(IGNORED, element.label, f"mbjax draws no shape '{other.tag}'", other.place)
        return True

    def _shape(self, element: XmlElement, link: Vertex) -> Shape:
        try:
            match element.tag:
                case "box":
                    return Box(tuple(child_numbers(element, "size", 3).tolist()))
                case "sphere":
                    return Sphere(child_number(element, "radius"))
                case "cylinder":
                    return Cylinder(child_number(element, "radius"), child_number(element, "length"))
                case "capsule" | "drake:capsule":
                    return Capsule(child_number(element, "radius"), child_number(element, "length"))
                case "ellipsoid":
                    return Ellipsoid(*child_numbers(element, "radii", 3).tolist())
                case "drake:ellipsoid":
                    return Ellipsoid(*(child_number(element, name) for name in ("a", "b", "c")))
                case "plane":
                    return HalfSpace()
                case _:
                    scale = child_numbers(element, "scale", 3, np.ones(3))
                    filename = child_text(element, "uri")
                    return Mesh(filename, link.context.finder.find(filename), tuple(scale.tolist()))
        except ParseError:
            raise
        except ValueError as error:
            raise element.error(str(error)) from None

    def color(self, visual: XmlElement) -> tuple[float, float, float, float] | None:
        """The diffuse color, or None."""
        material = visual.only("material")
        diffuse = None if material is None else material.only("diffuse")
        if diffuse is None or not diffuse.text:
            return None
        rgba = text_numbers(diffuse, (3, 4))
        rgba = rgba if len(rgba) == 4 else np.append(rgba, 1.0)
        clipped = np.clip(rgba, 0.0, 1.0)
        if np.any(clipped != rgba):
            self.notes.add(REPAIRED, visual.label, "a color outside 0 to 1: clipped to that range", diffuse.place)
        return tuple(clipped.tolist())

    def _is_off(self, visual: XmlElement) -> bool:
        """Whether it is seen in no picture of Drake's."""
        roles = [visual.only(tag) for tag in ROLES]
        off = [role is not None and not flag(role, role.attributes.get("enabled", "true")) for role in roles]
        if all(off):
            self.notes.add(IGNORED, visual.label, "all of its roles are turned off", visual.place)
        return all(off)


def plane_pose(plane: XmlElement) -> RigidTransform:
    """The pose of the half-space below a plane: z along the normal."""
    element = plane.only("normal")
    normal = np.array([0.0, 0.0, 1.0]) if element is None else unit_vector(element, text_numbers(element, 3))
    return RigidTransform(shortest_rotation_from_z(normal), np.zeros(3))


def without_prefix(element: XmlElement) -> XmlElement:
    """<drake:visual> as the <visual> it stands for; all in it has the prefix."""
    if not element.tag.startswith("drake:"):
        raise element.error(f"<{element.tag[:60]}> stands in a <drake:visual>; write <drake:{element.tag[:60]}>.")
    if element.tag in ROLES:
        return element
    children = [without_prefix(child) for child in element.children]
    return dataclasses.replace(element, tag=element.tag.removeprefix("drake:"), children=children)
