"""Every notebook runs in its short mode (in the trimmed run one of them), and is committed without outputs."""

import os
import pathlib
import runpy

import jax
import nbformat
import pytest

FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
STANDS_FOR_ALL = "coming_from_drake"
TOOL = runpy.run_path(str(FOLDER / "run.py"))


def marked(path: pathlib.Path):
    left_out = pytest.mark.whole_run(f"nothing of its own: only {STANDS_FOR_ALL} runs in the trimmed run")
    return pytest.param(path, id=path.stem, marks=[] if path.stem == STANDS_FOR_ALL else [left_out])


@pytest.mark.parametrize("path", [marked(path) for path in NOTEBOOKS])
def test_cells_run(path, monkeypatch) -> None:
    monkeypatch.setenv("MBJAX_SHORT", "1")
    names: dict = {}
    with jax.numpy_dtype_promotion("standard"), jax.enable_x64(True):
        for number, cell in enumerate(nbformat.read(path, as_version=4).cells):
            if cell.cell_type == "code":
                exec(compile(cell.source, f"{path.name}, cell {number}", "exec"), names)


@pytest.mark.whole_run("cells run without a kernel")
def test_a_kernel_runs_a_notebook(monkeypatch) -> None:
    """What a cell ends with is shown: the animation, in place."""
    monkeypatch.setenv("MBJAX_SHORT", "1")
    monkeypatch.setenv("PYTHONPATH", f"{FOLDER.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    done = TOOL["execute"](nbformat.read(FOLDER / f"{STANDS_FOR_ALL}.ipynb", as_version=4))
    shown = [output.data for cell in done.cells for output in cell.get("outputs", ()) if output.output_type != "stream"]
    assert any("iframe" in data.get("text/html", "") for data in shown)
    TOOL["strip"](done)
    assert not any(cell.get("outputs") for cell in done.cells)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stripped(path) -> None:
    notebook = nbformat.read(path, as_version=4)
    text = path.read_text()
    stripped = nbformat.writes(TOOL["strip"](notebook))
    assert text.rstrip() == stripped.rstrip(), f"run: python notebooks/run.py --strip {path.name}"
