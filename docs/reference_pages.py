"""Writes the reference pages of the documentation: every public name of mbjax on the page of its topic.

Names are read from the `__init__.py` files without importing them. A name goes to the page of the folder that exports
it, unless `EXCEPTIONS` or `PREFIXES` say otherwise; a name of a folder that no page has raises an error. What the usage
pages, the README and the notebooks use most stands first.
"""

import ast
import collections
import dataclasses
import functools
import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclasses.dataclass(frozen=True)
class Topic:
    """A reference page: its title, what it is about, and the folders of mbjax whose names stand on it."""

    title: str
    about: str
    folders: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()  # whose own names stand here too, under their full names


TOPICS = {
    "model": Topic(
        "Model and plant",
        "A `MultibodyPlant` is built, `finalize()` makes a `MultibodyModel` of it, and setters return new models.",
        ("model", "plant", "joints"),
    ),
    "loading": Topic(
        "Loading and writing",
        "Models from files and to files, the robots that come with mbjax, and the errors of reading and building.",
        ("formats", "saving", "reference_models", "errors"),
    ),
    "kinematics": Topic(
        "Kinematics",
        "Poses, velocities, accelerations and Jacobians of bodies, frames and points; inverse kinematics.",
        ("kinematics", "reaching"),
    ),
    "dynamics": Topic(
        "Dynamics",
        "Equations of motion, mass matrix, energy, momentum and centre of mass, and how functions are compiled.",
        ("dynamics", "execution"),
    ),
    "forces": Topic("Forces", "Force elements, applied forces, gravity and power.", ("forces",)),
    "constraints": Topic("Constraints", "Constraints, sets of them, solvers, impulses and assembly.", ("constraints",)),
    "contact": Topic("Contact", "Contact results, and the collision geometry and materials of a model.", ("contact",)),
    "simulation": Topic(
        "Simulation",
        "State, inputs and outputs; `step`, `rollout`, `simulate`; free bodies and random states.",
        ("simulation", "inspection", "engines"),
    ),
    "trajectory_optimization": Topic(
        "Trajectory optimization",
        "Problems, goals, constraints, solvers, and linearizations along a trajectory.",
        ("trajectory_optimization",),
        ("mbjax.trajectory_optimization",),
    ),
    "controllers": Topic(
        "Controllers",
        "Efforts from a model, a state and a reference: from gravity compensation to sampling.",
        ("controllers",),
        ("mbjax.controllers",),
    ),
    "spatial": Topic("Spatial algebra", "Poses and inertias.", ("spatial",)),
    "geometry": Topic("Geometry", "Shapes, their materials, and meshes of tetrahedra.", ("geometry",)),
    "parameters": Topic(
        "Parameters",
        "Groups of leaves for optimizers, and leaves as numbers that may take any value.",
        ("parameters",),
        ("mbjax.parameters",),
    ),
    "system_identification": Topic(
        "System identification",
        "Unknown parameters, regressors, fits of logs and what they tell; `import mbjax.system_identification as si`.",
        ("system_identification",),
        ("mbjax.system_identification",),
    ),
    "environments": Topic(
        "Environments",
        "Worlds that differ, tasks, episodes, sensors, and adapters for learners.",
        ("randomization", "environments"),
        ("mbjax.environments",),
    ),
    "visualization": Topic(
        "Visualization",
        "Animations, a live view, videos and plots.",
        ("visualization",),
        ("mbjax.visualization",),
    ),
}
EXCEPTIONS = {
    "AbstractForceElement": "forces",
    "AbstractConstraint": "constraints",
    "constraint_active_status": "constraints",
    "set_constraint_active_status": "constraints",
    "friction": "contact",
    "set_friction": "contact",
    "set_penetration_allowance": "contact",
    "set_proximity_properties": "contact",
    "set_sap_near_rigid_threshold": "contact",
    "set_contact_smoothing_length": "contact",
    "set_stiction_tolerance": "contact",
    "CollisionGeometryRecord": "contact",
    "CollisionParameters": "contact",
}
PARTS = {"collision_geometry": "contact"}  # of names that the model exports
SUFFIXES = {"Constraint": "constraints"}


@functools.cache
def imports(package: str) -> tuple[tuple[str, str, str], ...]:
    """What a package or module imports by name from within mbjax: the name here, the module, the name there."""
    return tuple(imports_in(package))


