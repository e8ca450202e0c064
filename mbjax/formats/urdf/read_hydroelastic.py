"""Reads Drake's tags of hydroelastic contact, which URDF and SDFormat share but for where the number stands."""

from collections.abc import Callable
from typing import Any

from mbjax.geometry import HydroelasticProperties
from mbjax.model import IGNORED

from ..notes.load_notes import LoadNotes
from ..xml.tree import XmlElement

COMPLIANCE_TAGS = {"drake:rigid_hydroelastic": "rigid", "drake:compliant_hydroelastic": "compliant"}
HYDROELASTIC_NUMBERS = {
    "drake:hydroelastic_modulus": "modulus",
    "drake:mesh_resolution_hint": "resolution_hint",
    "drake:hydroelastic_margin": "margin",
}
HYDROELASTIC_TAGS = (*COMPLIANCE_TAGS, *HYDROELASTIC_NUMBERS)
OLD_TAG = "drake:soft_hydroelastic"


def read_hydroelastic(
    properties: XmlElement, number: Callable[[XmlElement], float], notes: LoadNotes
) -> HydroelasticProperties | None:
    """Hydroelastic properties of <drake:proximity_properties>; None where it does not say rigid or compliant.

    `number` reads the number of a tag. Numbers that have no effect, as in Drake, go to the notes.
    """
    old = properties.only(OLD_TAG)
    if old is not None:
        raise old.error(f"<{OLD_TAG}> is no longer read, as in Drake; write <drake:compliant_hydroelastic/>.")
    said = [(tag, properties.only(tag)) for tag in COMPLIANCE_TAGS]
    kinds = [(COMPLIANCE_TAGS[tag], element) for tag, element in said if element is not None]
    if len(kinds) > 1:
        lines = " and ".join(str(element.line) for _, element in kinds)
        raise properties.error(
            f"{properties.label} says both rigid and compliant hydroelastic (lines {lines}); remove one."
        )
    present = {tag: element for tag in HYDROELASTIC_NUMBERS if (element := properties.only(tag)) is not None}
    numbers: dict[str, Any] = {tag: number(element) for tag, element in present.items()}
    without_effect = effectless(kinds[0][0] if kinds else None)
    for tag, element in present.items():
        if tag in without_effect:
            notes.add(IGNORED, element.label, without_effect[tag], element.place)
    if not kinds:
        return None
    found = {HYDROELASTIC_NUMBERS[tag]: value for tag, value in numbers.items() if tag not in without_effect}
    return HydroelasticProperties(kinds[0][0], **found)


def effectless(compliance: str | None) -> dict[str, str]:
    """The tags of numbers that do nothing beside this compliance, and why."""
    if compliance is None:
        why = "no effect without <drake:rigid_hydroelastic/> or <drake:compliant_hydroelastic/>: contact is at points"
        return dict.fromkeys(HYDROELASTIC_NUMBERS, why)
    if compliance == "rigid":
        tags = ("drake:hydroelastic_modulus", "drake:hydroelastic_margin")
        return dict.fromkeys(tags, "a rigid hydroelastic shape has no pressure field; not used, as in Drake")
    return {}


def hydroelastic_tags(properties: HydroelasticProperties) -> dict[str, float | None]:
    """The tags that say these properties, with their numbers; None where the tag alone says it."""
    (tag,) = (tag for tag, compliance in COMPLIANCE_TAGS.items() if compliance == properties.compliance)
    numbers = {tag: getattr(properties, name) for tag, name in HYDROELASTIC_NUMBERS.items()}
    return {tag: None, **{tag: value for tag, value in numbers.items() if value}}
