"""Runs notebooks, and strips what they printed: `python notebooks/run.py [--short] [--record] [NOTEBOOK …]`.

`--short` sets MBJAX_SHORT=1, with which every notebook takes fewer steps, and lets XLA compile without optimization, in
half the time, unless XLA_FLAGS says otherwise. Without names all notebooks beside this file are run. Afterwards their
outputs, counts and ids of execution are removed, so that a commit shows changes of text only; `--strip` does only that,
and `--keep-outputs` nothing of it. `--record` keeps what the site shows of the outputs in `outputs/`, small: texts,
pictures, and of animations the motion without the viewer. A test fails where a notebook's code is not what was kept.
Needs nbformat and nbclient, from `pip install "mbjax[test]"`.
"""

import argparse
import hashlib
import html
import json
import os
import pathlib
import re
import sys
import time

import nbformat

FOLDER = pathlib.Path(__file__).parent


def strip(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Removes outputs, counts and what an editor left; cells are numbered, so that their ids stay."""
    for number, cell in enumerate(notebook.cells):
        cell.id = f"cell-{number}"
        cell.metadata = nbformat.NotebookNode()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({"kernelspec": kernel, "language_info": {"name": "python"}})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def execute(notebook: nbformat.NotebookNode, folder: pathlib.Path = FOLDER) -> nbformat.NotebookNode:
    """Runs every cell in a kernel of its own; raises `nbclient.exceptions.CellExecutionError` with the cell's error."""
    from nbclient import NotebookClient

    client = NotebookClient(
        notebook, timeout=1800, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    return client.execute()


def mark_of(notebook: nbformat.NotebookNode) -> str:
    """A hash of the notebook's code, which says whether recorded outputs are of this code."""
    code = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    return hashlib.sha256(json.dumps(code).encode()).hexdigest()


def record(notebook: nbformat.NotebookNode, path: pathlib.Path) -> None:
    """Writes what the site shows of the outputs: by the number of the cell, texts, pictures and motions."""
    cells = {str(number): shown for number, cell in enumerate(notebook.cells) if (shown := outputs_of(cell))}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"code": mark_of(notebook), "cells": cells}, indent=0, ensure_ascii=False) + "\n")


def outputs_of(cell: nbformat.NotebookNode) -> list[dict[str, str]]:
    """The outputs of a cell that are shown; warnings and progress on stderr are not."""
    shown: list[dict[str, str]] = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if output.output_type == "stream" and output.name == "stdout":
            if shown and "text" in shown[-1]:
                shown[-1]["text"] += output.text
            else:
                shown.append({"text": output.text})
        elif "mbjax animation" in data.get("text/html", ""):
            shown.append(motion_of(html.unescape(data["text/html"])))
        elif "image/png" in data:
            shown.append({"png": "".join(data["image/png"].split())})
        elif "text/html" in data:
            shown.append({"html": data["text/html"]})
        elif "text/plain" in data:
            shown.append({"text": data["text/plain"] + "\n"})
    return shown


def motion_of(page: str) -> dict[str, str]:
    """What an animated page holds besides the viewer."""
    found = {name: re.search(rf'id="mbjax-{name}">(.*?)</script>', page, re.DOTALL) for name in ("data", "arrays")}
    heights = re.findall(r"height: (\d+)px", page)  # the last one is of the frame around the page
    assert heights, "not a page in a frame"
    assert all(found.values()), "not a page of mbjax"
    return {"height": heights[-1], **{name: match[1] for name, match in found.items() if match}}


def main() -> int:
    """Runs and strips the notebooks that are named; returns 0, as errors are raised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", nargs="*", type=pathlib.Path, default=sorted(FOLDER.glob("*.ipynb")))
    parser.add_argument("--short", action="store_true", help="fewer steps")
    parser.add_argument("--strip", action="store_true", help="only remove outputs")
    parser.add_argument("--record", action="store_true", help="keep what the site shows of the outputs in outputs/")
    parser.add_argument("--keep-outputs", action="store_true", help="leave what the cells printed in the file")
    options = parser.parse_args()
    os.environ["MBJAX_PROGRESS"] = "0"  # kernels inherit this
    if options.short:
        sys.path.insert(0, str(FOLDER.parent))
        from tests.xla_options import FAST_TO_COMPILE

        flags = " ".join(f"--{name}={str(value).lower()}" for name, value in FAST_TO_COMPILE.items())
        os.environ["MBJAX_SHORT"] = "1"  # kernels inherit these
        os.environ.setdefault("XLA_FLAGS", flags)
    for path in options.notebook:
        notebook = nbformat.read(path, as_version=4)
        if not options.strip:
            start = time.perf_counter()
            execute(notebook, path.parent)
            if options.record:
                record(notebook, path.parent / "outputs" / f"{path.stem}.json")
            print(f"{path.name}: {time.perf_counter() - start:.1f} s")
        nbformat.write(notebook if options.keep_outputs else strip(notebook), path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
