"""Numbers that no robot has: an SDFormat file that holds one most likely has it wrong, so they are reported."""

from collections.abc import Iterator

from mbjax.model import KEPT

from ..notes.load_notes import LoadNotes
from ..urdf.bounds import (
    ANGLE,
    DIRECTION,
    DISSIPATION,
    FRICTION,
    GEAR,
    HUNT_CROSSLEY,
    LENGTH,
    LIMIT,
    LOWER,
    MASS,
    MODULUS,
    MOMENT,
    MULTIPLIER,
    PITCH,
    ROTOR,
    SCALE,
    SIZE,
    STIFFNESS,
    TIME,
    UPPER,
    WARNING,
    Bound,
    complaint,
)
from ..xml.tree import XmlElement
from ..xml.values import NUMBER, shortened
from .leftovers import READ
from .values import TRUE

YOUNGS_MODULUS = Bound("Young's modulus", "Pa", 1e15, 1e-3)
DENSITY = Bound("density", "kg/m³", 1e6, 1e-6)
RATE = Bound("damping", "1/s", 1e6)
IN_DEGREES = Bound("rotation", "degrees", 720.0)
BOUNDS: dict[str, Bound] = {
    "mass": MASS,
    **dict.fromkeys(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), MOMENT),
    **dict.fromkeys(("radius", "length", "size", "radii", "a", "b", "c"), SIZE),
    "scale": SCALE,
    **dict.fromkeys(("xyz", "normal"), DIRECTION),
    "lower": LOWER,
    "upper": UPPER,
    **dict.fromkeys(("effort", "velocity", "drake:acceleration"), LIMIT),
    **dict.fromkeys(("damping", "friction", "drake:damping"), DISSIPATION),
    **dict.fromkeys(("mu", "mu2", "drake:mu_static", "drake:mu_dynamic"), FRICTION),
    **dict.fromkeys(("spring_stiffness", "drake:point_contact_stiffness"), STIFFNESS),
    "spring_reference": LENGTH,
    "drake:hunt_crossley_dissipation": HUNT_CROSSLEY,
    "drake:relaxation_time": TIME,
    "drake:hydroelastic_modulus": MODULUS,
    "drake:mesh_resolution_hint": SIZE,
    "drake:youngs_modulus": YOUNGS_MODULUS,
    "drake:mass_density": DENSITY,
    "drake:mass_damping": RATE,
    "drake:stiffness_damping": TIME,
    "drake:point_on_plane": LENGTH,
    "drake:outward_normal": DIRECTION,
    "drake:hydroelastic_margin": LENGTH,
    "drake:rotor_inertia": ROTOR,
    "drake:gear_ratio": GEAR,
    "screw_thread_pitch": PITCH,
    "multiplier": MULTIPLIER,
}


def report_numbers_no_robot_has(roots: list[XmlElement], notes: LoadNotes) -> None:
    """One report entry per element with such a number, and one warning for all; the numbers stay."""
    for root in roots:
        for element in elements_read(root):
            for value, bound in numbers_and_bounds(element):
                excess = complaint(value, bound)
                if excess:
                    where = f"'{shortened(element.text)}'"
                    notes.add(KEPT, element.label, f"{where}: {excess}; taken as it stands", element.place)
                    if not bound.is_limit:
                        notes.warn(WARNING, f"{element.label} (line {element.line}): {where}")
                    break


def numbers_and_bounds(element: XmlElement) -> Iterator[tuple[float, Bound]]:
    """The numbers of an element's text, each with what is believed of it."""
    words = [word for word in element.text.split() if NUMBER.fullmatch(word)]
    if element.tag == "pose":
        is_rpy = element.attributes.get("rotation_format", "euler_rpy") == "euler_rpy"
        is_in_degrees = element.attributes.get("degrees", "").strip().lower() in TRUE
        of_rotation = DIRECTION if not is_rpy else IN_DEGREES if is_in_degrees else ANGLE
        for i, word in enumerate(words):
            yield float(word), LENGTH if i < 3 else of_rotation
    elif element.tag in BOUNDS:
        for word in words:
            yield float(word), BOUNDS[element.tag]


def elements_read(element: XmlElement) -> Iterator[XmlElement]:
    """The element and all in it that readers look at."""
    yield element
    for child in element.children:
        if child.tag in READ.get(element.tag, (set(), set()))[1]:
            yield from elements_read(child)
