"""The XML of an MJCF file with what it includes: checked before MuJoCo reads it, and asked for lines afterwards."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..xml_source import XmlDocument, read_xml
from ..xml_tree import XmlElement

MAX_INCLUDES = 500
MAX_COPIES = 100_000  # of replicate, composite and the like, all together
MAX_CELLS = 20_000_000  # of a builtin texture or a heightfield
COPYING = {"replicate": ("count",), "composite": ("count",), "flexcomp": ("count",)}
CELLS = {"texture": ("width", "height"), "hfield": ("nrow", "ncol")}


@dataclasses.dataclass
class Read:
    """The files read so far, and where further ones may lie besides the model's folder."""

    files: set[str]
    folders: tuple[Path, ...]


@dataclasses.dataclass
class Source:
    """The elements under <mujoco> in the order of the file, those of included files in their place."""

    root: XmlElement
    elements: list[XmlElement]

    def sections(self, tag: str) -> Iterator[XmlElement]:
        """The children of all top-level elements of that name."""
        for element in self.elements:
            if element.tag == tag:
                yield from element.children


def read_source(document: XmlDocument, folders: Sequence[Path] = ()) -> Source:
    """Follows <include>; refuses files outside of the folders, entities in them, and expansion without bound.

    Files are read from the model's folder or below, and from `folders`, those of a package map.
    """
    read = Read({document.file}, tuple(folder.resolve() for folder in folders))
    elements = [part for child in document.root.children for part in expanded(child, document, document.folder, read)]
    document.root.children = elements
    refuse_expansion(elements)
    return Source(document.root, elements)


def expanded(element: XmlElement, document: XmlDocument, folder: Path | None, read: Read) -> list[XmlElement]:
    """The element with its includes replaced by what they hold."""
    if element.tag == "include":
        return included(element, document, folder, read)
    if element.tag == "model" and element.attributes.get("file"):
        checked_file(element, document, folder, read.folders)
    element.children = [part for child in element.children for part in expanded(child, document, folder, read)]
    return [element]


def included(element: XmlElement, document: XmlDocument, folder: Path | None, read: Read) -> list[XmlElement]:
    """The elements of an included file."""
    inner = checked_file(element, document, folder, read.folders)
    if inner.file in read.files or len(read.files) > MAX_INCLUDES:
        raise element.error(f"<include>: '{inner.file}' is included already; MuJoCo takes each file once.")
    read.files.add(inner.file)
    return [part for child in inner.root.children for part in expanded(child, document, inner.folder, read)]


def checked_file(
    element: XmlElement, document: XmlDocument, folder: Path | None, folders: Sequence[Path]
) -> XmlDocument:
    """A file that MuJoCo would read as XML: in one of the folders or below, and without entities."""
    name = element.attributes.get("file", "").strip()
    if not name:
        raise element.error(f'<{element.tag}> names no file; write file="…".')
    if document.folder is None or folder is None:
        raise element.error(f'<{element.tag} file="{name}">: a text has no folder to look in; load the file instead.')
    candidates = [(base / name).resolve() for base in (document.folder, folder)]
    roots = (document.folder.resolve(), *folders)
    inside = [path for path in candidates if any(path.is_relative_to(root) for root in roots)]
    if not inside:
        raise element.error(
            f"<{element.tag} file=\"{name}\"> lies outside of the model's folder '{document.folder}', so it is not "
            "read. Move it there."
        )
    found = next((path for path in inside if path.is_file()), None)
    if found is None:
        raise element.error(f"<{element.tag} file=\"{name}\">: there is no file '{inside[0]}'.")
    return read_xml(found)


def refuse_expansion(elements: Sequence[XmlElement]) -> None:
    """Refuses counts by which a small file becomes a huge model."""
    copies = 0.0
    stack = [(element, 1.0) for element in elements]
    while stack:
        element, factor = stack.pop()
        factor *= product(element, COPYING)
        copies += factor
        if copies > MAX_COPIES * 5:
            raise element.error(f"<{element.tag}> and others make more than {MAX_COPIES} copies; no robot needs that.")
        if product(element, CELLS) > MAX_CELLS:
            raise element.error(f"<{element.tag}> has more than {MAX_CELLS} cells; mbjax reads none of that size.")
        stack.extend((child, factor) for child in element.children)


def product(element: XmlElement, attributes: dict[str, tuple[str, ...]]) -> float:
    """The product of an element's counts."""
    result = 1.0
    for attribute in attributes.get(element.tag, ()):
        for word in element.attributes.get(attribute, "").split():
            result *= max(1.0, count_of(word))
    return result


def count_of(word: str) -> float:
    """The number, 1 where it is none: MuJoCo refuses that."""
    try:
        return abs(float(word))
    except ValueError:
        return 1.0
