"""What SDFormat and Drake's extensions say of contact: proximity properties and collision filter groups."""

from typing import Any

from mbjax.geometry import ProximityProperties
from mbjax.model import IGNORED

from ..notes.load_notes import LoadNotes
from ..records.robot_records import CollisionFilterRecord
from ..urdf.read_contact import MAX_GROUPS, PROXIMITY_TAGS, links_of
from ..urdf.read_hydroelastic import read_hydroelastic
from ..xml.tree import XmlElement
from ..xml.values import did_you_mean, required_text
from .read_scopes import DELIMITER, Scope, Vertex
from .values import child_number, flag, text_numbers, text_of

FILTER = "drake:collision_filter_group"


def read_proximity_properties(collision: XmlElement, link_name: str, notes: LoadNotes) -> ProximityProperties:
    """Those of one <collision>: Drake's, and else the friction <mu> (static) and <mu2> (dynamic) meant for ODE."""
    properties = collision.only("drake:proximity_properties")
    found: dict[str, Any] = {}
    if properties is not None:
        present = {tag: name for tag, name in PROXIMITY_TAGS.items() if properties.only(tag) is not None}
        found = {name: child_number(properties, tag, allow_infinite=False) for tag, name in present.items()}
    ode = friction_of_ode(collision)
    if ode is not None and {"static_friction", "dynamic_friction"} & set(found):
        message = "not used where <drake:proximity_properties> give the friction, as in Drake"
        notes.add(IGNORED, ode.label, message, ode.place)
    elif ode is not None:
        found["static_friction"] = child_number(ode, "mu", 1.0)
        found["dynamic_friction"] = child_number(ode, "mu2", 1.0)
    if "dynamic_friction" in found:
        found.setdefault("static_friction", found["dynamic_friction"])
    try:
        if properties is not None:
            found["hydroelastic"] = read_hydroelastic(properties, lambda tag: float(text_numbers(tag, 1)[0]), notes)
        return ProximityProperties(**found)
    except ValueError as error:
        place = ode if properties is None and ode is not None else properties or collision
        raise place.error(f"{collision.label} of link '{link_name}': {error}") from None


def friction_of_ode(collision: XmlElement) -> XmlElement | None:
    """<surface><friction><ode>, if it has a coefficient."""
    element: XmlElement | None = collision
    for tag in ("surface", "friction", "ode"):
        element = None if element is None else element.only(tag)
    return element if element is not None and element.all("mu", "mu2") else None


def read_collision_filters(world: Scope, notes: LoadNotes) -> dict[Scope, list[CollisionFilterRecord]]:
    """One record for each group that another ignores, by the model that has it; names are relative to their model."""
    groups: dict[str, tuple[XmlElement, Scope]] = {}
    for scope in world.all_models():
        for element in (part.element for part in scope.custom if part.element.tag == FILTER):
            if flag(element, element.attributes.get("ignore", "false")):
                notes.add(IGNORED, element.label, 'ignore="true"', element.place)
                continue
            name = absolute(scope, required_text(element, "name"))
            if name in groups:
                first = groups[name][0].line
                raise element.error(
                    f"two collision filter groups are named '{name}' (lines {first} and {element.line}); rename one."
                )
            groups[name] = element, scope
    if len(groups) > MAX_GROUPS:
        raise world.element.error(f"{len(groups)} collision filter groups; at most {MAX_GROUPS} are read.")
    scopes = world.all_models()
    links = {absolute(s, v.name): v for s in scopes for v in s.members.values() if v.kind == "link"}
    return _records(groups, links)


def _records(
    groups: dict[str, tuple[XmlElement, Scope]], known: dict[str, Vertex]
) -> dict[Scope, list[CollisionFilterRecord]]:
    own = {
        name: [_link(member, scope, known) for member in e.all("drake:member")] for name, (e, scope) in groups.items()
    }
    member_groups = {
        name: [_group(member, scope, groups) for member in element.all("drake:member_group")]
        for name, (element, scope) in groups.items()
    }
    links = {name: links_of(element, name, member_groups, own) for name, (element, _) in groups.items()}
    records: dict[Scope, list[CollisionFilterRecord]] = {}
    for name, (element, scope) in groups.items():
        for ignored in element.all("drake:ignored_collision_filter_group"):
            other = _group(ignored, scope, groups)
            record = CollisionFilterRecord((name, links[name]), (other, links[other]))
            records.setdefault(scope, []).append(record)
    return records


def _link(member: XmlElement, scope: Scope, known: dict[str, Vertex]) -> str:
    """The link that a member names."""
    name = absolute(scope, text_of(member))
    if name not in known:
        raise member.error(f"{member.label}: there is no link '{name[:200]}'. {did_you_mean(name, known)}")
    return name


def _group(element: XmlElement, scope: Scope, groups: dict[str, tuple[XmlElement, Scope]]) -> str:
    name = absolute(scope, text_of(element))
    if name not in groups:
        hint = did_you_mean(name, groups)
        raise element.error(f"{element.label}: there is no collision filter group '{name[:200]}'. {hint}")
    return name


def absolute(scope: Scope, name: str) -> str:
    """A name of a model as the whole file knows it."""
    return f"{scope.name}{DELIMITER}{name}" if scope.name else name
