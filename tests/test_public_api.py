"""What is public exists and says what it is; importing has no effects."""

import enum
import inspect
import pathlib
import subprocess
import sys
import tomllib

import pytest

import mbjax
from mbjax.command_line import main

ROOT = pathlib.Path(__file__).parent.parent

PUBLIC = [name for name in dir(mbjax) if not name.startswith("_")]


def test_public_names_have_docstrings() -> None:
    undocumented = [n for n in PUBLIC if callable(getattr(mbjax, n)) and not inspect.getdoc(getattr(mbjax, n))]
    assert not undocumented


def test_public_functions_and_constructors_say_what_they_take() -> None:
    without = []
    for name in PUBLIC:
        value = getattr(mbjax, name)
        if (
            not callable(value)
            or isinstance(value, enum.EnumType)
            or (isinstance(value, type) and issubclass(value, Exception) and value.__init__ is Exception.__init__)
        ):
            continue
        try:
            parameters = inspect.signature(value).parameters.values()
        except ValueError:
            continue  # exceptions of Python, without a constructor of their own
        without += [f"{name}: {each.name}" for each in parameters if each.annotation is each.empty]
    assert not without


def test_the_version_is_that_of_the_project(capsys: pytest.CaptureFixture) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert mbjax.__version__ == project["version"]
    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out == f"mbjax {mbjax.__version__}\n"


def test_import_leaves_jax_alone() -> None:
    program = (
        "import jax; before = dict(jax.config.values); import os; environment = dict(os.environ)\n"
        "import mbjax\n"
        "assert dict(jax.config.values) == before and dict(os.environ) == environment\n"
        "from jax._src import xla_bridge; assert not xla_bridge._backends, 'a device was touched'\n"
        "import sys; heavy = {'matplotlib', 'mujoco', 'trimesh', 'pydrake', 'pinocchio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
