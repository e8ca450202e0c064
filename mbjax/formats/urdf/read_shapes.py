"""Reads <visual>, <collision> and <material> of a URDF link."""

import dataclasses

import numpy as np

from mbjax.errors import ParseError
from mbjax.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Mesh, Shape, Sphere
from mbjax.model import IGNORED, KEPT, REPAIRED

from ..files.resource_paths import ResourceFinder
from ..notes.load_notes import LoadNotes
from ..records.contact_shapes import shape_for_contact, shape_name
from ..xml.tree import XmlElement
from ..xml.values import numbers, origin_pose, required_number, required_numbers, required_text

Color = tuple[float, float, float, float]
SHAPE_TAGS = (
    "box",
    "sphere",
    "cylinder",
    "capsule",
    "drake:capsule",
    "ellipsoid",
    "drake:ellipsoid",
    "mesh",
)


@dataclasses.dataclass
class GeometryReader:
    """Reads the shapes of one file; `colors` are the colors of its named materials.

    With `hulls`, collision meshes whose files are found become the convex hulls of their vertices.
    """

    finder: ResourceFinder
    notes: LoadNotes
    colors: dict[str, Color | None]
    hulls: bool = False

    def read(self, element: XmlElement, link_name: str, taken_names: dict[str, int]) -> Geometry:
        """Reads one <visual> or <collision>."""
        holder = element.only("geometry")
        if holder is None:
            raise element.error(f'{element.label} of link "{link_name}" has no <geometry>; add one.')
        shape_element = holder.only(*SHAPE_TAGS)
        if shape_element is None:
            found = ", ".join(f"<{child.tag}>" for child in holder.children) or "nothing"
            raise holder.error(
                f'<geometry> of link "{link_name}" holds {found}; expected one of '
                + ", ".join(f"<{tag}>" for tag in SHAPE_TAGS)
                + "."
            )
        X_BG = origin_pose(element, self.notes)
        shape = self._shape(shape_element)
        return Geometry(
            name=shape_name(element, link_name, taken_names, self.notes),
            shape=self._touching(shape_element, shape) if element.tag == "collision" else shape,
            rotation=tuple(np.asarray(X_BG.rotation).tolist()),
            translation=tuple(np.asarray(X_BG.translation).tolist()),
            rgba=self._color(element) if element.tag == "visual" else None,
        )

    def _shape(self, element: XmlElement) -> Shape:
        def length(name: str) -> float:
            return required_number(element, name, surplus=self.notes)

        try:
            match element.tag.removeprefix("drake:"):
                case "box":
                    return Box(tuple(required_numbers(element, "size", 3, surplus=self.notes)))
                case "sphere":
                    return Sphere(length("radius"))
                case "cylinder":
                    return Cylinder(length("radius"), length("length"))
                case "capsule":
                    return Capsule(length("radius"), length("length"))
                case "ellipsoid":
                    return Ellipsoid(*(length(name) for name in ("a", "b", "c")))
                case _:
                    filename = required_text(element, "filename")
                    scale = numbers(element, "scale", (1, 3), np.ones(3), surplus=self.notes)
                    return Mesh(filename, self.finder.find(filename), tuple(np.broadcast_to(scale, 3)))
        except ParseError:
            raise
        except ValueError as error:
            raise element.error(str(error)) from None

    def _touching(self, element: XmlElement, shape: Shape) -> Shape:
        return shape_for_contact(element, shape, self.hulls, self.notes)

    def _color(self, visual: XmlElement) -> Color | None:
        material = visual.only("material")
        if material is None:
            return None
        own = read_color(material, self.notes)
        name = material.attributes.get("name", "")
        if own is not None or not name:
            return own
        if name not in self.colors:
            if material.only("texture") is None:
                self.notes.add(
                    IGNORED,
                    material.label,
                    "no material of that name has a color; the shape is drawn in the default one",
                    material.place,
                )
            return None
        return self.colors[name]


def read_materials(robot: XmlElement, notes: LoadNotes) -> dict[str, Color | None]:
    """Colors by name: those of the robot first, then those that visuals define, wherever they stand in the file."""
    colors: dict[str, Color | None] = {}
    places: dict[str, str] = {}
    inline = [visual.only("material") for link in robot.all("link") for visual in link.all("visual")]
    for material in robot.all("material"):
        if not material.attributes.get("name"):
            raise material.error('<material> at the top of the file has no name; write name="…".')
    for material in [*robot.all("material"), *(element for element in inline if element is not None)]:
        name = material.attributes.get("name", "")
        color = read_color(material, notes)
        if not name or color is None:
            continue
        if colors.get(name, color) != color:
            notes.add(
                KEPT,
                material.label,
                f"defined again with another color; where only the name stands, that of {places[name]} holds",
                material.place,
            )
        colors.setdefault(name, color)
        places.setdefault(name, material.place)
    return colors


def read_color(material: XmlElement, notes: LoadNotes) -> Color | None:
    """Color that a material itself gives; numbers outside 0 to 1 are clipped and reported."""
    element = material.only("color")
    if element is None:
        return None
    rgba = required_numbers(element, "rgba", 4, surplus=notes)
    clipped = np.clip(rgba, 0.0, 1.0)
    if np.any(clipped != rgba):
        notes.add(REPAIRED, material.label, "rgba outside 0 to 1: clipped to that range", element.place)
    return tuple(clipped.tolist())