def imports_in(package: str) -> Iterator[tuple[str, str, str]]:
    """The same, one by one as the file has them."""
    file = file_of(package)
    parts = package.split(".") if file.name == "__init__.py" else package.split(".")[:-1]
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) + 1 - node.level] if node.level else []
            module = ".".join([*above, *(node.module or "").split(".")]).rstrip(".")
            yield from ((alias.asname or alias.name, module, alias.name) for alias in node.names)


def file_of(module: str) -> pathlib.Path:
    """The file of a module or package of mbjax."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def definition_of(module: str, name: str) -> str:
    """The dotted path at which a name that a module exports is defined.

    A function may be called like the module beside it (`mbjax.simulation.step`), so the export alone names neither.
    """
    for here, source, there in imports(module):
        if here == name and source.split(".")[0] == "mbjax" and source != module:
            return definition_of(source, there)
    return f"{module}.{name}"


def exported(package: str) -> Iterator[tuple[str, str]]:
    """Public names of a package, each with the folder or module of mbjax it comes from."""
    for name, module, _ in imports(package):
        if not name.startswith("_") and module.split(".")[0] == "mbjax":
            yield name, [*module.split("."), name][1]


def topic_of(name: str, folder: str) -> str:
    """The page that a name stands on."""
    if name in EXCEPTIONS:
        return EXCEPTIONS[name]
    if folder == "model":
        found = [topic for part, topic in PARTS.items() if part in name]
        found += [topic for suffix, topic in SUFFIXES.items() if name.endswith(suffix)]
        if found:
            return found[0]
    for page, topic in TOPICS.items():
        if folder in topic.folders:
            return page
    raise LookupError(
        f"mbjax.{name} comes from mbjax/{folder}, which no reference page has. "
        "Give the folder to a topic in docs/reference_pages.py."
    )


def names_of_pages() -> dict[str, list[str]]:
    """Dotted names by page, in the order of the page."""
    pages: dict[str, list[str]] = {page: [] for page in TOPICS}
    at_top = dict(exported("mbjax"))
    for name, folder in at_top.items():
        pages[topic_of(name, folder)].append(f"mbjax.{name}")
    for page, topic in TOPICS.items():
        for package in topic.packages:
            pages[page] += [f"{package}.{name}" for name, _ in exported(package) if name not in at_top]
    return {page: sorted(names, key=lambda name: (-uses_of(name), name.lower())) for page, names in pages.items()}


def uses_of(name: str) -> int:
    """How many pages and notebooks use a name."""
    return words_of_pages()[name.rpartition(".")[2]]


@functools.cache
def words_of_pages() -> collections.Counter[str]:
    """By word after a dot, or imported by name, the number of usage pages and notebooks that have it."""
    files = [ROOT / "README.md", *(ROOT / "docs" / "usage").glob("*.md"), *(ROOT / "notebooks").glob("*.ipynb")]
    found: collections.Counter[str] = collections.Counter()
    for file in files:
        found.update(set(re.findall(r"(?:\.|import |, |`)([A-Za-z_]\w+)", file.read_text())))
    return found


@functools.cache
def renamed() -> dict[str, str]:
    """Names of definitions that are exported under another: `calc_position_kinematics` is `position_kinematics`."""
    found = {}
    for name in (name for names in names_of_pages().values() for name in names):
        package, _, short = name.rpartition(".")
        defined = definition_of(package, short).rpartition(".")[2]
        if defined != short:
            found[defined] = short
    return found


def text_of(page: str, names: list[str]) -> str:
    """A page in Markdown, in which each name stands for its signature and docstring."""
    topic = TOPICS[page]
    lines = [
        f"# {topic.title}",
        "",
        topic.about,
        *[f"Names are those of `{package}`." for package in topic.packages],
        "",
    ]
    for name in names:
        package, _, short = name.rpartition(".")
        lines += [f"[](){{#{name}}}", "", f"::: {definition_of(package, short)}", "    options:"]
        lines += [f'      heading: "{short}"', f'      toc_label: "{short}"', ""]
    return "\n".join(lines)


def write_pages() -> None:
    """Hands the pages to mkdocs, which may leave them in `docs/reference`; git ignores them there."""
    import mkdocs_gen_files

    for page, names in names_of_pages().items():
        with mkdocs_gen_files.open(f"reference/{page}.md", "w") as file:
            file.write(text_of(page, names))


if "mkdocs_gen_files" in sys.modules:  # run by mkdocs, not imported by a test
    write_pages()
