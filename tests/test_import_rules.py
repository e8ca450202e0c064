"""Folders import only from folders before them, and only at the edges may an import stand in a function.

Every import of our own is seen: absolute or relative, at the top of a file or inside a function.
"""

import ast
import functools
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

PACKAGE = pathlib.Path(__file__).parent.parent / "mbjax"
ORDER = (
    "errors",
    "optional_packages",
    "number_rules",
    "array_types",
    "version",
    "figures",
    "progress",
    "execution",
    "spatial",
    "topology",
    "linear_algebra",
    "finite_elements",
    "geometry",
    "joints",
    "model",
    "plant",
    "parameters",
    "kinematics",
    "forces",
    "dynamics",
    "constraints",
    "contact",
    "simulation",
    "inspection",
    "engines",
    "randomization",
    "environments",
    "trajectory_optimization",
    "reaching",
    "controllers",
    "system_identification",
    "saving",
    "reference_models",
    "formats",
    "learners",
    "visualization",
    "command_line",
)
EDGES = {"formats", "saving", "visualization", "command_line", "reference_models"}
# Optional parts that are imported where they are needed: Pallas, and what prints a table with rich.
LATE_IMPORTS = {("execution/recursion/tree_scan.py", "execution"), ("model/multibody_model.py", "model")}
# A model prints itself by a module that needs models, and rich.
LATE_CIRCLES = {("model.multibody_model", "model.model_table")}
FOLDERS_OF_EXECUTION = "calls", "targets", "linear", "worlds", "recursion"
PUBLIC_MODULES_OF_EXECUTION = {f"execution.{x}" for x in ("arrays", "recursions", "derivative_rules", "gpu_blocks")}
TOP_LEVEL = {"__init__", "__main__"}  # these may import everything


class Import(NamedTuple):
    """An import of something of ours: the dotted path within mbjax, and where it stands."""

    file: pathlib.Path
    line: int
    target: str  # "" is the package itself
    in_function: bool
    for_types: bool  # under TYPE_CHECKING: never run

    @property
    def place(self) -> str:
        """The folder or top-level module that imports."""
        return self.file.relative_to(PACKAGE).parts[0].removesuffix(".py")

    @property
    def folder(self) -> str:
        """The folder or top-level module that is imported."""
        return self.target.split(".")[0]

    def __str__(self) -> str:
        return f"{self.file.relative_to(PACKAGE)}:{self.line} imports mbjax.{self.target}"


def imports(file: pathlib.Path) -> Iterator[Import]:
    """All imports of our own in a file."""
    tree = ast.parse(file.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for node in ast.walk(function)
    }
    inside_checks = {
        id(node)
        for check in ast.walk(tree)
        if isinstance(check, ast.If) and isinstance(check.test, ast.Name) and check.test.id == "TYPE_CHECKING"
        for node in ast.walk(check)
    }
    here = ("mbjax", *file.relative_to(PACKAGE).parts[:-1])
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else ()
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from . import x` names a module, or what a package exports
            modules = [f"{module}.{alias.name}" for alias in node.names] if module == "mbjax" else [module]
        else:
            continue
        for module in modules:
            if module == "mbjax" or module.startswith("mbjax."):
                target = module.removeprefix("mbjax").lstrip(".")
                yield Import(file, node.lineno, target, id(node) in inside, id(node) in inside_checks)


@functools.cache
def all_imports() -> list[Import]:
    return [x for file in sorted(PACKAGE.rglob("*.py")) for x in imports(file)]


def of_folders() -> list[Import]:
    return [x for x in all_imports() if x.place not in TOP_LEVEL]


def test_every_folder_and_file_has_a_place_in_the_order() -> None:
    folders = {p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    modules = {p.stem for p in PACKAGE.glob("*.py")} - TOP_LEVEL
    assert folders | modules == set(ORDER)


def test_folders_import_upward_only() -> None:
    assert not [
        str(x)
        for x in of_folders()
        if not (x.target == "" and x.place == "command_line")  # which uses what users use
        and (x.folder not in ORDER or ORDER.index(x.folder) > ORDER.index(x.place))
    ]


def test_imports_stand_at_the_top() -> None:
    late = [x for x in of_folders() if x.in_function and x.place not in EDGES]
    allowed = {(str(x.file.relative_to(PACKAGE)), x.folder) for x in late} & LATE_IMPORTS
    assert allowed == LATE_IMPORTS, "an exception that is no longer needed"
    assert not [str(x) for x in late if (str(x.file.relative_to(PACKAGE)), x.folder) not in LATE_IMPORTS]


def test_execution_is_imported_by_its_public_names_only() -> None:
    deeper = [x for x in of_folders() if x.place != "execution" and x.target.startswith("execution.")]
    assert not [str(x) for x in deeper if x.target not in PUBLIC_MODULES_OF_EXECUTION]


def test_folders_of_execution_import_upward_only() -> None:
    within = PACKAGE / "execution"
    assert {p.name for p in within.iterdir() if p.is_dir()} - {"__pycache__"} == set(FOLDERS_OF_EXECUTION)
    inner = [x for x in of_folders() if within in x.file.parent.parents and x.target.startswith("execution")]
    assert inner
    place = FOLDERS_OF_EXECUTION.index
    assert not [str(x) for x in inner if place(x.target.split(".")[1]) > place(x.file.parent.name)]


def test_only_the_edges_import_the_plant() -> None:
    assert not [str(x) for x in of_folders() if x.folder == "plant" and x.place not in EDGES | {"plant"}]


def test_no_files_import_each_other_in_a_circle() -> None:
    """No module imports, directly or through others, one that imports it, be it for types alone.

    Imports within functions count too, but for those of `LATE_CIRCLES`.
    """
    modules = {".".join(file.relative_to(PACKAGE).with_suffix("").parts): file for file in PACKAGE.rglob("*.py")}
    edges: dict[str, set[str]] = {name: set() for name in modules}
    for x in of_folders():
        own = ".".join(x.file.relative_to(PACKAGE).with_suffix("").parts)
        is_late = x.in_function and (own, x.target) in LATE_CIRCLES
        if x.target in modules and not own.endswith("__init__") and not is_late:
            edges[own].add(x.target)
    finished: set[str] = set()

    def circle(name: str, path: tuple[str, ...]) -> tuple[str, ...] | None:
        if name in path:
            return (*path[path.index(name) :], name)
        if name in finished:
            return None
        for other in sorted(edges[name]):
            found = circle(other, (*path, name))
            if found:
                return found
        finished.add(name)
        return None

    assert not [found for name in sorted(modules) if (found := circle(name, ()))]


def test_guarded_numerics_have_one_home() -> None:
    """Raw norms and inverse sines have NaN gradients at singular points: only spatial/ may touch them."""
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).parts[0]
        if place in ("spatial", *EDGES) or file.name in ("abstract_joint.py", "finalize.py"):
            continue
        text = file.read_text()
        wrong += [
            f"{file.relative_to(PACKAGE)}: {name}"
            for name in ("jnp.linalg.norm", "jnp.arccos", "jnp.arcsin", "jnp.arctan2", "jnp.sqrt")
            if name in text
        ]
    assert not wrong
