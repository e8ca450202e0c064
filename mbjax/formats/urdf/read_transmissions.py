"""Reads <transmission> of a URDF, in its old and its new form: actuators on joints."""

from typing import Any

from mbjax.joints import WeldJoint
from mbjax.model import IGNORED

from ..notes.load_notes import LoadNotes
from ..records.robot_records import ActuatorRecord, JointRecord
from ..xml.tree import XmlElement
from ..xml.values import did_you_mean, required_number, required_text, text_number

SIMPLE = "SimpleTransmission"


def read_transmission(element: XmlElement, joints: dict[str, JointRecord], notes: LoadNotes) -> ActuatorRecord | None:
    """Reads the actuator of a simple transmission; None where it drives nothing, as in Drake."""
    type_name = _type(element)
    if SIMPLE not in type_name:
        _skip(
            element,
            notes,
            f"type '{type_name}': only {SIMPLE} makes an actuator",
            "transmissions without effect",
        )
        return None
    actuator, joint_element = _first(element, "actuator", notes), _first(element, "joint", notes)
    name, joint_name = required_text(actuator, "name"), required_text(joint_element, "name")
    joint = joints.get(joint_name)
    if joint is None:
        notes.unsupported(
            element,
            f"it drives joint '{joint_name}', which does not exist. " + did_you_mean(joint_name, joints).rstrip("."),
        )
        return None
    options = _options(element, actuator, joint_element, notes)
    if joint.joint_class is WeldJoint:
        _skip(element, notes, f"joint '{joint_name}' is fixed", "transmissions without effect")
        return None
    if joint.joint_class.num_velocities != 1:
        notes.unsupported(
            element,
            f"joint '{joint_name}' ({joint.joint_class.kind}) has {joint.joint_class.num_velocities} "
            "degrees of freedom, and actuators drive joints with one",
        )
        return None
    if joint.effort_limit < 0.0:
        raise element.error(
            f"{element.label}: joint '{joint_name}' (line {joint.line}) has the negative effort limit "
            f"{joint.effort_limit:g}; give a number above 0, or leave it out for none."
        )
    if joint.effort_limit == 0.0:
        _skip(
            element,
            notes,
            f"joint '{joint_name}' has effort limit 0: no actuator, as in Drake",
            "transmissions without effect",
        )
        return None
    return ActuatorRecord(
        name, element.line, element.place, joint_name, {"effort_limit": joint.effort_limit, **options}
    )


def _type(element: XmlElement) -> str:
    child = element.only("type")
    if child is not None and child.text:
        return child.text
    if child is None and element.attributes.get("type", "").strip():
        return element.attributes["type"]
    raise element.error(f"{element.label} has no type; add <type>transmission_interface/{SIMPLE}</type>.")


def _first(element: XmlElement, tag: str, notes: LoadNotes) -> XmlElement:
    found = element.all(tag)
    if not found:
        raise element.error(f'{element.label} has no <{tag}>; add <{tag} name="…"/>.')
    for other in found[1:]:
        message = f"{element.label} has {len(found)} of them; the first alone is used, as in Drake"
        notes.add(IGNORED, other.label, message, other.place)
        notes.warn("transmissions with more than one joint or actuator", f"{other.label} (line {other.line})")
    return found[0]


def _options(element: XmlElement, actuator: XmlElement, joint_element: XmlElement, notes: LoadNotes) -> dict[str, Any]:
    options: dict[str, Any] = {}
    rotor, gear = actuator.only("drake:rotor_inertia"), actuator.only("drake:gear_ratio")
    if rotor is not None:
        options["rotor_inertia"] = required_number(rotor, "value", lowest=0.0)
    if gear is not None:
        options["gear_ratio"] = required_number(gear, "value")
    gains = actuator.only("drake:controller_gains")
    if gains is not None:
        options["kp"] = required_number(gains, "p", lowest=0.0)
        options["kd"] = required_number(gains, "d", lowest=0.0)
    for holder in (element, actuator, joint_element):
        for reduction in holder.all("mechanicalReduction"):
            _note_reduction(reduction, actuator, bool(options.get("rotor_inertia")) and gear is None, notes)
    return options


def _note_reduction(reduction: XmlElement, actuator: XmlElement, matters: bool, notes: LoadNotes) -> None:
    """Notes that a mechanicalReduction is not used, as in Drake: actuation is the effort at the joint."""
    if text_number(reduction, default=1.0) == 1.0:
        return
    notes.add(
        IGNORED,
        f"actuator '{actuator.attributes.get('name', '')}'",
        f"mechanicalReduction {reduction.text} is not used, as in Drake: actuation is the effort at the "
        "joint. For the inertia of the rotor write <drake:gear_ratio>",
        reduction.place,
    )
    if matters:
        notes.warn(
            "rotor inertias without <drake:gear_ratio> count as geared 1:1 (mechanicalReduction is not used)",
            f"actuator '{actuator.attributes.get('name', '')}' (line {actuator.line})",
        )


def _skip(element: XmlElement, notes: LoadNotes, reason: str, topic: str) -> None:
    notes.add(IGNORED, element.label, reason, element.place)
    notes.warn(topic, f"{element.label} (line {element.line}): {reason}")
