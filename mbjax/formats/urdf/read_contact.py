"""Reads Drake's extensions of URDF for contact: proximity properties of shapes, and collision filter groups."""

from collections.abc import Mapping, Set
from typing import Any

from mbjax.geometry import ProximityProperties
from mbjax.model import IGNORED

from ..notes.load_notes import LoadNotes
from ..records.robot_records import WORLD, CollisionFilterRecord, RobotRecord
from ..xml.tree import XmlElement
from ..xml.values import did_you_mean, required_number, required_text, text_number
from .read_hydroelastic import read_hydroelastic

MAX_GROUPS = 1000
PROXIMITY_TAGS = {
    "drake:mu_static": "static_friction",
    "drake:mu_dynamic": "dynamic_friction",
    "drake:point_contact_stiffness": "point_stiffness",
    "drake:hunt_crossley_dissipation": "hunt_crossley_dissipation",
    "drake:relaxation_time": "relaxation_time",
}


def read_proximity_properties(collision: XmlElement, link_name: str, notes: LoadNotes) -> ProximityProperties:
    """Reads the contact properties of a <collision>; a single coefficient of friction stands for both, as in Drake."""
    properties = collision.only("drake:proximity_properties")
    found: dict[str, Any] = {} if properties is None else dict(read_values(properties))
    legacy = collision.only("drake_compliance")
    if legacy is not None and not {"static_friction", "dynamic_friction"} & set(found):
        found |= read_legacy_friction(legacy)
    if "dynamic_friction" in found:
        found.setdefault("static_friction", found["dynamic_friction"])
    try:
        if properties is not None:
            found["hydroelastic"] = read_hydroelastic(properties, lambda tag: required_number(tag, "value"), notes)
        return ProximityProperties(**found)
    except ValueError as error:
        place = collision if properties is None else properties
        raise place.error(f"{collision.label} of link '{link_name}': {error}") from None


def read_values(properties: XmlElement) -> dict[str, float]:
    """Reads the numbers of <drake:proximity_properties>."""
    found = {}
    for tag, name in PROXIMITY_TAGS.items():
        element = properties.only(tag)
        if element is not None:
            found[name] = required_number(element, "value")
    return found


def read_legacy_friction(compliance: XmlElement) -> dict[str, float]:
    """Reads friction as older files write it: the text of <static_friction> and <dynamic_friction>."""
    found = {}
    for name in ("static_friction", "dynamic_friction"):
        element = compliance.only(name)
        if element is not None:
            found[name] = text_number(element)
    return found


def read_collision_filters(root: XmlElement, robot: RobotRecord, notes: LoadNotes) -> list[CollisionFilterRecord]:
    """Reads one record for each group that a <drake:collision_filter_group> ignores."""
    groups: dict[str, XmlElement] = {}
    for element in root.all("drake:collision_filter_group"):
        name = required_text(element, "name")
        if element.attributes.get("ignore") == "true":
            notes.add(IGNORED, element.label, 'ignore="true"', element.place)
            continue
        if name in groups:
            raise element.error(
                f"two collision filter groups are named '{name}' (lines {groups[name].line} and "
                f"{element.line}); rename one."
            )
        groups[name] = element
    if len(groups) > MAX_GROUPS:
        raise root.error(f"{root.label} has {len(groups)} collision filter groups; at most {MAX_GROUPS} are read.")
    known = {link.name for link in robot.links} - {WORLD}
    own = {name: own_links(element, known) for name, element in groups.items()}
    member_groups = {
        name: [group_name(member, groups) for member in element.all("drake:member_group")]
        for name, element in groups.items()
    }
    links = {name: links_of(element, name, member_groups, own) for name, element in groups.items()}
    records = []
    for name, element in groups.items():
        for ignored in element.all("drake:ignored_collision_filter_group"):
            other = group_name(ignored, groups)
            records.append(CollisionFilterRecord((name, links[name]), (other, links[other])))
    return records


def own_links(group: XmlElement, known: Set[str]) -> list[str]:
    """Links that a group names itself."""
    found = []
    for member in group.all("drake:member"):
        link = required_text(member, "link")
        if link not in known:
            raise member.error(f"{group.label}: there is no link '{link}'. {did_you_mean(link, known)}")
        found.append(link)
    return found


def links_of(
    group: XmlElement, name: str, member_groups: Mapping[str, list[str]], own: Mapping[str, list[str]]
) -> tuple[str, ...]:
    """The links of a group and of the groups that are its members."""
    reached, waiting = {name}, [name]
    while waiting:
        for other in member_groups[waiting.pop()]:
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    found = dict.fromkeys(link for member in own if member in reached for link in own[member])
    if not found:
        raise group.error(f"{group.label} has no members; add <drake:member> with the name of a link.")
    return tuple(found)


def group_name(element: XmlElement, groups: Mapping[str, XmlElement]) -> str:
    """Name of the group that an element refers to; a `ParseError` where the file does not define it."""
    name = required_text(element, "name")
    if name not in groups:
        hint = did_you_mean(name, groups)
        raise element.error(f"{element.label}: there is no collision filter group '{name}'. {hint}")
    return name
