"""Which robot files of packages load, and how those in MJCF agree with MuJoCo; writes benchmarks/corpora.json.

`python -m benchmarks.corpora` reads the packages that are installed, and folders given as NAME=VERSION=FOLDER. With
`--table FOLDER…` it prints a row for each MJCF file instead. With `--loads-only` nothing is compared with MuJoCo.
"""

import importlib.metadata
import importlib.util
import json
import re
import sys
import sysconfig
import time
import warnings
from pathlib import Path
from typing import Any

import jax
import mujoco

import mbjax
from mbjax.formats.mjcf.compiled import compile_model
from mbjax.formats.notes.load_notes import LoadNotes
from mbjax.formats.xml.source import read_xml
from tests.formats.mujoco_comparison import compare

jax.config.update("jax_enable_x64", True)
SITE = Path(sysconfig.get_path("purelib"))
INSTALLED = {
    "example-robot-data": SITE / "cmeel.prefix/share/example-robot-data",
    "drake": SITE / "pydrake/share",
    "gymnasium": SITE / "gymnasium",
    "mujoco-mjx": SITE / "mujoco/mjx",
}
FORMATS = {"URDF": ("*.urdf",), "SDFormat": ("*.sdf",), "MJCF": ("*.xml",), "directives": ("*.dmd.yaml",)}
LARGEST_COMPARED = 80  # velocities: the comparison compiles a program
OUTPUT = Path(__file__).with_name("corpora.json")
# What a refusal or a warning is about, in the words of the table; the first that fits counts.
REASONS = (
    ("parts of other files", r"compiler refuses it.*(unrecognized name|unknown default class)"),
    ("MuJoCo refuses it too", r"Lengthrange computation"),
    ("fluid", r"a fluid"),
    ("heightfields", r"hfield|heightfield"),
    ("tendons", r"tendon|<fixed|<spatial|it does not act on one hinge or slide joint"),
    ("muscles and activation", r"activation dynamics|muscle|gain changes"),
    ("flexible bodies", r"flex|deformable|composite"),
    ("gravity compensation", r"gravcomp|gravity compensation"),
    ("ball joints with range or spring", r"ball joint|ball and free joints"),
    ("springs or damping that are not linear", r"not linear"),
    ("signed distance fields", r"of type sdf|plugin"),
    ("joints that are not there", r"mimics joint|drives joint|does not exist"),
    ("no robot in it", r"has no <link>|the outermost element|a part of an MJCF|has no <model>|no bodies"),
    ("missing includes, meshes or textures", r"there is no file|not found|Error opening|resource|lies outside"),
    ("hydroelastic or deformable settings", r"hydroelastic"),
    ("adhesion", r"adhesion"),
    ("links with two parents", r"has two parents"),
    ("joint types that are not simulated", r"type '\w+' is not simulated"),
    ("a body that nothing could move", r"moves nothing"),
)


def reason_of(text: str) -> str:
    """A few words on why a file is refused."""
    return next((words for words, pattern in REASONS if re.search(pattern, text)), text.split(": ", 1)[-1][:60])


def outcome_of(file: Path) -> tuple[str, str, mbjax.MultibodyModel | None]:
    """How a file loads: "loads", "warn" with what is left out, or "refused" with the reason."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return "loads", "", mbjax.load(file)
        except mbjax.UnsupportedError as error:
            text = str(error)
        except mbjax.ModelError as error:
            return "refused", reason_of(str(error)), None
        try:
            return "warn", reason_of(text), mbjax.load(file, on_unsupported="warn")
        except mbjax.ModelError as error:
            return "refused", reason_of(str(error)), None


def is_robot(file: Path, kind: str) -> bool:
    """Whether a file claims to be of the format: XML has many uses."""
    return kind != "MJCF" or "<mujoco" in file.read_text(errors="replace")


def corpus_of(package: str, version: str, folder: Path, kind: str, is_compared: bool) -> dict[str, Any] | None:
    """One row of the table; None where the package has no file of the format."""
    found = [file for pattern in FORMATS[kind] for file in sorted(folder.rglob(pattern)) if is_robot(file, kind)]
    row: dict[str, Any] = {"package": package, "version": version, "format": kind, "files": len(found), "loads": 0}
    row |= {"warn": {}, "refused": {}, "agreement": None}
    for file in found:
        how, reason, model = outcome_of(file)
        if how == "loads":
            row["loads"] += 1
        else:
            row[how][reason] = row[how].get(reason, 0) + 1
        if (
            is_compared
            and how == "loads"
            and kind == "MJCF"
            and model is not None
            and 0 < model.num_velocities <= LARGEST_COMPARED
        ):
            agreement = compare(model, compile_model(read_xml(file), LoadNotes(str(file), "warn")).m, num_states=1)
            row["agreement"] = max(row["agreement"] or 0.0, agreement.worst)
        print(package, file.relative_to(folder), how, reason, flush=True)
    return row if found else None


def print_table(folders: list[Path]) -> None:
    """Prints a Markdown table of the MJCF files of folders."""
    print("| file | | poses | M | forces | actuation | load, s |\n|---|---|---|---|---|---|---|")
    for folder in folders:
        for file in sorted(folder.rglob("*.xml")):
            start = time.perf_counter()
            how, reason, model = outcome_of(file)
            seconds = time.perf_counter() - start
            numbers = "| | |"
            if model is not None and model.num_velocities:
                a = compare(model, compile_model(read_xml(file), LoadNotes(str(file), "warn")).m)
                numbers = " | ".join(f"{x:.0e}" for x in (a.poses, a.mass_matrix, a.forces, a.actuation))
            print(f"| {file.relative_to(folder)} | {how} {reason} | {numbers} | {seconds:.2f} |", flush=True)


def main(arguments: list[str]) -> None:
    """Writes the results of all packages, or prints a table."""
    if arguments[:1] == ["--table"]:
        print_table([Path(folder) for folder in arguments[1:]])
        return
    is_compared = "--loads-only" not in arguments
    arguments = [argument for argument in arguments if argument != "--loads-only"]
    places = [(name, importlib.metadata.version(name), folder) for name, folder in INSTALLED.items()]
    for given in arguments:
        name, version, folder = given.split("=", 2)
        places.append((name, version, Path(folder)))
    rows = [corpus_of(*place, kind, is_compared) for place in places for kind in FORMATS]
    results = {"mujoco": mujoco.__version__, "corpora": [row for row in rows if row is not None]}
    OUTPUT.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
