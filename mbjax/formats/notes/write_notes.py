"""The text of a robot file with the report on what it could not hold, and the notes from which the report is made."""

import warnings

from mbjax.errors import ModelError, ModelWarning, UnsupportedError
from mbjax.model import IGNORED, REPAIRED, ReportEntry

MAX_ITEMS_IN_WARNING = 6
CALLER_OF_WRITER = 3  # finish, to_urdf and the like, and then whoever called that


class Written(str):
    """The text of a robot file: a `str` for `mbjax.load` and `Path.write_text`.

    `report` has an entry for each part of the model that the format does not hold, or holds in another form.
    """

    report: tuple[ReportEntry, ...]

    def __new__(cls, text: str, report: tuple[ReportEntry, ...] = ()) -> "Written":
        written = super().__new__(cls, text)
        written.report = report
        return written


class WriteNotes:
    """Gathers what becomes of parts of a model that a format does not hold as they are.

    Elements of a kind of which there is the same to say share an entry.
    """

    def __init__(self, call: str, format_name: str, on_unsupported: str):
        if on_unsupported not in ("error", "warn"):
            raise ModelError(f"{call}: on_unsupported={on_unsupported!r}: choose one of 'error', 'warn'.")
        self.call, self.format_name, self.on_unsupported = call, format_name, on_unsupported
        self._entries: dict[tuple[str, str, str], dict[str, None]] = {}  # names by status, kind of element and message
        self._left_out: list[str] = []

    def add(self, status: str, element: str, message: str) -> None:
        kind, quote, name = element.partition(" '")
        self._entries.setdefault((status, kind, message), {})[quote + name] = None

    def ignored(self, element: str, message: str) -> None:
        """Lists a part that does not act on the motion."""
        self.add(IGNORED, element, message)

    def repaired(self, element: str, message: str) -> None:
        """Lists a part that the file has in another form."""
        self.add(REPAIRED, element, message)

    def unsupported(self, element: str, what: str) -> None:
        """Refuses physics that the format cannot hold, or notes a warning where the caller asked for one."""
        if self.on_unsupported == "error":
            raise UnsupportedError(
                f"{self.call}: {element}: {what}. Change the model, write another format, or write with "
                'on_unsupported="warn" to go on without.'
            )
        self.add(IGNORED, element, f"{what}; the file is written without it")
        self._left_out.append(f"{element}: {what}")

    def finish(self, text: str) -> Written:
        """The text with its report; one warning for all physics that is missing in it."""
        if self._left_out:
            more = len(self._left_out) - MAX_ITEMS_IN_WARNING
            shown = "; ".join(self._left_out[:MAX_ITEMS_IN_WARNING]) + (f"; and {more} more" if more > 0 else "")
            message = f"{self.call}: left out although it changes the motion: {shown}. The text's report lists all."
            warnings.warn(message, ModelWarning, stacklevel=CALLER_OF_WRITER)
        entries = (
            ReportEntry(status, kind + ",".join(names), message)
            for (status, kind, message), names in self._entries.items()
        )
        return Written(text, tuple(entries))
