"""Builds the wheel and the source distribution into `dist/`, and tries the wheel in an environment of its own.

The wheel is built twice, from the checkout and from the source distribution: both must hold the same files. The main
job then runs in a folder outside of the checkout, where nothing but the wheel can be imported.
"""

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED_BY_TESTS = ("tests/drake_members.csv", "docs/drake_map.csv", "benchmarks/results.json", "README.md", "LICENSE")
TRY = """
import pathlib, mbjax
assert pathlib.Path(mbjax.__file__).is_relative_to(pathlib.Path({environment!r})), mbjax.__file__
assert mbjax.load(mbjax.reference_models.path("arm")).num_positions == 7
"""


def run(*command: object, folder: Path) -> None:
    """Runs a command; its failure is ours. Python sees neither the checkout nor the caller's packages."""
    clean = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    subprocess.run([str(part) for part in command], cwd=folder, env=clean, check=True)


def create_environment(folder: Path, *packages: object) -> Path:
    """A fresh environment with packages; returns the folder of its programs."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
    run(programs / "python", *install, *packages, folder=folder)
    return programs


def contents(wheel: Path) -> dict[str, bytes]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_equal(one: Path, other: Path) -> None:
    """Raises an error that names the files in which two wheels differ."""
    first, second = contents(one), contents(other)
    unlike = sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))
    if unlike:
        raise SystemExit(f"the wheels of checkout and source distribution differ in {', '.join(unlike)}")


def check_source(archive: Path) -> None:
    """Raises an error that names what tests need and the source distribution lacks."""
    with tarfile.open(archive) as files:
        names = {name.split("/", 1)[-1] for name in files.getnames()}
    missing = [name for name in NEEDED_BY_TESTS if name not in names]
    if missing:
        raise SystemExit(f"{archive.name} lacks {', '.join(missing)}")


def main() -> None:
    """Builds, compares, installs, runs."""
    distribution = ROOT / "dist"
    shutil.rmtree(distribution, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        builder = create_environment(folder / "builder", "build", "hatchling") / "python"
        build = (builder, "-m", "build", "--no-isolation")
        run(*build, "--outdir", distribution, ROOT, folder=folder)  # the wheel from the source distribution
        run(*build, "--wheel", "--outdir", folder / "direct", ROOT, folder=folder)
        (source,), (wheel,) = distribution.glob("*.tar.gz"), distribution.glob("*.whl")
        check_source(source)
        check_equal(wheel, folder / "direct" / wheel.name)
        programs = create_environment(folder / "user", f"{wheel}[viz]")
        run(programs / "python", "-c", TRY.format(environment=str(folder / "user")), folder=folder)
        short = ("--duration", "0.1", "--gradient-duration", "0.05")
        run(programs / "mbjax", "simulate", *short, "--output", folder / "output", folder=folder)
        if not (folder / "output" / "animation.html").stat().st_size:
            raise SystemExit("mbjax simulate wrote no animation")
    print(f"{source.name} and {wheel.name} are in {distribution}")


if __name__ == "__main__":
    sys.exit(main())
