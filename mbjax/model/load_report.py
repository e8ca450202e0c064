"""What became of the contents of a file: used, recorded, left out, repaired. Nothing is silently ignored."""

import dataclasses

# What one entry says of a part of the file.
USED = "used"
RECORDED = "recorded"  # kept and shown, without effect on the motion yet
IGNORED = "ignored"  # not part of the physics mbjax simulates
KEPT = "kept"  # used as it stands although it looks wrong
REPAIRED = "repaired"  # changed to something usable; the entry says what


@dataclasses.dataclass(frozen=True)
class ReportEntry:
    """One thing found at `file:line`: what happened to it (`status`), which element, and why."""

    status: str
    element: str
    message: str
    place: str = ""

    def __str__(self) -> str:
        place = f" ({self.place})" if self.place else ""
        return f"{self.status}: {self.element}: {self.message}{place}"


@dataclasses.dataclass
class LoadReport:
    """The entries in the order they were met."""

    entries: list[ReportEntry] = dataclasses.field(default_factory=list)

    def __post_init__(self) -> None:
        self._known = set(self.entries)

    def add(self, status: str, element: str, message: str, place: str = "") -> None:
        """Appends an entry; one that says the same of the same element is not repeated."""
        entry = ReportEntry(status, element, message, place)
        if entry not in self._known:
            self._known.add(entry)
            self.entries.append(entry)
