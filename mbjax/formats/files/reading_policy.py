"""What reading a robot file may do, the same for every format: which files it may read, how much it may make, how long.

A robot file is data from anyone. It may name other files, count parts, and xacro's expressions are evaluated. All
readers ask here; `docs/usage/untrusted_files.md` says it to users. Only the standard library is imported, since the
process that expands xacro reads this file by itself.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path

# How much a file may hold, or make
MAX_BYTES = 64 * 1024**2  # of a file of XML
MAX_YAML_BYTES = 4 * 1024**2
MAX_ELEMENTS = 500_000  # XML elements, also of what xacro expands to
MAX_DEPTH = 100  # of XML elements inside one another
MAX_ATTRIBUTE_LENGTH = 100_000  # characters
MAX_YAML_VALUES = 100_000
MAX_YAML_DEPTH = 50
MAX_FILES = 1000  # robot files that one file reads, directly or through others
MAX_FILES_INSIDE = 30  # files that name one another in a chain
MAX_MADE = 20_000  # elements of an MJCF file once copies are made by <replicate>, <attach>, <composite> and <flexcomp>
MAX_CELLS = 20_000_000  # of a texture or a heightfield
MAX_KEYFRAMES = 1000
MAX_USER_NUMBERS = 1000  # of each body, joint, geom …, and of a sensor
MAX_TETRAHEDRA = 2_000_000  # of all deformable bodies of a file
MAX_MESH_PARAMETER = 250  # resolution of a mesh that MuJoCo makes

# How long the process may take that expands xacro, and how much memory
SECONDS = 60.0
MEMORY = 2 * 1024**3

MANIFESTS = ("package.xml", "model.config")
PACKAGE_NAME = re.compile(r"<name>\s*([^<\s]+)\s*</name>")


class ReadableFolders:
    """Folders whose robot files one robot file may name: all files of a folder and below.

    These are the folder of the file that is loaded, or the ROS package that it lies in; the folders of `package_map`;
    and packages that files name by `package://`, `model://` or `$(find …)`: those on the search paths of ROS and
    Gazebo, others where they have a package.xml or model.config. Links that lead out of a folder are followed only in
    folders that the user has named: those of `package_map` and of the search paths.
    """

    def __init__(self, folder: Path | None, package_map: Iterable[str | os.PathLike] = ()):
        self.named = [os.path.abspath(os.path.expanduser(path)) for path in package_map]
        self.found = [] if folder is None else [os.path.realpath(package_around(folder) or folder)]

    def add_package(self, folder: Path, *, is_named: bool) -> None:
        """Adds a package that a file names; `is_named` says that the user named its folder, by a search path."""
        if is_named:
            self.named.append(os.path.abspath(folder))
        elif any((folder / manifest).is_file() for manifest in MANIFESTS):
            self.found.append(os.path.realpath(folder))

    def allows(self, path: str | os.PathLike) -> bool:
        """Whether a file may be read."""
        real = os.path.realpath(path)
        in_named = any(is_below(os.path.abspath(path), folder) for folder in self.named)
        return in_named or any(is_below(real, folder) for folder in (*self.found, *map(os.path.realpath, self.named)))

    def refusal(self, path: str | os.PathLike) -> str:
        """Why a file is not read, and the way out."""
        where = f"the model's folder '{self.found[0]}'" if self.found else "the folders of package_map"
        return (
            f"'{os.path.abspath(path)}' lies outside of {where} and of packages, so it is not read. Move it there, or "
            'name its folder: package_map={"name": "folder"}.'
        )


def is_below(path: str, folder: str) -> bool:
    """Whether an absolute path is a folder or lies below it."""
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)


def package_around(folder: Path) -> Path | None:
    """The folder of the ROS package that a folder lies in, which a package.xml tells; None outside of any."""
    return next((each for each in (folder, *folder.parents) if package_name(each) is not None), None)


def package_name(folder: Path) -> str | None:
    """The name in a folder's package.xml; None without one."""
    manifest = folder / "package.xml"
    try:
        if not manifest.is_file():
            return None
        with manifest.open(encoding="utf-8", errors="replace") as stream:
            found = PACKAGE_NAME.search(stream.read(65536))
    except OSError:
        return None
    return None if found is None else found.group(1)
