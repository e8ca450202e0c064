"""Robots by name: those that come with mbjax, and those of packages that are installed. Nothing is downloaded.

robot_descriptions downloads a robot when its module is imported, so its modules are read here, not imported.
"""

import ast
import importlib.metadata
import importlib.util
import os
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from mbjax.model.html_text import html_table
from mbjax.model.whole_table import Column, WholeTable, printed

from .bundled import REFERENCE_MODELS
from .bundled import path as bundled

BUNDLED, EXAMPLES, DESCRIPTIONS, MENAGERIE = "mbjax", "example-robot-data", "robot_descriptions", "MuJoCo Menagerie"
CACHE_VARIABLE, CACHE = "ROBOT_DESCRIPTIONS_CACHE", "~/.cache/robot_descriptions"
NEAR = 5
HOW_TO_INSTALL = (
    "Robots by name come with example-robot-data (pip install example-robot-data), robot_descriptions (pip install "
    "robot_descriptions) and MuJoCo Playground (pip install playground)"
)


class Robot(NamedTuple):
    """A robot by name: where it is from, and its file, which may be one that its package has yet to download."""

    name: str
    source: str
    path: Path

    @property
    def is_there(self) -> bool:
        return self.path.is_file()


class Robots(tuple[Robot, ...]):
    """Robots that `load` finds by name; it prints as a table, and is a tuple of (name, source, path)."""

    __slots__ = ()

    def table(self) -> WholeTable:
        """Names, sources and formats."""
        columns = [
            Column("robot", [robot.name for robot in self], is_text=True),
            Column("from", [robot.source for robot in self], is_text=True, once=True),
            Column("format", ["MJCF" if robot.path.suffix == ".xml" else "URDF" for robot in self]),
        ]
        return WholeTable("robots at hand: mbjax.load(name)", columns)

    @property
    def more(self) -> str:
        """What brings more robots; empty where packages with robots are installed."""
        return "" if any(robot.source != BUNDLED for robot in self) else f"{HOW_TO_INSTALL}."

    def __str__(self) -> str:
        return f"{printed(self.table())}\n\n{self.more}".rstrip()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_table(self.table().title, self.table().columns, [self.more])


def robots() -> Robots:
    """Robots that `mbjax.load(name)` finds: its own, and those of the packages that are installed.

    The packages are example-robot-data, robot_descriptions (what it has downloaded) and MuJoCo Playground's copy of the
    Menagerie. A name that several have is that of the first; `source/name`, as in `robot_descriptions/panda`, is exact.
    """
    taken: set[str] = set()
    found = []
    for robot in known_robots():
        if robot.is_there:
            name = robot.name if robot.name not in taken else f"{robot.source.replace(' ', '_')}/{robot.name}"
            if name not in taken:
                found.append(robot._replace(name=name))
            taken.add(name)
    return Robots(found)


def find_robot(name: str) -> Path | None:
    """The file of a robot by name; None if no package that is installed has it here."""
    return next((robot.path for robot in robots() if robot.name == name), None)


def no_robot(name: str) -> str:
    """Why there is no robot of this name, and the nearest names."""
    waiting = next((robot for robot in known_robots() if robot.name == name and not robot.is_there), None)
    if waiting is not None:
        return (
            f"robot_descriptions knows '{name}' and has not downloaded it, nor does mbjax: "
            f'python -c "import robot_descriptions.{module_of(waiting.name)}" does.'
        )
    found = robots()
    names = [robot.name for robot in found]
    near = get_close_matches(name, names, n=1, cutoff=0.6) or [other for other in names if name in other][:NEAR]
    guess = f"Did you mean {' or '.join(repr(other) for other in near)}? " if near else ""
    others = list(dict.fromkeys(robot.source for robot in found if robot.source != BUNDLED))
    among = f", and none among the {len(names)} robots of {', '.join(others)}" if others else ""
    more = "mbjax.robots() lists them." if others else f"{HOW_TO_INSTALL}."
    return f"no bundled model of that name ({', '.join(REFERENCE_MODELS)}){among}. {guess}{more}"


