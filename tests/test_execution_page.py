"""The page on execution names what exists: files, functions and settings in backticks."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "development" / "execution.md"
FOLDERS = "mbjax", "tests", "benchmarks"


def test_names_on_the_page_exist() -> None:
    """A file by the end of its path; of anything else, the last name stands somewhere in the code."""
    files = {path: path.read_text() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    paths, code = [path.as_posix() for path in files], "\n".join(files.values())
    words, text = set(re.findall(r"\w+", code)), re.sub(r"```.*?```", "", PAGE.read_text(), flags=re.DOTALL)
    gone = []
    for name in sorted(set(re.findall(r"`([A-Za-z_][^`]*)`", text))):
        if name.endswith(".py"):
            known = any(path.endswith(f"/{name}") for path in paths)
        elif name.endswith("/"):
            known = any(f"/{name}" in path for path in paths)
        else:
            known = re.split(r"[(=]", name)[0].split(".")[-1] in words
        if not known:
            gone.append(name)
    assert not gone, f"{PAGE.name} names what is not there"


def test_the_figure_names_modules_that_exist() -> None:
    """Each folder of the figure has the modules that stand in its line."""
    lines = re.findall(r"│ (\w+)/ (.*?)│$", PAGE.read_text(), re.MULTILINE)
    assert len(lines) == 5
    modules = {path.stem for path in (ROOT / "mbjax" / "execution").rglob("*.py")}
    for folder, text in lines:
        assert (ROOT / "mbjax" / "execution" / folder).is_dir()
        named = {x for x in re.findall(r"[a-z]+(?:_[a-z]+)+", text)}
        assert named <= modules, named - modules


def test_names_stand_in_the_files_that_are_said() -> None:
    """Where the page says (`name` in `file.py`), a file of that name has it."""
    pairs = re.findall(r"`(\w+)` in\s+`([\w/]+\.py)`", PAGE.read_text())
    assert pairs
    for name, file in pairs:
        texts = [path.read_text() for folder in FOLDERS for path in (ROOT / folder).rglob(file.split("/")[-1])]
        assert any(re.search(rf"\b{name}\b", text) for text in texts), f"{name} is not in {file}"


def test_every_file_that_chooses_by_the_target_stands_in_a_table() -> None:
    """Outside of `execution/`: those that call one of the functions which ask what the code traced now becomes."""
    asking = {"by_device", "in_kernels", "on_cpu", "on_gpu", "traced_for"}
    section = PAGE.read_text().split("## What runs where")[1].split("\n## ")[0]
    rows = "\n".join(line for line in section.splitlines() if line.startswith("|"))
    missing, package = [], ROOT / "mbjax"
    for path in sorted(package.rglob("*.py")):
        if package / "execution" in path.parents:
            continue
        calls = (node.func for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
        if asking & {call.id for call in calls if isinstance(call, ast.Name)}:
            ends = {"/".join(path.parts[-k:]) for k in (1, 2, 3)}
            shared = len(list(package.rglob(path.name))) > 1  # a name that stands for several files needs its folder
            ends -= {path.name} if shared else set()
            if not any(f"`{end}`" in rows for end in ends):
                missing.append(path.relative_to(package).as_posix())
    assert not missing, f"{PAGE.name} has no row for them"
