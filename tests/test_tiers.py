"""The quick run has what `tiers.py` names, and nothing by mistake."""

import ast
import pathlib

import pytest

from tests.tiers import QUICK, is_quick, may_hold_quick_tests

TESTS = pathlib.Path(__file__).parent


@pytest.mark.parametrize("node", QUICK)
def test_what_the_quick_run_names_is_there(node: str):
    path, _, name = node.partition("::")
    assert (TESTS / path).exists()
    if name:
        body = ast.parse((TESTS / path).read_text()).body
        functions = [part.name for part in body if isinstance(part, ast.FunctionDef)]
        assert any(function.startswith(name.partition("[")[0]) for function in functions)


def test_no_entry_is_within_another():
    assert not [(a, b) for a in QUICK for b in QUICK if a != b and a.startswith(b)]


def test_nodes_are_told_by_their_beginning():
    assert is_quick(f"tests/{QUICK[0]}::test_anything[case]")
    assert not is_quick("tests/no_such_folder/test_x.py::test_y")


def test_every_file_with_quick_tests_is_read():
    paths = [path.relative_to(TESTS).as_posix() for path in TESTS.rglob("test_*.py")]
    named = {name.partition("::")[0] for name in QUICK}
    for path in paths:
        assert may_hold_quick_tests(f"tests/{path}") == any(path.startswith(name) for name in named), path
    for folder in ("tests", "tests/spatial", "tests/contact"):
        assert may_hold_quick_tests(folder)
    assert not may_hold_quick_tests("tests/no_such_folder")
