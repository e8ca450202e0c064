"""Prints tables that never cut a cell, however narrow they are."""

import dataclasses
import io
from collections.abc import Iterator, Sequence

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

GAP = 2  # blanks between columns


@dataclasses.dataclass(frozen=True)
class Column:
    """A column with one cell a row; columns of text may be wrapped between words, others stay on one line.

    With `once` a cell equal to the one above it is left blank.
    """

    heading: str
    cells: Sequence[str]
    is_text: bool = False
    once: bool = False

    @property
    def shown(self) -> list[str]:
        """Cells as the table shows them."""
        before = [None, *self.cells]
        return ["" if self.once and cell == above else cell for cell, above in zip(self.cells, before, strict=False)]

    @property
    def width(self) -> int:
        """Width of the longest line."""
        return max(cell_len(line) for cell in (self.heading, *self.cells) for line in cell.split("\n"))

    @property
    def least_width(self) -> int:
        """Width of the longest word where words may be wrapped, else of the longest line."""
        if not self.is_text:
            return self.width
        return max(cell_len(word) for cell in (self.heading, *self.cells) for word in cell.split() or [""])


@dataclasses.dataclass(frozen=True)
class WholeTable:
    """A table with columns side by side where there is room, text wrapped if need be; else a paragraph a row."""

    title: str
    columns: Sequence[Column]

    @property
    def width(self) -> int:
        """Width of the table with nothing wrapped."""
        return self._total(column.width for column in self.columns)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        widths = self._fitted(options.max_width)
        if widths is None:
            yield from self._paragraphs()
        else:
            yield self._table(widths)

    def _total(self, widths) -> int:
        return sum(widths) + GAP * (len(self.columns) - 1)

    def _fitted(self, room: int) -> list[int] | None:
        """Widths of columns that fit the room, the widest text made narrower; None where words would be cut."""
        widths = [column.width for column in self.columns]
        while self._total(widths) > room:
            wide = [i for i, column in enumerate(self.columns) if widths[i] > column.least_width]
            if not wide:
                return None
            widths[max(wide, key=lambda i: widths[i])] -= 1
        return widths

    def _table(self, widths: list[int]) -> Table:
        table = Table(
            title=Text(self.title),
            title_style="bold",
            title_justify="left",
            header_style="bold",
            box=box.SIMPLE_HEAD,
            collapse_padding=True,
            pad_edge=False,
            show_edge=False,
        )
        for column, width in zip(self.columns, widths, strict=True):
            table.add_column(
                Text(column.heading),
                justify="left" if column.is_text else "right",
                width=width,
                no_wrap=not column.is_text,
                overflow="fold",
            )
        for cells in zip(*(column.shown for column in self.columns), strict=True):
            table.add_row(*map(Text, cells))
        return table

    def _paragraphs(self) -> Iterator[RenderableType]:
        yield Text(self.title, style="bold", overflow="fold")
        headings = [" ".join(column.heading.split()) for column in self.columns]
        for first, *others in zip(*(column.cells for column in self.columns), strict=True):
            named = [f"{heading} {cell}" for heading, cell in zip(headings[1:], others, strict=True) if cell]
            yield Text(first, overflow="fold")
            yield Padding(Text("; ".join(named), overflow="fold"), (0, 0, 0, 2), expand=False)


def printed(table: WholeTable) -> str:
    """The table as plain text, as wide as it must be."""
    console = Console(file=io.StringIO(), width=table.width, color_system=None, force_terminal=False)
    console.print(table)
    file = console.file
    assert isinstance(file, io.StringIO)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines()).strip("\n")
