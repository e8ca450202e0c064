"""Report on the contents of a robot file: used, recorded, left out, repaired. Nothing is silently ignored."""

import dataclasses

# Status of a part of the file.
USED = "used"
RECORDED = "recorded"  # kept and shown, without effect on the motion yet
IGNORED = "ignored"  # not part of the physics mbjax simulates
KEPT = "kept"  # used as it stands although it looks wrong
REPAIRED = "repaired"  # changed to something usable; the entry says what


@dataclasses.dataclass(frozen=True)
class ReportEntry:
    """Entry on one part of a file: its `status`, the element, the reason, and its place as `file:line`."""

    status: str
    element: str
    message: str
    place: str = ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.status}: {self.element}: {self.message}{place}"


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
