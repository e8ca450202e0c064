"""How what no reader uses is listed: once each by name, with the lines."""

from mbjax.model import IGNORED

from ..xml.tree import XmlElement
from .load_notes import LoadNotes

MAX_LINES_LISTED = 12
Leftovers = dict[tuple[str, str], list[XmlElement]]  # by what it is and why it is not used


def report_leftovers(found: Leftovers, notes: LoadNotes) -> None:
    """One report entry per kind of leftover, with count and lines."""
    for (what, reason), elements in found.items():
        count = len(elements)
        lines = ", ".join(str(element.line) for element in elements[:MAX_LINES_LISTED])
        more = ", …" if count > MAX_LINES_LISTED else ""
        times = "once" if count == 1 else f"{count} times"
        notes.add(
            IGNORED,
            what,
            f"{reason}; found {times}, line{'' if count == 1 else 's'} {lines}{more}",
            elements[0].place,
        )
