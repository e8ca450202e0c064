"""Every notebook runs in its short mode (in the trimmed run one of them), and is committed without outputs."""

import html
import json
import os
import pathlib
import runpy

import jax
import jax.numpy as jnp
import nbformat
import pytest

import mbjax

FOLDER = pathlib.Path(__file__).parent.parent / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
STANDS_FOR_ALL = "coming_from_drake"
TOOL = runpy.run_path(str(FOLDER / "run.py"))
GALLERY = runpy.run_path(str(FOLDER.parent / "docs" / "gallery.py"))


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


RECORDED = sorted((FOLDER / "outputs").glob("*.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_outputs_are_of_this_code(path) -> None:
    notebook = nbformat.read(FOLDER / f"{path.stem}.ipynb", as_version=4)
    record = json.loads(path.read_text())
    command = f"python notebooks/run.py --record notebooks/{path.stem}.ipynb"
    assert record["code"] == TOOL["mark_of"](notebook), f"run: {command}"
    assert all(notebook.cells[int(number)].cell_type == "code" for number in record["cells"])
    assert path.stat().st_size < 1_500_000


def test_outputs_are_recorded_by_kind() -> None:
    """Texts that follow one another become one; an animation is kept without the viewer; stderr is left out."""
    model = mbjax.load("pendulum", time_step=0.1)
    state = mbjax.State(jnp.zeros((3, 1)), jnp.zeros((3, 1)), 0.1 * jnp.arange(3.0))
    motion = mbjax.show(model, state)._repr_html_()
    outputs = [
        nbformat.v4.new_output("stream", name="stdout", text="one\n"),
        nbformat.v4.new_output("stream", name="stderr", text="a warning\n"),
        nbformat.v4.new_output("stream", name="stdout", text="two\n"),
        nbformat.v4.new_output("display_data", {"image/png": "iVBO\nRw==", "text/plain": "<Figure>"}),
        nbformat.v4.new_output("execute_result", {"text/html": motion, "text/plain": "Animation()"}, execution_count=1),
        nbformat.v4.new_output("execute_result", {"text/plain": "(7,)"}, execution_count=1),
    ]
    text, picture, played, last = TOOL["outputs_of"](nbformat.v4.new_code_cell("", outputs=outputs))
    assert (text, picture, last) == ({"text": "one\ntwo\n"}, {"png": "iVBORw=="}, {"text": "(7,)\n"})
    assert played["height"] == "520"
    assert len(json.dumps(played)) < 20_000
    page = GALLERY["animation"](played, "pendulum")
    assert page == html.unescape(motion.split('srcdoc="')[1].split('" sandbox')[0]), "what `save` writes"


def test_the_gallery_has_every_notebook_and_pages_show_outputs() -> None:
    named = [name for names in GALLERY["GROUPS"].values() for name in names]
    assert sorted(named) == [path.stem for path in NOTEBOOKS]
    navigation = (FOLDER.parent / "mkdocs.yml").read_text()
    for path in NOTEBOOKS:
        assert f"notebooks/{path.stem}.md" in navigation
        files = GALLERY["notebook_page"](path)
        text = files[f"{path.stem}.md"].decode()
        assert all(f"{name}" in text for name in files if not name.endswith(".md"))
        assert ("without its outputs" in text) == (not (FOLDER / "outputs" / f"{path.stem}.json").exists())
    landing = GALLERY["landing_page"](FOLDER.parent / "README.md", pathlib.Path.read_text)["index.md"].decode()
    assert all(f'href="notebooks/{name}/"' in landing for name in named)