def known_robots() -> Iterator[Robot]:
    """All robots of all sources, in the order in which a name is theirs."""
    yield from (Robot(name, BUNDLED, bundled(name)) for name in REFERENCE_MODELS)
    yield from of_example_robot_data()
    yield from of_robot_descriptions()
    yield from of_menagerie()


def of_example_robot_data() -> Iterator[Robot]:
    """The URDF files of the wheel example-robot-data, by the names of the files."""
    try:
        distribution = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return
    for file in sorted(distribution.files or (), key=lambda file: (file.stem, str(file))):
        if file.suffix == ".urdf" and "example-robot-data" in file.parts:
            yield Robot(file.stem, EXAMPLES, Path(str(distribution.locate_file(file))))


def of_menagerie() -> Iterator[Robot]:
    """The models of the Menagerie, where MuJoCo Playground or robot_descriptions keeps a copy.

    A model is named by its folder, its other files as `folder/file`.
    """
    playground = importlib.util.find_spec("mujoco_playground")
    if playground is None or not playground.submodule_search_locations:
        return
    for place in playground.submodule_search_locations:
        for folder in sorted((Path(place) / "external_deps" / "mujoco_menagerie").glob("*/")):
            files = sorted(folder.glob("*.xml"))
            main = min(files, key=lambda file: (not folder.name.endswith(file.stem), len(file.stem)), default=None)
            for file in files:
                yield Robot(folder.name if file == main else f"{folder.name}/{file.stem}", MENAGERIE, file)


def of_robot_descriptions() -> Iterator[Robot]:
    """The robots of robot_descriptions, at the places in its cache that its modules name."""
    found = importlib.util.find_spec("robot_descriptions")
    if found is None or not found.submodule_search_locations:
        return
    for place in found.submodule_search_locations:
        folders = cache_folders(Path(place) / "_repositories.py")
        for module in sorted(Path(place).glob("*_description.py")):
            path = path_in_module(module, folders)
            if path is not None and not module.stem.startswith("_"):
                yield Robot(module.stem.removesuffix("_description"), DESCRIPTIONS, path)


def module_of(name: str) -> str:
    """The module of robot_descriptions that describes a robot."""
    return f"{name}_description"


def cache_folders(file: Path) -> dict[str, str]:
    """Folders of the cache by repository, from the calls `"name": Repository(cache_path=…)` of the file."""
    folders: dict[str, str] = {}
    cache = os.path.expanduser(os.environ.get(CACHE_VARIABLE, CACHE))
    for node in ast.walk(parsed(file)):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(value, ast.Call):
                    names = {word.arg: getattr(word.value, "value", None) for word in value.keywords}
                    folders[str(key.value)] = os.path.join(cache, str(names.get("cache_path")))
    return folders


def path_in_module(module: Path, folders: dict[str, str]) -> Path | None:
    """`URDF_PATH` or `MJCF_PATH` of a module of robot_descriptions, whose statements join names and words."""
    values: dict[str, str | None] = {}
    for node in parsed(module).body:
        target = node.target if isinstance(node, ast.AnnAssign) else None
        target = node.targets[0] if isinstance(node, ast.Assign) else target
        if isinstance(target, ast.Name) and isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            values[target.id] = text_of(node.value, values, folders)
    found = values.get("MJCF_PATH") if "_mj_" in module.stem else values.get("URDF_PATH") or values.get("MJCF_PATH")
    return Path(found) if found else None


def text_of(node: ast.expr, values: dict[str, str | None], folders: dict[str, str]) -> str | None:
    """The text that an expression gives: a word, a name, a join, or a repository's folder; None for any other."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return values.get(node.id)
    if isinstance(node, ast.Call) and node.args:
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        parts = [text_of(argument, values, folders) for argument in node.args]
        if function.endswith("clone_to_cache"):
            return folders.get(parts[0] or "")
        if function == "join" and None not in parts:
            return os.path.join(*[part for part in parts if part is not None])
    return None


def parsed(file: Path) -> ast.Module:
    """The statements of a Python file; none if it cannot be read."""
    try:
        return ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ast.Module([], [])
