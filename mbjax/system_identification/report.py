"""A fit as one HTML file that needs nothing else: no scripts, no fonts, pictures inside."""

import base64
import html
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}
.bad{color:#b5442b}img{max-width:100%}.matrix td{width:1.1rem;height:1.1rem;padding:0;border:1px solid #fff}
"""
MOST_IN_MATRIX = 40


def write_report(path: Path, heading: str, paragraphs: Sequence[str], sections: Sequence[tuple[str, str]]) -> Path:
    """Writes the report, sections of a title and HTML below paragraphs of HTML, and returns its path."""
    parts = [f"<h1>{html.escape(heading)}</h1>", *paragraphs]
    for title, body in sections:
        parts += [f"<h2>{html.escape(title)}</h2>", body]
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>System identification</title>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n", encoding="utf-8")
    return path


def paragraph(text: str, kind: str = "") -> str:
    """A paragraph of plain text; `kind` names its style."""
    return f"<p{f' class={kind}' if kind else ''}>{html.escape(text)}</p>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table of text."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def bullets(sentences: Sequence[str]) -> str:
    """A list of sentences, if there are any."""
    if not sentences:
        return ""
    return "<ul>" + "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def correlation_matrix(names: Sequence[str], correlations: np.ndarray) -> str:
    """Correlations as colours, of not too many parameters; names are in the titles of the cells."""
    if len(names) > MOST_IN_MATRIX:
        return ""
    rows = []
    for i, row in enumerate(correlations):
        cells = "".join(
            f'<td title="{html.escape(f"{names[i]}, {names[j]}: {c:+.3f}")}" style="background:{colour(c)}"></td>'
            for j, c in enumerate(row)
        )
        rows.append(f"<tr>{cells}</tr>")
    return f'<table class="matrix">{"".join(rows)}</table>'


def colour(correlation: float) -> str:
    """White for none, red for positive and blue for negative correlation."""
    fade = int(255 * (1.0 - min(1.0, abs(float(np.nan_to_num(correlation))))))
    return f"rgb(255,{fade},{fade})" if correlation > 0.0 else f"rgb({fade},{fade},255)"


def picture(plot: Callable[[], Any]) -> str:
    """The figure that `plot` makes as an image inside the page; a sentence where matplotlib is missing."""
    try:
        figure = plot()
    except ImportError as error:
        return f"<p>{html.escape(str(error))}</p>"
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=110)
    data = base64.b64encode(memory.getvalue()).decode()
    return f'<img alt="measured and fitted signals" src="data:image/png;base64,{data}">'
