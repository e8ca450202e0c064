"""Every Python snippet of README and docs runs, in order, page by page."""

import pathlib
import re

import jax
import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += sorted((ROOT / "benchmarks").rglob("*.md"))
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)#]+?)\)")


def name_of(page: pathlib.Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", [p for p in PAGES if FENCE.search(p.read_text())], ids=name_of)
def test_snippets_run(page: pathlib.Path) -> None:
    names: dict = {}
    with jax.numpy_dtype_promotion("standard"), jax.enable_x64(False):
        for snippet in FENCE.findall(page.read_text()):
            exec(compile(snippet, str(page), "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: pathlib.Path) -> None:
    missing = [
        target
        for target in LINK.findall(page.read_text())
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not missing
