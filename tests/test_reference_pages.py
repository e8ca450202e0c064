"""Every public name stands on exactly one reference page of the documentation."""

import importlib.util
import inspect
import pathlib
import sys
from types import ModuleType

import pytest

import mbjax

SCRIPT = pathlib.Path(__file__).parent.parent / "docs" / "reference_pages.py"


@pytest.fixture(scope="module")
def pages() -> ModuleType:
    """The script that writes the pages."""
    specification = importlib.util.spec_from_file_location("reference_pages", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["reference_pages"] = module
    specification.loader.exec_module(module)
    return module


def test_every_public_name_is_on_exactly_one_page(pages: ModuleType) -> None:
    public = {f"mbjax.{name}" for name, value in vars(mbjax).items() if name[0] != "_" and not inspect.ismodule(value)}
    listed = [name for names in pages.names_of_pages().values() for name in names]
    assert len(listed) == len(set(listed))
    assert public <= set(listed)


def test_no_page_is_empty_and_all_are_in_the_navigation(pages: ModuleType) -> None:
    navigation = (SCRIPT.parent.parent / "mkdocs.yml").read_text()
    for page, names in pages.names_of_pages().items():
        assert names, page
        assert f"reference/{page}.md" in navigation


def test_names_lead_to_their_definitions(pages: ModuleType) -> None:
    for name in (name for names in pages.names_of_pages().values() for name in names):
        package, _, short = name.rpartition(".")
        path = pages.definition_of(package, short)
        module, _, defined = path.rpartition(".")
        value = getattr(importlib.import_module(package), short)
        found = value if inspect.ismodule(value) else getattr(importlib.import_module(module), defined)
        assert found is value, path


def test_a_folder_without_a_page_is_found(pages: ModuleType) -> None:
    with pytest.raises(LookupError, match="mbjax/unheard_of, which no reference page has"):
        pages.topic_of("solve", "unheard_of")


def test_what_is_used_most_stands_first_and_has_the_name_that_users_call(pages: ModuleType) -> None:
    order = pages.names_of_pages()["simulation"]
    for often in ("State", "rollout", "step", "default_state", "simulate"):
        assert order.index(f"mbjax.{often}") < order.index("mbjax.implicit_time_derivatives_residual")
    names = pages.renamed()
    assert names["calc_acceleration_kinematics"] == "acceleration_kinematics"
    assert not [name for name in names.values() if name.startswith("calc_")]
