"""XML elements with their file and line, and the SAX handler that builds their tree."""

import dataclasses
from xml.sax.handler import ContentHandler

from mbjax.errors import ParseError

from ..files.reading_policy import MAX_ATTRIBUTE_LENGTH, MAX_DEPTH, MAX_ELEMENTS


@dataclasses.dataclass(eq=False)
class XmlElement:
    """An XML element: its tag as written, prefix included, its attributes, children and text."""

    tag: str
    attributes: dict[str, str]
    file: str
    line: int
    children: list["XmlElement"] = dataclasses.field(default_factory=list)
    text: str = ""

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def label(self) -> str:
        name = self.attributes.get("name")
        return f"<{self.tag[:60]}>" if name is None else f'<{self.tag[:60]} name="{name[:100]}">'

    def all(self, *tags: str) -> list["XmlElement"]:
        """Children with one of these tags, in the order of the file."""
        return [child for child in self.children if child.tag in tags]

    def only(self, *tags: str) -> "XmlElement | None":
        """The only child with one of these tags; None without one, a `ParseError` for several."""
        found = self.all(*tags)
        if len(found) > 1:
            lines = ", ".join(str(child.line) for child in found)
            raise found[1].error(
                f"{self.label} has {len(found)} <{found[0].tag}> elements (lines {lines}), but only one can "
                "hold. Remove the others."
            )
        return found[0] if found else None

    def error(self, message: str) -> ParseError:
        return ParseError(message, file=self.file, line=self.line)


class TreeBuilder(ContentHandler):
    """Builds the tree of elements; refuses depths, counts and attribute sizes that no robot file needs."""

    def __init__(self, file: str, lines_before: int):
        super().__init__()
        self.file = file
        self.lines_before = lines_before
        self.root: XmlElement | None = None
        self.open_elements: list[XmlElement] = []
        self._texts: list[list[str]] = []
        self._count = 0
        self._locator = None

    def setDocumentLocator(self, locator):
        self._locator = locator

    @property
    def line(self) -> int:
        number = None if self._locator is None else self._locator.getLineNumber()
        return self.lines_before + (1 if number is None else number)

    def startElement(self, name, attrs):
        element = XmlElement(name, dict(attrs), self.file, self.line)
        self._count += 1
        if len(self.open_elements) >= MAX_DEPTH:
            raise element.error(
                f"<{name[:60]}> is nested more than {MAX_DEPTH} levels deep. No robot file needs that: "
                "this one is damaged or hostile."
            )
        if self._count > MAX_ELEMENTS:
            raise element.error(f"more than {MAX_ELEMENTS} elements. mbjax reads no file of that size.")
        for key, value in element.attributes.items():
            if len(key) + len(value) > MAX_ATTRIBUTE_LENGTH:
                raise element.error(
                    f"<{name[:60]}>: attribute '{key[:60]}' has {len(value)} characters; at most "
                    f"{MAX_ATTRIBUTE_LENGTH} are read."
                )
        if self.open_elements:
            self.open_elements[-1].children.append(element)
        else:
            self.root = element
        self.open_elements.append(element)
        self._texts.append([])

    def endElement(self, name):
        del name
        self.open_elements.pop().text = "".join(self._texts.pop()).strip()

    def characters(self, content):
        self._texts[-1].append(content)
