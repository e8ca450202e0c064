"""<inertial auto="true">: mass properties of a link from the volumes of its collisions and their densities."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from mbjax.geometry import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere, read_solid
from mbjax.model import IGNORED, USED
from mbjax.spatial import RigidTransform, SpatialInertia

from ..notes.load_notes import LoadNotes
from ..records.link_inertia import spatial_inertia
from ..xml.tree import XmlElement
from .read_scopes import Vertex
from .read_shapes import GeometryReader
from .values import child_number

DENSITY = 1000.0  # kg/m³, that of water: SDFormat's default


class Solid(NamedTuple):
    """Volume in m³ of a body, its centre, and its moments of inertia about that over density, in m⁵."""

    volume: float
    center: Float[np.ndarray, "3"]
    inertia: Float[np.ndarray, "3 3"]


def auto_inertia(
    link: Vertex, inertial: XmlElement, geometry: GeometryReader, notes: LoadNotes, on_invalid: str
) -> SpatialInertia | None:
    """M_BBo_B of all collisions together, scaled to the <mass> if there is one.

    A collision's density is its own <density>, else that of <inertial>, else 1000 kg/m³.
    """
    for tag in ("pose", "inertia"):
        if inertial.only(tag) is not None:
            reason = 'auto="true" computes it from the collisions instead'
            notes.add(IGNORED, f"<{tag}> of <inertial> of link '{link.name}'", reason, inertial.place)
            notes.warn(f'<inertial auto="true">: {reason}', f"<{tag}> of link '{link.name}'")
    default = child_number(inertial, "density", DENSITY, lowest=0.0)
    parts = []
    for element in link.element.all("collision"):
        found = geometry.solid(element, link)
        solid = None if found is None else solid_of(found[0], element)
        if found is not None and solid is not None:
            parts.append((child_number(element, "density", default, lowest=0.0), moved(solid, found[1])))
    if not parts:
        raise inertial.error(
            f"link '{link.name}': <inertial auto=\"true\"> needs collisions with a volume. Add some, or write <mass> "
            "and <inertia>."
        )
    mass, center, central = sum_of(parts)
    given = child_number(inertial, "mass", mass, lowest=0.0)
    central = central * (given / mass) if mass > 0.0 else central
    message = f'auto="true": {given:g} kg from {len(parts)} collisions'
    notes.add(USED, f"link '{link.name}'", message, inertial.place)
    X_BBcm = RigidTransform(np.eye(3), center)
    return spatial_inertia(inertial, link.name, given, central, X_BBcm, notes, on_invalid)


def solid_of(shape: Shape, element: XmlElement) -> Solid | None:
    """The solid that a shape fills, about its own frame; None for a plane, which has no volume."""
    match shape:
        case Box(size):
            x, y, z = np.square(size)
            return uniform(float(np.prod(size)), np.array([y + z, x + z, x + y]) / 12.0)
        case Sphere(radius):
            return uniform(4.0 / 3.0 * np.pi * radius**3, np.full(3, 0.4 * radius**2))
        case Ellipsoid(a, b, c):
            moments = np.array([b * b + c * c, a * a + c * c, a * a + b * b]) / 5.0
            return uniform(4.0 / 3.0 * np.pi * a * b * c, moments)
        case Cylinder(radius, length):
            return cylinder(radius, length)
        case Capsule(radius, length):
            return capsule(radius, length)
        case Mesh():
            return mesh(shape, element)
        case _:
            return None


def uniform(volume: float, moments: Float[np.ndarray, "3"]) -> Solid:
    """A solid about its centre, from its moments of inertia over mass, in m²."""
    return Solid(volume, np.zeros(3), volume * np.diag(moments))


def cylinder(radius: float, length: float) -> Solid:
    """A cylinder along z."""
    across = (3.0 * radius**2 + length**2) / 12.0
    return uniform(np.pi * radius**2 * length, np.array([across, across, 0.5 * radius**2]))


def capsule(radius: float, length: float) -> Solid:
    """A cylinder along z with two half spheres at its ends."""
    middle, ball = cylinder(radius, length), 4.0 / 3.0 * np.pi * radius**3
    across = 0.4 * radius**2 + 0.25 * length**2 + 0.375 * radius * length
    ends = ball * np.diag([across, across, 0.4 * radius**2])
    return Solid(middle.volume + ball, np.zeros(3), middle.inertia + ends)


def mesh(shape: Mesh, element: XmlElement) -> Solid | None:
    """The solid that a closed surface holds."""
    if shape.path is None:
        raise element.error(
            f"mesh '{shape.filename}' is not there, and <inertial auto=\"true\"> needs its volume. Put the file there, "
            "or write <mass> and <inertia>."
        )
    try:
        return Solid(*read_solid(shape.path, shape.scale))
    except ValueError as error:
        raise element.error(f'<inertial auto="true">: {error}. Write <mass> and <inertia>.') from None


def moved(solid: Solid, X: RigidTransform) -> Solid:
    """A solid in the frame that its own frame has the pose X in."""
    R, p = np.asarray(X.rotation), np.asarray(X.translation)
    return Solid(solid.volume, R @ solid.center + p, R @ solid.inertia @ R.T)


def sum_of(parts: Sequence[tuple[float, Solid]]) -> tuple[float, Float[np.ndarray, "3"], Float[np.ndarray, "3 3"]]:
    """Mass, centre of mass, and moments of inertia about it, of solids and their densities."""
    mass = sum(density * solid.volume for density, solid in parts)
    moment = sum((density * solid.volume * solid.center for density, solid in parts), np.zeros(3))
    center = moment / mass if mass > 0.0 else np.zeros(3)
    inertia = np.zeros((3, 3))
    for density, solid in parts:
        p = solid.center - center
        inertia += density * (solid.inertia + solid.volume * (p @ p * np.eye(3) - np.outer(p, p)))
    return mass, center, inertia
