"""Robots by name: of packages that are installed, never downloaded, and named in errors."""

import os
import pathlib

import pytest

import mbjax
from mbjax.command_line.main import find_model_file
from mbjax.reference_models import installed_robots
from mbjax.reference_models.installed_robots import find_robot

URDF = '<robot name="{}"><link name="base"/></robot>'
MJCF = '<mujoco model="{}"><worldbody/></mujoco>'
REPOSITORIES = """
REPOSITORIES: Dict[str, Repository] = {
    "two-robots": Repository(url="https://nowhere", commit="1", cache_path="two_robots"),
    "models": Repository(url="https://nowhere", commit="1", cache_path="models"),
}
"""
DESCRIPTION = """
from os import getenv as _getenv
from os import path as _path
from ._cache import clone_to_cache as _clone_to_cache
REPOSITORY_PATH: str = _clone_to_cache("{repository}", commit=_getenv("ROBOT_DESCRIPTION_COMMIT", None))
PACKAGE_PATH: str = _path.join(REPOSITORY_PATH, "robots")
{kind}_PATH: str = _path.join(PACKAGE_PATH, "{file}")
raise RuntimeError("this module must not run: it would download")
"""


def write(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def packages(tmp_path, monkeypatch) -> pathlib.Path:
    """A robot_descriptions with one robot downloaded and two not, and a Playground with a Menagerie of two files."""
    site, cache = tmp_path / "site", tmp_path / "cache"
    descriptions = site / "robot_descriptions"
    write(descriptions / "__init__.py", "raise RuntimeError('this package need not be imported')")
    write(descriptions / "_repositories.py", REPOSITORIES)
    for name, repository, kind, file in (
        ("walker", "two-robots", "URDF", "walker.urdf"),
        ("absent", "two-robots", "URDF", "absent.urdf"),
        ("absent_mj", "models", "MJCF", "absent.xml"),
    ):
        text = DESCRIPTION.format(repository=repository, kind=kind, file=file)
        write(descriptions / f"{name}_description.py", text)
    write(descriptions / "odd_description.py", "URDF_PATH = expanded()")
    write(descriptions / "broken_description.py", "URDF_PATH = (")
    write(cache / "two_robots" / "robots" / "walker.urdf", URDF.format("walker"))
    menagerie = site / "mujoco_playground" / "external_deps" / "mujoco_menagerie"
    write(site / "mujoco_playground" / "__init__.py", "")
    write(menagerie / "maker_hopper" / "hopper.xml", MJCF.format("hopper"))
    write(menagerie / "maker_hopper" / "scene.xml", MJCF.format("scene"))
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv(installed_robots.CACHE_VARIABLE, str(cache))
    return tmp_path


def test_robots_of_packages_are_found_by_name(packages) -> None:
    found = {robot.name: robot for robot in mbjax.robots()}
    assert found["arm"].source == "mbjax"
    assert found["panda"].source == "example-robot-data"
    assert found["walker"].source == "robot_descriptions"
    assert found["maker_hopper"].path.name == "hopper.xml"
    assert found["maker_hopper/scene"].path.name == "scene.xml"
    assert "absent" not in found
    assert found["quadruped"].source == "mbjax"
    assert found["example-robot-data/quadruped"].source == "example-robot-data"
    assert all(robot.path.is_file() for robot in found.values())
    assert mbjax.load("walker", base="fixed").layout.instance_names[2:] == ("walker",)
    assert find_model_file("walker") == found["walker"].path
    text, html = str(mbjax.robots()), mbjax.robots()._repr_html_()
    assert repr(mbjax.robots()) == text
    for name, robot in found.items():
        assert name in text
        assert name in html
        assert str(robot.path) not in text


def test_what_is_not_downloaded_is_named_and_not_fetched(packages) -> None:
    with pytest.raises(mbjax.ParseError, match=r'has not downloaded it.*python -c "import robot_descriptions.absent_'):
        mbjax.load("absent")
    with pytest.raises(mbjax.ParseError, match=r"no bundled model of that name.*Did you mean 'walker'\? mbjax.robots"):
        mbjax.load("walkr")


def test_without_packages_the_error_names_them(monkeypatch) -> None:
    for source in ("of_example_robot_data", "of_robot_descriptions", "of_menagerie"):
        monkeypatch.setattr(installed_robots, source, lambda: iter(()))
    with pytest.raises(mbjax.ParseError, match=r"pip install example-robot-data.*robot_descriptions.*playground"):
        mbjax.load("panda")
    assert find_robot("panda") is None
    assert "pip install example-robot-data" in str(mbjax.robots())


def test_panda_loads_with_its_meshes_and_a_file_of_the_name_comes_first(tmp_path, monkeypatch) -> None:
    model = mbjax.load("panda", base="fixed")
    assert model.num_positions == 9
    assert not [entry for entry in model.report() if "not found" in entry.message]
    monkeypatch.chdir(tmp_path)
    pathlib.Path("panda").write_text(URDF.format("mine"))
    assert mbjax.load("panda", base="fixed").layout.instance_names[2:] == ("mine",)
    assert os.listdir() == ["panda"]
