"""The pages on formats say what the readers do, and know all that MuJoCo's schema has."""

import importlib.util
import json
import pathlib
import sys
from types import ModuleType

import mujoco
import pytest

from mbjax.formats.mjcf.coverage import LISTED_TAGS, REFUSED_TAGS, status_of

SCRIPT = pathlib.Path(__file__).parent.parent / "docs" / "format_pages.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """The script that writes the pages."""
    specification = importlib.util.spec_from_file_location("format_pages", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["format_pages"] = module
    specification.loader.exec_module(module)
    return module


def test_every_element_and_attribute_of_mujocos_schema_has_a_status(script) -> None:
    """A new version of MuJoCo with something that nobody has thought of fails here; until then it is listed."""
    rows, unknown = list(script.schema()), []
    for path, attributes in rows:
        if any(tag in LISTED_TAGS or tag in REFUSED_TAGS for tag in path):
            continue
        unknown += [(path[-1], None)] if status_of(path[-1]) is None else []
        unknown += [(path[-1], name) for name in attributes if status_of(path[-1], name) is None]
    assert len(rows) > 100
    assert sorted(set(unknown)) == []


@pytest.mark.parametrize("name", ["urdf", "sdformat", "mjcf", "directives", "robots"])
def test_pages_are_what_the_script_writes(script, name) -> None:
    """That of MJCF only with the version of MuJoCo that it names."""
    there = (script.FOLDER / f"{name}.md").read_text()
    assert "UNKNOWN" not in there
    if name == "mjcf" and f"MuJoCo {mujoco.__version__} prints" not in there:
        pytest.skip("written with another version of MuJoCo")
    assert there == script.PAGES[name](), "run `python docs/format_pages.py`"


def test_files_that_loaded_are_counted(script) -> None:
    for corpus in json.loads(script.CORPORA.read_text())["corpora"]:
        counted = corpus["loads"] + sum(corpus["warn"].values()) + sum(corpus["refused"].values())
        assert counted == corpus["files"]


def test_every_corpus_in_mjcf_was_compared_with_mujoco(script) -> None:
    """All that load, none left open: a miss stands in the table as a number, and a row without one is a miss."""
    for corpus in json.loads(script.CORPORA.read_text())["corpora"]:
        if corpus["format"] == "MJCF" and corpus["loads"]:
            assert corpus["agreement"] is not None, f"{corpus['package']}: {script.WRITES_THE_NUMBERS}"
            assert corpus["agreement"] < 1e-9, corpus["package"]
        else:
            assert corpus["agreement"] is None, "only MJCF is compared with its engine here"
