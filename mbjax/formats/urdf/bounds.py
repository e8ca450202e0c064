"""Reports implausible numbers: a robot file with a number that no robot has most likely has it wrong."""

import math
from collections.abc import Iterator
from typing import NamedTuple

from mbjax.model import KEPT

from ..notes.load_notes import LoadNotes
from ..records.open_ends import NONE_IN_SDF
from ..xml.tree import XmlElement
from ..xml.values import NUMBER, shortened
from .leftovers import READ
from .read_contact import PROXIMITY_TAGS
from .read_joints import ignored_parts

TEXT = ""  # stands for an attribute: the text of the element
WARNING = "numbers that no robot has are taken as they stand; check their units"


class Bound(NamedTuple):
    """A kind of number, its unit, and the range of plausible magnitudes; zero is always plausible."""

    what: str
    unit: str
    largest: float
    smallest: float = 0.0
    is_limit: bool = False  # files write huge limits for none: reported without a warning
    question: str = ""  # what a number that is too large may come from
    none: float = math.inf  # this number, and those beyond it, stand for no limit


LENGTH = Bound("length", "m", 1e5)
SIZE = Bound("length of a shape", "m", 1e5, 1e-9)
SCALE = Bound("scale", "", 1e6, 1e-9)
ANGLE = Bound("rotation", "rad", 4.0 * math.pi, question="; is it in degrees?")
DIRECTION = Bound("component of a direction", "", 1e6)
MASS = Bound("mass", "kg", 1e6, 1e-9)
MOMENT = Bound("moment of inertia", "kg m²", 1e12, 1e-18)
LIMIT = Bound("limit", "SI units", 1e10, is_limit=True)
LOWER, UPPER = (LIMIT._replace(none=none) for none in (-NONE_IN_SDF, NONE_IN_SDF))
DISSIPATION = Bound("damping or friction", "SI units", 1e8)
FRICTION = Bound("coefficient of friction", "", 1e3)
STIFFNESS = Bound("stiffness", "N/m", 1e15, 1e-9)
MODULUS = Bound("hydroelastic modulus", "Pa", 1e15, 1e-3)
HUNT_CROSSLEY = Bound("dissipation", "s/m", 1e6)
TIME = Bound("time", "s", 1e4)
ROTOR = Bound("rotor inertia", "kg m² or kg", 1e6, 1e-18)
GEAR = Bound("gear ratio", "", 1e6, 1e-9)
GAIN = Bound("controller gain", "SI units", 1e12)
MULTIPLIER = Bound("multiplier", "", 1e6, 1e-9)
COORDINATE = Bound("position", "rad or m", 1e5)
PITCH = Bound("screw pitch", "m per turn", 1e5, 1e-9)
POSE = {"xyz": LENGTH, "rpy": ANGLE, "quat_xyzw": DIRECTION}
ACTUATOR = {"drake:rotor_inertia": {"value": ROTOR}, "drake:gear_ratio": {"value": GEAR}}
PROXIMITY = (FRICTION, FRICTION, STIFFNESS, HUNT_CROSSLEY, TIME)
# Bounds of every number that is read, by the element's tag; its reader clips rgba, mechanicalReduction is not used.
BOUNDS: dict[str, dict[str, Bound]] = {
    "mass": {"value": MASS},
    "inertia": dict.fromkeys(("ixx", "iyy", "izz", "ixy", "ixz", "iyz"), MOMENT),
    "origin": POSE,
    "frame": POSE,
    "axis": {"xyz": DIRECTION},
    "limit": {
        "lower": LOWER,
        "upper": UPPER,
        **dict.fromkeys(("effort", "velocity", "acceleration", "drake:acceleration"), LIMIT),
    },
    "dynamics": {"damping": DISSIPATION, "friction": DISSIPATION},
    "mimic": {"multiplier": MULTIPLIER, "offset": COORDINATE},
    "drake:screw_thread_pitch": {"value": PITCH},
    "box": {"size": SIZE},
    "sphere": {"radius": SIZE},
    **{tag: {"radius": SIZE, "length": SIZE} for tag in ("cylinder", "capsule", "drake:capsule")},
    **{tag: {"a": SIZE, "b": SIZE, "c": SIZE} for tag in ("ellipsoid", "drake:ellipsoid")},
    "mesh": {"scale": SCALE},
    "static_friction": {TEXT: FRICTION},
    "dynamic_friction": {TEXT: FRICTION},
    **{tag: {"value": bound} for tag, bound in zip(PROXIMITY_TAGS, PROXIMITY, strict=True)},
    "drake:hydroelastic_modulus": {"value": MODULUS},
    "drake:mesh_resolution_hint": {"value": SIZE},
    "drake:hydroelastic_margin": {"value": LENGTH},
    "drake:controller_gains": {"p": GAIN, "d": GAIN},
    **ACTUATOR,
}


def report_numbers_no_robot_has(robot: XmlElement, notes: LoadNotes) -> None:
    """Adds a report entry per attribute with an implausible number, and one warning for all; the numbers stay."""
    for element in elements_read(robot, "robot"):
        for attribute, bound in BOUNDS.get(element.tag, {}).items():
            text = element.text if attribute == TEXT else element.attributes.get(attribute, "")
            for value in map(float, filter(NUMBER.fullmatch, text.split())):
                excess = complaint(value, bound)
                if excess:
                    where = f'{attribute}="{shortened(text)}"' if attribute else f"'{shortened(text)}'"
                    notes.add(KEPT, element.label, f"{where}: {excess}; taken as it stands", element.place)
                    if not bound.is_limit:
                        notes.warn(WARNING, f"{element.label} (line {element.line}): {where}")
                    break


def complaint(value: float, bound: Bound) -> str:
    """Says why a number is implausible; empty if it is plausible, as zero, infinity and what stands for none are."""
    unit = f" {bound.unit}" if bound.unit else ""
    size = abs(value)
    if size >= abs(bound.none) and math.copysign(1.0, value) == math.copysign(1.0, bound.none):
        return ""
    if bound.largest < size < float("inf"):
        return f"a {bound.what} of {value:g}{unit} is beyond what robots have, {bound.largest:g}{unit}{bound.question}"
    if 0.0 < size < bound.smallest:
        return f"a {bound.what} of {value:g}{unit} is below what robots have, {bound.smallest:g}{unit}"
    return ""


def elements_read(element: XmlElement, kind: str) -> Iterator[XmlElement]:
    """An element and all elements in it that readers look at; `kind` is its key in `READ`."""
    yield element
    without_meaning = [child for child, _ in ignored_parts(element)] if kind in ("joint", "drake:joint") else []
    for child in element.children:
        if child.tag in READ[kind][1] and child not in without_meaning:
            nested = f"{kind}/{child.tag}"
            yield from elements_read(child, nested if nested in READ else child.tag)
