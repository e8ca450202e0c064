"""Lays the repository's own pages into the documentation: README, CONTRIBUTING, CHANGELOG, benchmarks and notebooks.

In the repository they stand beside `docs/`, on the site within it, so links into and out of `docs/` lose one level.
A comment `<!-- table: TITLE -->` in a page becomes the table of that title from benchmarks/RESULTS.md.
"""

import pathlib
import re
import sys

import mkdocs_gen_files

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from gallery import landing_page, notebook_page

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\()(?!\w+://|#)([^)\s]+)(\))")
TABLE = re.compile(r"<!-- table: (.+?) -->")


def place_of(file: pathlib.Path) -> pathlib.PurePosixPath:
    """Where a file of the repository stands on the site."""
    if file == ROOT / "README.md":
        return pathlib.PurePosixPath("overview.md")
    return pathlib.PurePosixPath(file.relative_to(DOCS if file.is_relative_to(DOCS) else ROOT).as_posix())


def on_site(file: pathlib.Path) -> str:
    """A page's text, with its links as they are on the site and the tables it asks for."""
    here = place_of(file).parent

    def moved(link: re.Match) -> str:
        target, _, anchor = link[2].partition("#")
        place = place_of((file.parent / target).resolve())
        path = pathlib.PurePosixPath(*[".."] * len(here.parts), place)
        return f"{link[1]}{path}{'#' + anchor if anchor else ''}{link[3]}"

    return TABLE.sub(lambda found: table(found[1]), LINK.sub(moved, file.read_text()))


def table(title: str) -> str:
    """One table of the benchmarks' results, without its heading."""
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", RESULTS.read_text(), re.MULTILINE | re.DOTALL)
    if section is None:
        raise LookupError(f"benchmarks/RESULTS.md has no table '{title}'.")
    return section[1].strip()


RESULTS = ROOT / "benchmarks" / "RESULTS.md"
for page in (
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")),
    RESULTS,
    *sorted((ROOT / "benchmarks" / "notes").glob("*.md")),
    *sorted(DOCS.rglob("*.md")),
):
    with mkdocs_gen_files.open(str(place_of(page)), "w") as written:
        written.write(on_site(page))
for attached in (*sorted((ROOT / "benchmarks").glob("*.png")), ROOT / "benchmarks" / "throughput_h200.json"):
    with mkdocs_gen_files.open(str(place_of(attached)), "wb") as copy:
        copy.write(attached.read_bytes())

for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
    for name, content in notebook_page(notebook).items():
        with mkdocs_gen_files.open(f"notebooks/{name}", "wb") as written:
            written.write(content)
for name, content in landing_page(ROOT / "README.md", on_site).items():
    with mkdocs_gen_files.open(name, "wb") as written:
        written.write(content)
