"""Runs notebooks, and strips what they printed: `python notebooks/run.py [--short] [--keep-outputs] [NOTEBOOK …]`.

`--short` sets MBJAX_SHORT=1, with which every notebook takes fewer steps, and lets XLA compile without optimization, in
half the time, unless XLA_FLAGS says otherwise. Without names all notebooks beside this file are run. Afterwards their
outputs, counts and ids of execution are removed, so that a commit shows changes of text only; `--strip` does only that.
Needs nbformat and nbclient, from `pip install "mbjax[test]"`.
"""

import argparse
import os
import pathlib
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

    client = NotebookClient(notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": str(folder)}})
    return client.execute()


def main() -> int:
    """Runs and strips the notebooks that are named; returns 0, as errors are raised."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", nargs="*", type=pathlib.Path, default=sorted(FOLDER.glob("*.ipynb")))
    parser.add_argument("--short", action="store_true", help="fewer steps")
    parser.add_argument("--strip", action="store_true", help="only remove outputs")
    parser.add_argument("--keep-outputs", action="store_true", help="leave what the cells printed in the file")
    options = parser.parse_args()
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
            print(f"{path.name}: {time.perf_counter() - start:.1f} s")
        nbformat.write(notebook if options.keep_outputs else strip(notebook), path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
