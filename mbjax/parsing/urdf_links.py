"""Reads <link> of a URDF: mass properties and shapes."""

import jax
import jax.numpy as jnp
import numpy as np

from mbjax.model import IGNORED, REPAIRED, USED
from mbjax.spatial import SpatialInertia, UnitInertia

from .load_notes import LoadNotes
from .robot_records import WORLD, CollisionRecord, LinkRecord
from .urdf_contact import read_proximity_properties
from .urdf_geometry import GeometryReader
from .xml_tree import XmlElement
from .xml_values import number, origin_pose, required_number, required_text

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
    taken_names: dict[str, int] = {}
    link.visual = [geometry.read(child, link.name, taken_names) for child in element.all("visual")]
    link.collision = [
        CollisionRecord(
            child.place, geometry.read(child, link.name, taken_names), read_proximity_properties(child, link.name)
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
    if mass == 0.0:
        if np.any(central != 0.0):
            _refuse_or_note(
                inertial, link_name, notes, on_invalid,
                "the mass is 0 kg but the moments of inertia are not; taken as massless",
                status=REPAIRED,
            )  # fmt: skip
        return None
    if not np.any(central != 0.0):
        notes.add(
            USED,
            f"link '{link_name}'",
            f"{mass:g} kg without moments of inertia: a particle at its centre of mass",
            inertial.place,
        )
    rotation, com = np.asarray(X_BBcm.rotation), np.asarray(X_BBcm.translation)
    with np.errstate(over="ignore", invalid="ignore"):
        G_BBcm_B = rotation @ central @ rotation.T / mass
        G_BBo_B = G_BBcm_B + np.dot(com, com) * np.eye(3) - np.outer(com, com)
    six = [G_BBo_B[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    largest = float(np.abs([mass, *com, *six]).max())
    if not largest < float(jnp.finfo(jax.dtypes.canonicalize_dtype(float)).max):
        raise inertial.error(
            f"link '{link_name}': mass {mass:g} kg, centre of mass and moments of inertia give numbers "
            "beyond what floating point holds; check their units (kg, m, kg m²)."
        )
    spatial_inertia = SpatialInertia(mass, com, UnitInertia(*six), skip_validity_check=True)
    problem = spatial_inertia.physical_validity_report()
    if problem is not None:
        _refuse_or_note(inertial, link_name, notes, on_invalid, problem, status=None)
    return spatial_inertia


def _inertia_matrix(element: XmlElement) -> np.ndarray:
    xx, yy, zz = (required_number(element, name) for name in MOMENTS)
    xy, xz, yz = (number(element, name, 0.0) for name in PRODUCTS)
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _refuse_or_note(
    inertial: XmlElement, link_name: str, notes: LoadNotes, on_invalid: str, problem: str, status: str | None
) -> None:
    """Refuses mass properties that are not physical, or notes them; with `status` None the builder reports them."""
    if on_invalid == "error":
        raise inertial.error(
            f"link '{link_name}': the mass properties are not physical: {problem}. Correct <inertial>, or "
            'load with inertia="warn" to keep them.'
        )
    if status is not None:
        notes.add(status, f"link '{link_name}'", problem, inertial.place)
    notes.warn(
        "mass properties that no body can have are kept as they stand",
        f"link '{link_name}' (line {inertial.line}): {problem}",
    )
