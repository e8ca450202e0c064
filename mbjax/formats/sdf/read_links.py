"""<link> of an SDFormat model: mass properties and shapes."""

import numpy as np

from mbjax.model import IGNORED, USED
from mbjax.spatial import SpatialInertia

from ..notes.load_notes import LoadNotes
from ..records.link_inertia import spatial_inertia
from ..records.robot_records import LinkRecord
from ..xml.tree import XmlElement
from .auto_inertia import auto_inertia
from .read_scopes import Vertex
from .read_shapes import GeometryReader
from .values import child_flag, child_number, flag, raw_pose

MOMENTS = ("ixx", "iyy", "izz")
PRODUCTS = ("ixy", "ixz", "iyz")


def read_link(link: Vertex, geometry: GeometryReader, notes: LoadNotes, inertia: str) -> LinkRecord:
    """One link; `inertia` says what to do with mass properties no body can have: "warn" or "error"."""
    element = link.element
    _refuse_other_physics(element, notes)
    record = LinkRecord(link.name, element.line, element.place)
    record.inertia = read_inertia(link, geometry, notes, inertia)
    record.visual = geometry.visuals(link)
    record.collision = geometry.collisions(link)
    return record


def _refuse_other_physics(element: XmlElement, notes: LoadNotes) -> None:
    if not child_flag(element, "gravity", True):
        notes.unsupported(
            element.all("gravity")[0],
            "links without gravity are not read; plant.set_gravity_enabled turns it off for a model instance",
        )
    if child_flag(element, "kinematic"):
        notes.unsupported(element.all("kinematic")[0], "kinematic links, which feel no forces, are not simulated")
    decay = element.only("velocity_decay")
    if decay is not None and any(child_number(decay, tag, 0.0) != 0.0 for tag in ("linear", "angular")):
        notes.unsupported(decay, "damping of a free link is not simulated")


def read_inertia(link: Vertex, geometry: GeometryReader, notes: LoadNotes, on_invalid: str) -> SpatialInertia | None:
    """M_BBo_B; what the file leaves out is 1 kg and 1 kg m², as the format says. None for a massless link."""
    element, name = link.element, link.name
    inertial = element.only("inertial")
    if inertial is None:
        list_densities(link, None, notes)
        notes.add(USED, f"link '{name}'", "no <inertial>: 1 kg and 1 kg m², as SDFormat says", element.place)
        return spatial_inertia(element, name, 1.0, np.eye(3), raw_pose(XmlElement("", {}, "", 0))[0], notes, on_invalid)
    added = inertial.only("fluid_added_mass")
    if added is not None:
        notes.unsupported(added, "added mass of a fluid is not simulated")
    if flag(inertial, inertial.attributes.get("auto", "false")):
        return auto_inertia(link, inertial, geometry, notes, on_invalid)
    list_densities(link, inertial, notes)
    X_BBcm, relative_to = raw_pose(inertial)
    if relative_to:
        raise inertial.error(f'<inertial>: its <pose> is in the link\'s frame; remove relative_to="{relative_to}".')
    mass = child_number(inertial, "mass", 1.0, lowest=0.0)
    moments = inertial.only("inertia")
    central = np.eye(3) if moments is None else _inertia_matrix(moments)
    if moments is None:
        notes.add(USED, f"link '{name}'", "no <inertia>: 1 kg m² about each axis, as SDFormat says", inertial.place)
        notes.warn("links with <inertial> but no <inertia> get 1 kg m² about each axis, as SDFormat says", f"'{name}'")
    return spatial_inertia(inertial, name, mass, central, X_BBcm, notes, on_invalid)


def list_densities(link: Vertex, inertial: XmlElement | None, notes: LoadNotes) -> None:
    """Lists densities of a link whose inertia is given."""
    parts = [*([] if inertial is None else [inertial]), *link.element.all("collision")]
    for density in (part.only("density") for part in parts):
        if density is not None:
            notes.add(IGNORED, f"<density> of link '{link.name}'", 'used with auto="true" alone', density.place)


def _inertia_matrix(element: XmlElement) -> np.ndarray:
    xx, yy, zz = (child_number(element, name, 1.0) for name in MOMENTS)
    xy, xz, yz = (child_number(element, name, 0.0) for name in PRODUCTS)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
