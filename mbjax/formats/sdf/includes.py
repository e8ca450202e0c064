"""<include>: the files it names, read once around, never in a circle and never without end."""

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from ..files.reading_policy import MAX_FILES, MAX_FILES_INSIDE, ReadableFolders
from ..files.resource_paths import ResourceFinder, words_for_tried
from ..records.robot_records import WORLD, RobotRecord
from ..xml.source import XmlDocument, read_named_xml
from ..xml.tree import XmlElement
from .read_scopes import Context, Vertex
from .values import child_text, identity, required_child

MANIFEST = "model.config"


@dataclasses.dataclass
class IncludeReader:
    """Finds and reads included files; `read_robot` reads one that is a URDF."""

    package_map: Mapping[str, str | os.PathLike]
    readable: ReadableFolders
    read_robot: Callable[[XmlDocument], RobotRecord]
    open_files: list[str] = dataclasses.field(default_factory=list)
    finders: dict[str, ResourceFinder] = dataclasses.field(default_factory=dict)
    documents: dict[str, XmlDocument] = dataclasses.field(default_factory=dict)
    robots: dict[str, RobotRecord] = dataclasses.field(default_factory=dict)
    num_read: int = 0

    def read(self, include: XmlElement, finder: ResourceFinder) -> XmlDocument:
        """The file an <include> names; a folder stands for the file its model.config names."""
        uri = child_text(include, "uri")
        self.num_read += 1
        if self.num_read > MAX_FILES or len(self.open_files) > MAX_FILES_INSIDE:
            raise include.error(
                f"more than {MAX_FILES} includes, or {MAX_FILES_INSIDE} inside one another; no file needs that."
            )
        path, tried = finder.find_model(uri)
        if path is None:
            raise required_child(include, "uri").error(
                f"<include>: '{uri[:200]}' was not found ({words_for_tried(tried)}). "
                'Give package_map={"package": "folder"}, or set GZ_SIM_RESOURCE_PATH.'
            )
        if os.path.isdir(path):
            path = model_file(Path(path), include, self.readable)
        document = self.documents.get(path)
        if document is None:
            document = self.documents[path] = read_named(path, include, self.readable)
        if document.root.tag == "mujoco":
            raise include.error(f"<include>: '{uri[:200]}' is MJCF, which an SDFormat file of mbjax cannot include.")
        if document.root.tag not in ("sdf", "gazebo", "robot"):
            raise include.error(f"<include>: '{uri[:200]}' holds <{document.root.tag[:60]}>, not a model.")
        return document

    def roots(self) -> list[XmlElement]:
        """The included SDFormat files, each once."""
        return [document.root for document in self.documents.values() if document.root.tag != "robot"]

    def robot(self, document: XmlDocument) -> RobotRecord:
        """An included URDF file, read once."""
        if document.file not in self.robots:
            self.robots[document.file] = self.read_robot(document)
        return self.robots[document.file]

    @contextmanager
    def within(self, document: XmlDocument, include: XmlElement) -> Iterator[None]:
        """While the contents of a file are read; refuses a file that includes itself."""
        path = os.path.abspath(document.file)
        if path in self.open_files:
            raise include.error(f"<include>: '{document.file}' includes itself, perhaps through other files.")
        self.open_files.append(path)
        try:
            yield
        finally:
            self.open_files.pop()

    def finder_for(self, document: XmlDocument) -> ResourceFinder:
        """The finder of files named in this one."""
        key = os.path.abspath(document.file)
        if key not in self.finders:
            self.finders[key] = ResourceFinder(document.folder, self.package_map, self.readable)
        return self.finders[key]


def read_named(path: str | os.PathLike, include: XmlElement, readable: ReadableFolders) -> XmlDocument:
    """A file that an <include> leads to."""
    try:
        return read_named_xml(path, readable)
    except OSError as error:
        raise include.error(f"<include>: {error}") from None


def model_file(folder: Path, include: XmlElement, readable: ReadableFolders) -> str:
    """The SDFormat file of a model folder, the one of the newest version."""
    manifest = folder / MANIFEST
    if not manifest.is_file():
        raise include.error(f"<include>: '{folder}' is a folder without {MANIFEST}; name the file in it.")
    root = read_named(manifest, include, readable).root
    found = [
        (version_numbers(child.attributes.get("version", "")), child.text) for child in root.all("sdf") if child.text
    ]
    if not found:
        raise include.error(f"<include>: '{manifest}' names no <sdf> file.")
    return str(folder / max(found, key=lambda item: item[0])[1])


def version_numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".") if part.isdecimal() and len(part) < 9)


def included_model(document: XmlDocument, include: XmlElement) -> XmlElement:
    """The one <model> of an included file."""
    models = document.root.all("model")
    if len(models) != 1 or document.root.all("world"):
        raise include.error(
            f"<include>: '{document.file}' has {len(models)} models and {len(document.root.all('world'))} worlds; "
            "a file is included for its one <model>."
        )
    return models[0]


def add_urdf(robot: RobotRecord, context: Context, include: XmlElement) -> None:
    """The links, joints and frames of a URDF under their names.

    As in Drake all its links stand at the origin of the model, wherever its joints put them.
    """
    scope = context.scope
    for link in robot.links:
        if link.name != WORLD:
            scope.add(Vertex("link", link.name, at_line(include, link), context))
    for joint in robot.joints:
        X_CJ = joint.options.get("X_BM", identity())
        scope.add(Vertex("joint", joint.name, at_line(include, joint), context, X_CJ, attached_to=joint.child))
    for frame in robot.frames:
        scope.add(Vertex("frame", frame.name, at_line(include, frame), context, frame.X_PF, attached_to=frame.link))
    scope.urdfs.append((robot, context))


def at_line(include: XmlElement, record) -> XmlElement:
    """An element that stands for a record of another file in messages."""
    file, _, line = record.place.rpartition(":")
    return XmlElement(include.tag, {"name": record.name}, file, int(line))
