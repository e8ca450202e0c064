"""A name means one thing: no function, class or constant of one physics folder has the name of another folder's."""

import ast
import collections
import pathlib

PACKAGE = pathlib.Path(__file__).parent.parent / "mbjax"
FOLDERS = (
    "spatial",
    "topology",
    "linear_algebra",
    "geometry",
    "joints",
    "kinematics",
    "forces",
    "dynamics",
    "constraints",
    "contact",
    "simulation",
)
# Names that still stand in two folders; the list may only become shorter.
TWICE = {"AbstractInertia", "Vector3", "WithRespectTo", "re_express", "solve_factored"}


def names_of(file: pathlib.Path) -> set[str]:
    """Names that a file defines at its top level."""
    found = set()
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return found


def test_no_name_stands_in_two_physics_folders() -> None:
    folders: dict[str, set[str]] = collections.defaultdict(set)
    for folder in FOLDERS:
        for file in sorted((PACKAGE / folder).rglob("*.py")):
            for name in names_of(file) - {"__all__"}:
                folders[name].add(folder)
    twice = {name: sorted(where) for name, where in folders.items() if len(where) > 1}
    assert not {name: where for name, where in twice.items() if name not in TWICE}, "give one of the two another name"
    assert twice.keys() >= TWICE, f"no longer in two folders, take them off the list: {TWICE - twice.keys()}"
