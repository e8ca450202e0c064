"""HTML of models, states and reports, which a notebook shows in place of their text."""

from collections.abc import Iterable, Sequence
from html import escape

from .whole_table import Column

LEFT, RIGHT = "text-align: left", "text-align: right; white-space: nowrap"
NOTE = "white-space: pre-wrap; font-size: 0.9em; opacity: 0.8"


def html_table(title: str, columns: Sequence[Column], notes: Iterable[str] = ()) -> str:
    """A table with its title above and notes below; a notebook's own style applies."""
    heads = "".join(cell("th", column.heading, column.is_text) for column in columns)
    rows = zip(*(column.shown for column in columns), strict=True)
    body = "".join(
        f"<tr>{''.join(cell('td', text, column.is_text) for text, column in zip(row, columns, strict=True))}</tr>"
        for row in rows
    )
    below = "".join(f'<div style="{NOTE}">{escape(note)}</div>' for note in notes if note)
    return (
        f"<div><strong>{escape(title)}</strong><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
        f"{below}</div>"
    )


def cell(tag: str, text: str, is_text: bool) -> str:
    """One cell; text stands left, numbers right."""
    return f'<{tag} style="{LEFT if is_text else RIGHT}">{escape(text)}</{tag}>'
