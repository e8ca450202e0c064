"""Report on the contents of a robot file: used, recorded, left out, repaired. Nothing is silently ignored."""

import dataclasses
from collections import Counter

from .html_text import html_table
from .whole_table import Column

# Status of a part of the file, in the order in which a report shows them.
USED = "used"
RECORDED = "recorded"  # kept and shown, without effect on the motion yet
IGNORED = "ignored"  # not part of the physics mbjax simulates
KEPT = "kept"  # used as it stands although it looks wrong
REPAIRED = "repaired"  # changed to something usable; the entry says what
SHOWN = (REPAIRED, KEPT, IGNORED, RECORDED, USED)


@dataclasses.dataclass(frozen=True)
class ReportEntry:
    """Entry on one part of a file: its `status`, the element, the reason, and its place as `file:line`."""

    status: str
    element: str
    message: str
    place: str = ""

    @property
    def short_place(self) -> str:
        """Place as ` (file.urdf:12)`, without the folders; empty without one."""
        return f" ({self.place.replace(chr(92), '/').rsplit('/', 1)[-1]})" if self.place else ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.status}: {self.element}: {self.message}{place}"


class Report(tuple[ReportEntry, ...]):
    """Entries on the files of a model, which print by status, what needs attention first.

    It is a tuple of `ReportEntry`: iterate over it, index it, or filter it by `entry.status`.
    """

    __slots__ = ()

    @property
    def title(self) -> str:
        """How many entries there are of each status."""
        counts = Counter(entry.status for entry in self)
        return "load report: " + (", ".join(f"{counts[s]} {s}" for s in self.statuses) or "empty")

    @property
    def statuses(self) -> list[str]:
        """The statuses that occur, in the order in which they are shown."""
        found = list(dict.fromkeys(entry.status for entry in self))
        return sorted(found, key=lambda status: SHOWN.index(status) if status in SHOWN else len(SHOWN))

    def sorted_entries(self) -> list[ReportEntry]:
        """The entries by status, within a status in the order of the file."""
        return [entry for status in self.statuses for entry in self if entry.status == status]

    def __str__(self) -> str:
        lines = [self.title]
        for status in self.statuses:
            lines.append(status)
            lines += [f"  {e.element}: {e.message}{e.short_place}" for e in self if e.status == status]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        entries = self.sorted_entries()
        columns = [
            Column("status", [e.status for e in entries], is_text=True, once=True),
            Column("element", [e.element for e in entries], is_text=True),
            Column("what became of it", [e.message for e in entries], is_text=True),
            Column("place", [e.short_place.strip(" ()") for e in entries], is_text=True),
        ]
        return html_table(self.title, columns)


@dataclasses.dataclass
class LoadReport:
    """Entries of a report, in the order they were added."""

    entries: list[ReportEntry] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = set(self.entries)

    def add(self, status: str, element: str, message: str, place: str = "") -> None:
        """Appends an entry, unless an equal one is there."""
        entry = ReportEntry(status, element, message, place)
        if entry not in self._known:
            self._known.add(entry)
            self.entries.append(entry)
