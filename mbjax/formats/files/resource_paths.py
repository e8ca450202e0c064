"""Finds mesh files by package://, model://, file://, relative and absolute names."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import unquote

from .reading_policy import ReadableFolders, package_name

PACKAGE_URI = re.compile(r"(?:package|model):/{2,}([^/]+)/?(.*)", re.DOTALL)
OTHER_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


class ResourceFinder:
    """Resolves file names of one robot file; `missing` holds the paths tried for files that were not found.

    `readable` is what all files of one load may read; packages that are named are added to it.
    """

    def __init__(
        self,
        folder: Path | None,
        package_map: Mapping[str, str | os.PathLike],
        readable: ReadableFolders | None = None,
    ):
        self.folder = folder
        self.package_map = {name: Path(path).expanduser() for name, path in package_map.items()}
        self.readable = ReadableFolders(folder, package_map.values()) if readable is None else readable
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
        for folder, is_named in self._package_folders(name):
            if folder.is_dir():
                self.readable.add_package(folder, is_named=is_named)
                return Path(os.path.abspath(folder))
        return None

    def _candidates(self, filename: str) -> Iterator[Path]:
        package = PACKAGE_URI.fullmatch(filename)
        if package is not None:
            name, rest = package.group(1), package.group(2)
            for folder, is_named in self._package_folders(name):
                self.readable.add_package(folder, is_named=is_named)
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

    def _package_folders(self, name: str) -> Iterator[tuple[Path, bool]]:
        """Folders a package may be in, and whether the user has named them.

        They are those of `package_map`, then those above the file, then the paths of ROS and Gazebo.
        """
        if name in self.package_map:
            yield self.package_map[name], True
            return
        if self.folder is not None:
            for ancestor in (self.folder, *self.folder.parents):
                if ancestor.name == name or package_name(ancestor) == name:
                    yield ancestor, False
                elif ancestor != ancestor.parent and (ancestor / name).is_dir():
                    yield ancestor / name, False
        for root in _environment_paths("ROS_PACKAGE_PATH"):
            yield (root if root.name == name else root / name), True
        for prefix in _environment_paths("AMENT_PREFIX_PATH"):
            yield prefix / "share" / name, True
        for root in _environment_paths("GZ_SIM_RESOURCE_PATH"):
            yield root / name, True


def _environment_paths(variable: str) -> list[Path]:
    return [Path(part) for part in os.environ.get(variable, "").split(os.pathsep) if part]


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except (OSError, ValueError):
        return False


def words_for_tried(tried: Sequence[str]) -> str:
    """Where a file was looked for, in words."""
    return f"tried: {', '.join(tried)}" if tried else "there was no folder to look in"
