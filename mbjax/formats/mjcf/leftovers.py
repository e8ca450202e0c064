"""What of an MJCF file is not used, by tag and attribute: listed once each, with the reason."""

from mbjax.model import IGNORED

from ..notes.load_notes import LoadNotes
from ..xml.tree import XmlElement
from .compiled import Compiled
from .coverage import UNKNOWN, status_of

MAX_LINES_LISTED = 12
FRICTION = (
    "where contact is on, sliding friction is used, torsional and rolling friction are not; of a pair the plant takes "
    "2 a b / (a + b), as Drake does, where MuJoCo takes the larger"
)


def list_leftovers(compiled: Compiled, notes: LoadNotes) -> None:
    """One entry per kind of leftover, with count and lines."""
    found: dict[tuple[str, str], list[XmlElement]] = {}
    for element in compiled.source.elements:
        collect(element, found)
    for (what, reason), elements in found.items():
        count = len(elements)
        lines = ", ".join(str(element.line) for element in elements[:MAX_LINES_LISTED])
        more = ", …" if count > MAX_LINES_LISTED else ""
        times = "once" if count == 1 else f"{count} times"
        message = f"{reason}; found {times}, line{'' if count == 1 else 's'} {lines}{more}"
        notes.add(IGNORED, what, message, elements[0].place)
    if compiled.m.ngeom and not compiled.disabled("CONTACT"):
        notes.add(IGNORED, "<geom friction>", FRICTION, compiled.file)


def collect(element: XmlElement, found: dict[tuple[str, str], list[XmlElement]]) -> None:
    """Leftovers of an element and of what it holds; of what MuJoCo has and this table has not, too."""
    status, reason = status_of(element.tag) or ("listed", UNKNOWN)
    if status == "listed":
        found.setdefault((f"<{element.tag}>", reason), []).append(element)
        return
    for attribute in element.attributes:
        status, reason = status_of(element.tag, attribute) or ("listed", UNKNOWN)
        if status == "listed":
            found.setdefault((f"<{element.tag} {attribute}>", reason), []).append(element)
    for child in element.children:
        collect(child, found)
