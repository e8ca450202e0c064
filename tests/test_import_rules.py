"""Folders import only from folders above them, and only where it is the edge may an import stand in a function."""

import ast
import pathlib

PACKAGE = pathlib.Path(__file__).parent.parent / "mbjax"
ORDER = (
    "errors",
    "array_types",
    "static_data",
    "manual_axes",
    "tangents",
    "outside_jit",
    "numpy_evaluation",
    "gpu_kernels",
    "one_kernel",
    "several_devices",
    "by_device",
    "stages",
    "transposition",
    "chunks",
    "linear_maps",
    "worlds",
    "loops",
    "spatial",
    "topology",
    "linear_algebra",
    "geometry",
    "joints",
    "model",
    "kinematics",
    "forces",
    "dynamics",
    "constraints",
    "contact",
    "simulation",
    "reference_models",
    "parsing",
    "visualization",
    "command_line",
)
EDGES = {"parsing", "visualization", "command_line", "reference_models"}


def imports(file: pathlib.Path):
    """(module, whether inside a function, line) of each import of our own."""
    tree = ast.parse(file.read_text())
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("mbjax."):
            yield (node.module or "").split(".")[1], id(node) in inside, node.lineno


def files():
    for file in sorted(PACKAGE.rglob("*.py")):
        place = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if place in ORDER:
            yield file, place


def test_folders_import_upward_only() -> None:
    wrong = [
        f"{file.relative_to(PACKAGE)}:{line} imports {target}"
        for file, place in files()
        for target, _, line in imports(file)
        if ORDER.index(target) > ORDER.index(place)
    ]
    assert not wrong


def test_imports_stand_at_the_top() -> None:
    wrong = [
        f"{file.relative_to(PACKAGE)}:{line}"
        for file, place in files()
        if place not in EDGES
        for _, in_function, line in imports(file)
        if in_function
    ]
    assert not wrong


def test_every_folder_has_a_place_in_the_order() -> None:
    folders = {p.name for p in PACKAGE.iterdir() if p.is_dir() and p.name != "__pycache__"}
    assert folders <= set(ORDER)


def test_guarded_numerics_have_one_home() -> None:
    """Raw norms and inverse sines have NaN gradients at singular points: only spatial/ may touch them."""
    wrong = []
    for file, place in files():
        if place in ("spatial", *EDGES) or file.name in ("abstract_joint.py", "finalize.py"):
            continue
        text = file.read_text()
        wrong += [
            f"{file.relative_to(PACKAGE)}: {name}"
            for name in ("jnp.linalg.norm", "jnp.arccos", "jnp.arcsin", "jnp.arctan2", "jnp.sqrt")
            if name in text
        ]
    assert not wrong
