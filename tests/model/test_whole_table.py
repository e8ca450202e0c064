"""A table has every cell whole, whatever the width it is printed at."""

import io

import numpy as np
import pytest
from rich.console import Console

from mbjax.command_line.bench import result_table
from mbjax.command_line.simulate import GradientRow, gradient_table
from mbjax.model.whole_table import Column, WholeTable


def printed(table: WholeTable, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width)
    console.print(table)
    return console.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]


def drawn_table(seed: int) -> WholeTable:
    """Names of several words, and numbers of up to 14 digits."""
    random = np.random.default_rng(seed)
    rows = range(6)
    numbers = [[f"{random.normal():.{random.integers(1, 9)}e}" for _ in rows] for _ in range(3)]
    names = [f"{'n' * random.integers(1, 12)}_{row} +{random.integers(1, 30)}" for row in rows]
    return WholeTable(
        "a title",
        [Column("name", names, is_text=True), *(Column(f"v{i}", column) for i, column in enumerate(numbers))],
    )


@pytest.mark.parametrize("seed", range(4))
def test_every_word_of_every_cell_is_whole_at_every_width(seed):
    table = drawn_table(seed)
    words = {word for column in table.columns for cell in column.cells for word in cell.split()}
    for width in range(20, 90, 3):
        lines = printed(table, width)
        assert words <= {word.rstrip(";") for line in lines for word in line.split()}
        assert max(map(len, lines)) <= width
    assert len(printed(table, table.width)) == 2 + 1 + 6  # title, heading, rule, a line a row


def test_what_repeats_is_left_blank_in_a_table_and_said_in_paragraphs():
    table = WholeTable("t", [Column("group", ["g", "g", "h"], is_text=True, once=True), Column("n", ["1", "2", "3"])])
    assert [line.split() for line in printed(table, 40)[3:]] == [["g", "1"], ["2"], ["h", "3"]]
    assert [line.split() for line in printed(table, 5)[1:]] == [["g"], ["n", "1"], ["g"], ["n", "2"], ["h"], ["n", "3"]]


@pytest.mark.parametrize("width", [40, 80, 200])
def test_tables_of_the_command_line_cut_no_number(width):
    rows = [GradientRow("mass", f"link_{i}", 1.0 / (i + 3), 1.0 / (i + 3.0001)) for i in range(3)]
    text = " ".join(printed(gradient_table(0.125, rows, 17), width))
    for row in rows:
        assert f"{row.autodiff:+.6e}" in text
        assert f"{row.finite_difference:+.6e}" in text
    times = {"trace_s": 0.25, "lower_s": 1.5, "compile_s": 12.75, "compile_total_s": 14.5}
    spread = {"median": 1.5e-4, "lower_quartile": 1.25e-4, "upper_quartile": 1.75e-4}
    row = {"function": "step", "batch": 4096, **times, **spread, "evaluations_per_s": 2e4, "temp_bytes_per_world": 512}
    facts = {"model": "arm", "positions": "7", "velocities": "7", "dtype": "float32"}
    text = " ".join(" ".join(printed(result_table([row], facts), width)).split())
    for number in ("4096", "14.50 (0.25 + 1.50 + 12.75)", "150 [125–175]"):
        assert number in text
