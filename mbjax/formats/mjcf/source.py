"""The XML of an MJCF file with what it includes: checked before MuJoCo reads it, and asked for lines afterwards."""

import dataclasses
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..files.reading_policy import MAX_FILES, MAX_FILES_INSIDE, ReadableFolders
from ..xml.source import XmlDocument, read_named_xml
from ..xml.tree import XmlElement
from .expansion import FOUND, refuse_expansion


@dataclasses.dataclass
class Read:
    """The files read so far, those read by <model>, and which further ones may be read."""

    files: set[str]
    readable: ReadableFolders
    models: dict[str, list[XmlElement]]  # of files that <model> names, with their includes
    open_models: list[str]


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
    """Follows <include> and <model>; refuses files that may not be read, entities in them, and expansion without bound.

    Files are read from the model's folder or package, and from `folders`, those of a package map.
    """
    read = Read({document.file}, ReadableFolders(document.folder, folders), {}, [document.file])
    elements = [part for child in document.root.children for part in expanded(child, document, document.folder, read)]
    document.root.children = elements
    refuse_expansion(elements, read.models)
    return Source(document.root, elements)


def expanded(element: XmlElement, document: XmlDocument, folder: Path | None, read: Read) -> list[XmlElement]:
    """The element with its includes replaced by what they hold."""
    if element.tag == "include":
        return included(element, document, folder, read)
    if element.tag == "model" and element.attributes.get("file"):
        read_model(element, document, folder, read)
    element.children = [part for child in element.children for part in expanded(child, document, folder, read)]
    return [element]


def included(element: XmlElement, document: XmlDocument, folder: Path | None, read: Read) -> list[XmlElement]:
    """The elements of an included file."""
    inner = checked_file(element, document, folder, read.readable)
    if inner.file in read.files or len(read.files) > MAX_FILES:
        raise element.error(f"<include>: '{inner.file}' is included already; MuJoCo takes each file once.")
    read.files.add(inner.file)
    return [part for child in inner.root.children for part in expanded(child, document, inner.folder, read)]


def read_model(element: XmlElement, document: XmlDocument, folder: Path | None, read: Read) -> None:
    """Reads the model that <model file> names as MuJoCo will, with what it includes, and keeps it for <attach>."""
    inner = checked_file(element, document, folder, read.readable)
    if inner.file in read.open_models or len(read.open_models) > MAX_FILES_INSIDE:
        raise element.error(f"<model>: '{inner.file}' names itself, perhaps through other files.")
    if inner.file not in read.models:
        if len(read.models) > MAX_FILES:
            raise element.error(f"<model>: more than {MAX_FILES} files; no robot needs that.")
        read.open_models.append(inner.file)
        own = dataclasses.replace(read, files={inner.file})
        parts = [part for child in inner.root.children for part in expanded(child, document, inner.folder, own)]
        read.models[inner.file] = parts
        read.open_models.pop()
    element.attributes[FOUND] = inner.file


def checked_file(
    element: XmlElement, document: XmlDocument, folder: Path | None, readable: ReadableFolders
) -> XmlDocument:
    """A file that MuJoCo would read as XML: one that may be read, and without entities."""
    name = element.attributes.get("file", "").strip()
    if not name:
        raise element.error(f'<{element.tag}> names no file; write file="…".')
    if document.folder is None or folder is None:
        raise element.error(f'<{element.tag} file="{name}">: a text has no folder to look in; load the file instead.')
    candidates = [base / name for base in (document.folder, folder)]
    inside = [path for path in candidates if readable.allows(path)]
    if not inside:
        raise element.error(f'<{element.tag} file="{name}">: {readable.refusal(candidates[0])}')
    found = next((path for path in inside if path.is_file()), None)
    if found is None:
        raise element.error(f"<{element.tag} file=\"{name}\">: there is no file '{inside[0]}'.")
    return read_named_xml(found.resolve(), readable)
