"""The page of benchmark results is what its records say."""

import pathlib

from benchmarks.report import read_results, write_markdown

FOLDER = pathlib.Path(__file__).parent.parent / "benchmarks"


def test_page_is_written_from_its_records(tmp_path: pathlib.Path) -> None:
    written = tmp_path / "RESULTS.md"
    write_markdown(read_results(FOLDER / "results.json"), written)
    assert (FOLDER / "RESULTS.md").read_text() == written.read_text(), "run: python -m benchmarks.report"
