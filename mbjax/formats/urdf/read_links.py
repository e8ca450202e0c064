"""Reads <link> of a URDF: mass properties and shapes."""

import numpy as np

from mbjax.model import IGNORED
from mbjax.spatial import SpatialInertia

from ..notes.load_notes import LoadNotes
from ..records.link_inertia import spatial_inertia
from ..records.robot_records import WORLD, CollisionRecord, LinkRecord
from ..xml.tree import XmlElement
from ..xml.values import number, origin_pose, required_number, required_text
from .read_contact import read_proximity_properties
from .read_shapes import GeometryReader

MOMENTS = ("ixx", "iyy", "izz")
PRODUCTS = ("ixy", "ixz", "iyz")


def read_link(element: XmlElement, geometry: GeometryReader, notes: LoadNotes, inertia: str) -> LinkRecord:
    """Reads a link; `inertia` says what to do with mass properties no body can have: "warn" or "error"."""
    link = LinkRecord(required_text(element, "name"), element.line, element.place)
    inertial = element.only("inertial")
    if link.name == WORLD:
        if inertial is not None:
            message = "the world takes no mass properties: <inertial> is left out, as in Drake"
            notes.add(IGNORED, element.label, message, inertial.place)
            notes.warn(message, f"line {inertial.line}")
    elif inertial is not None:
        link.inertia = _read_inertia(inertial, link.name, notes, inertia)
    names_of_visuals: dict[str, int] = {}
    names_of_collisions: dict[str, int] = {}
    link.visual = [geometry.read(child, link.name, names_of_visuals) for child in element.all("visual")]
    link.collision = [
        CollisionRecord(
            child.place,
            geometry.read(child, link.name, names_of_collisions),
            read_proximity_properties(child, link.name, notes),
        )
        for child in element.all("collision")
    ]
    return link


def _read_inertia(inertial: XmlElement, link_name: str, notes: LoadNotes, on_invalid: str) -> SpatialInertia | None:
    """Spatial inertia M_BBo_B from mass and central inertia in the axes of <origin>; None for a massless link."""
    mass_element, inertia_element = inertial.only("mass"), inertial.only("inertia")
    mass = 0.0 if mass_element is None else required_number(mass_element, "value", lowest=0.0)
    X_BBcm = origin_pose(inertial)
    central = np.zeros((3, 3)) if inertia_element is None else _inertia_matrix(inertia_element)
    return spatial_inertia(inertial, link_name, mass, central, X_BBcm, notes, on_invalid)


def _inertia_matrix(element: XmlElement) -> np.ndarray:
    xx, yy, zz = (required_number(element, name) for name in MOMENTS)
    xy, xz, yz = (number(element, name, 0.0) for name in PRODUCTS)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
