"""Finds mesh files by package://, model://, file://, relative and absolute names."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote

PACKAGE_URI = re.compile(r"(?:package|model):/{2,}([^/]+)/?(.*)", re.DOTALL)
PACKAGE_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")
OTHER_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class ResourceFinder:
    """Resolves file names of one robot file; `missing` holds the paths tried for files that were not found."""

    def __init__(self, folder: Path | None, package_map: Mapping[str, str | os.PathLike]):
        self.folder = folder
        self.package_map = {name: Path(path).expanduser() for name, path in package_map.items()}
        self.missing: dict[str, list[str]] = {}

    def find(self, filename: str) -> str | None:
        """Absolute path of an existing file; None if there is none."""
        tried: list[str] = []
        for candidate in self._candidates(filename.strip()):
            path = os.path.abspath(candidate)
            if path in tried:
                continue
            if _is_file(path):
                return path
            tried.append(path)
        self.missing[filename] = tried
        return None

    def find_model(self, uri: str) -> tuple[str | None, list[str]]:
        """The absolute path of a model's file or folder, or None; and where it was looked for."""
        tried: list[str] = []
        for candidate in self._candidates(uri.strip()):
            path = os.path.abspath(candidate)
            if os.path.exists(path):
                return path, tried
            tried.append(path)
        return None, tried

    def find_package(self, name: str) -> Path | None:
        """The folder of a package; None if there is none."""
        return next((Path(os.path.abspath(folder)) for folder in self._package_folders(name) if folder.is_dir()), None)

    def package_of_file(self) -> Path | None:
        """The folder of the package that the robot file lies in, which a package.xml tells; None outside of any."""
        folders = () if self.folder is None else (self.folder, *self.folder.parents)
        return next((folder for folder in folders if _package_name(folder) is not None), None)

    def _candidates(self, filename: str) -> Iterator[Path]:
        package = PACKAGE_URI.fullmatch(filename)
        if package is not None:
            name, rest = package.group(1), package.group(2)
            for folder in self._package_folders(name):
                yield folder / rest
        elif filename.startswith("file:"):
            yield from self._beside(unquote(re.sub(r"^file:(//(localhost)?)?", "", filename)))
        elif OTHER_URI.match(filename) is None:
            yield from self._beside(filename)
            if "\\" in filename:
                yield from self._beside(filename.replace("\\", "/"))

    def _beside(self, name: str) -> Iterator[Path]:
        """Path relative to the robot file; XML text has no folder, and the working directory is never guessed."""
        if self.folder is not None:
            yield self.folder / name
        elif os.path.isabs(name):
            yield Path(name)

    def _package_folders(self, name: str) -> Iterator[Path]:
        """Folders a package may be in: `package_map`, then folders above the file, then the paths of ROS and Gazebo."""
        if name in self.package_map:
            yield self.package_map[name]
            return
        if self.folder is not None:
            for ancestor in (self.folder, *self.folder.parents):
                if ancestor.name == name or _package_name(ancestor) == name:
                    yield ancestor
                elif ancestor != ancestor.parent and (ancestor / name).is_dir():
                    yield ancestor / name
        for root in _environment_paths("ROS_PACKAGE_PATH"):
            yield root if root.name == name else root / name
        for prefix in _environment_paths("AMENT_PREFIX_PATH"):
            yield prefix / "share" / name
        for root in _environment_paths("GZ_SIM_RESOURCE_PATH"):
            yield root / name


def _environment_paths(variable: str) -> list[Path]:
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]


def _package_name(folder: Path) -> str | None:
    manifest = folder / "package.xml"
    try:
        if not manifest.is_file():
            return None
        with manifest.open(encoding="utf-8", errors="replace") as stream:
            found = PACKAGE_NAME.search(stream.read(65536))
    except OSError:
        return None
    return None if found is None else found.group(1)


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except (OSError, ValueError):
        return False
