"""Tables of parameters in plain text: names, values, bounds, units."""

from collections.abc import Sequence
from typing import Any

import numpy as np

WIDEST = 60


def counted(count: int, what: str) -> str:
    """A count with its noun."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def text_table(columns: list[str], rows: list[list[str]]) -> str:
    """Columns of text, the first one to the left and the others to the right."""
    widths = [max(len(row[i]) for row in [columns, *rows]) for i in range(len(columns))]
    widths[0] = min(widths[0], WIDEST)

    def line(row: list[str]) -> str:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        return "  ".join(cells).rstrip()

    return "\n".join([line(columns), "  ".join("-" * width for width in widths), *map(line, rows)])


def number(x: Any) -> str:
    """A number with five digits."""
    return f"{float(x):.5g}"


def parameter_table(unknowns: Sequence[Any], starts: np.ndarray, units: Sequence[str]) -> str:
    """Every unknown parameter with its start, its range, its prior and its unit."""
    rows = []
    for entry, value, unit in zip(unknowns, starts, units, strict=True):
        prior = "" if entry.space.prior is None else f"± {entry.space.prior:g}"
        rows.append([entry.name, number(value), range_text(entry), prior, unit])
    title = counted(len(unknowns), "unknown parameter")
    return f"{title}\n" + text_table(["parameter", "start", "range", "prior", "unit"], rows)


def ends_of_range(entry: Any) -> tuple[float, float]:
    """The least and the largest value that a parameter may approach."""
    if entry.coding.kind == "logistic":
        return entry.coding.low, entry.coding.high
    return (0.0 if entry.coding.kind in ("logarithm", "softplus") else -np.inf), np.inf


def range_text(entry: Any) -> str:
    """The range of a parameter's values in words."""
    if entry.coding.kind == "logistic":
        return f"{entry.coding.low:.4g} … {entry.coding.high:.4g}"
    return {"logarithm": "> 0", "softplus": "> 0"}.get(
        entry.coding.kind, "physical" if entry.space.kind == "physical" else "any"
    )
