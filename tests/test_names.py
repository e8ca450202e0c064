"""A name of a function, class or constant means one thing in all of the physics."""

import ast
import collections
import pathlib

PACKAGE = pathlib.Path(__file__).parent.parent / "mbjax"
PHYSICS = (
    "spatial", "topology", "linear_algebra", "finite_elements", "geometry", "joints", "model", "plant", "kinematics",
    "forces", "dynamics", "constraints", "contact", "simulation", "engines",
)  # fmt: skip
NUMBERS = ("parameters", "system_identification")
# `mbjax.parameters.physical` is a group of leaves, `mbjax.system_identification.physical` a space: both are public.
PUBLIC_TWICE = {"physical"}


def names_at_top(file: pathlib.Path) -> set[str]:
    """Functions, classes and constants that a file defines at its top level, but private ones."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {name for name in found if not name.startswith("_")}


def defined_in_several(rooms: tuple[str, ...]) -> dict[str, list[str]]:
    """Names that files of two rooms or more define, with these files."""
    files: dict[str, list[pathlib.Path]] = collections.defaultdict(list)
    for room in rooms:
        for file in sorted((PACKAGE / room).rglob("*.py")):
            for name in names_at_top(file):
                files[name].append(file.relative_to(PACKAGE))
    return {
        name: [str(file) for file in places]
        for name, places in files.items()
        if len({file.parts[0] for file in places}) > 1
    }


def test_no_name_is_defined_in_two_rooms_of_physics() -> None:
    assert not defined_in_several(PHYSICS)


def test_no_name_of_numbers_means_two_things() -> None:
    assert set(defined_in_several(NUMBERS)) == PUBLIC_TWICE
