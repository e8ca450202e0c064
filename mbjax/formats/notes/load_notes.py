"""Notes on a file while it is read: report entries, warnings gathered by topic, refusals."""

from collections.abc import Mapping, Sequence
from typing import Any

from mbjax.errors import UnsupportedError
from mbjax.model import IGNORED, KEPT, USED, ReportEntry

from ..xml.tree import XmlElement

MAX_ITEMS_IN_WARNING = 6


class LoadNotes:
    """Gathers notes; nothing reaches the plant or the user before the whole file is read."""

    def __init__(self, file: str, on_unsupported: str):
        self.file = file
        self.on_unsupported = on_unsupported
        self.entries: list[ReportEntry] = []
        self._topics: dict[str, list[str]] = {}

    def add(self, status: str, element: str, message: str, place: str = "") -> None:
        self.entries.append(ReportEntry(status, element, message, place))

    def warn(self, topic: str, item: str) -> None:
        """Adds an item to the warning on a topic; there is one warning per topic and file."""
        self._topics.setdefault(topic, []).append(item)

    def unsupported(self, element: XmlElement, what: str) -> None:
        """Refuses physics that mbjax cannot do, or notes a warning where the caller asked for one."""
        if self.on_unsupported == "error":
            stop = "" if what.endswith("?") else "."
            raise UnsupportedError(
                f'{element.label}: {what}{stop} Remove it, or load with on_unsupported="warn" to go on without.',
                file=element.file,
                line=element.line,
            )
        self.add(IGNORED, element.label, f"{what}; the model is built without it", element.place)
        self.warn("left out although it changes the motion", f"{element.label} (line {element.line}): {what}")

    def expanded(self, place: str, said: Sequence[str], arguments: Mapping[str, Any]) -> None:
        """Notes that a file was expanded by xacro, with which arguments, and what xacro warned of."""
        given = ", ".join(f"{name}:={value}" for name, value in arguments.items())
        self.add(USED, "xacro", "expanded" + (f" with {given}" if given else ""), place)
        for text in said:
            self.add(KEPT, "xacro", text, place)
            self.warn("xacro warns", text)

    def warnings(self) -> list[str]:
        """Texts of the warnings, one sentence per topic."""
        texts = []
        for topic, items in self._topics.items():
            more = len(items) - MAX_ITEMS_IN_WARNING
            shown = "; ".join(items[:MAX_ITEMS_IN_WARNING]) + (f"; and {more} more" if more > 0 else "")
            texts.append(f"{self.file}: {topic}: {shown}. model.report() lists all.")
        return texts
