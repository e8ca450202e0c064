"""The page on execution names what exists: files, functions and settings in backticks."""

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
