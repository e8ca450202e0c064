"""Which MJCF files of a folder load, and how they agree with MuJoCo: `python -m benchmarks.mjcf_corpora FOLDER…`."""

import sys
import time
import warnings
from pathlib import Path

import jax

import mbjax
from mbjax.parsing.load_notes import LoadNotes
from mbjax.parsing.mjcf.compiled import compile_model
from mbjax.parsing.xml_source import read_xml
from tests.parsing.mujoco_comparison import compare

jax.config.update("jax_enable_x64", True)


def row(file: Path, name: str) -> str:
    """One line of the table."""
    start = time.perf_counter()
    how = "loads"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                model = mbjax.load(file)
            except mbjax.UnsupportedError as error:
                how = "with on_unsupported='warn': " + str(error).split(": ", 1)[-1].split(". Remove")[0][:100]
                model = mbjax.load(file, on_unsupported="warn")
    except mbjax.ParseError as error:
        return f"| {name} | refused: {str(error).replace(str(file), file.name)[:140]} | | | | | |"
    seconds = time.perf_counter() - start
    m = compile_model(read_xml(file), LoadNotes(str(file), "warn")).m
    if model.num_velocities == 0:
        return f"| {name} | {how}; nothing moves | | | | | {seconds:.2f} |"
    a = compare(model, m)
    numbers = " | ".join(f"{x:.0e}" for x in (a.poses, a.mass_matrix, a.forces, a.actuation))
    return f"| {name} | {how} | {numbers} | {seconds:.2f} |"


def main() -> None:
    """Prints a Markdown table for the folders given."""
    print("| file | | poses | M | forces | actuation | load, s |\n|---|---|---|---|---|---|---|")
    for folder in map(Path, sys.argv[1:]):
        for file in sorted(folder.rglob("*.xml")):
            try:
                print(row(file, str(file.relative_to(folder))), flush=True)
            except Exception as error:
                print(
                    f"| {file.relative_to(folder)} | FOREIGN {type(error).__name__}: {str(error)[:300]} | | | | | |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
