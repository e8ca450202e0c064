"""A fit as one HTML file that needs nothing else: no scripts, no fonts, pictures inside."""

import base64
import html
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .answers import NOISE_ALONE
from .parameter_table import counted
from .plots import plot_fit

if TYPE_CHECKING:
    from .fit_result import Fit

STYLE = """
body{font:15px/1.45 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;color:#222}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;font-size:.9rem}
td,th{padding:.15rem .7rem;text-align:right;border-bottom:1px solid #ddd}
td:first-child,th:first-child{text-align:left}
.bad{color:#b5442b}img{max-width:100%}.matrix td{width:1.1rem;height:1.1rem;padding:0;border:1px solid #fff}
"""
MOST_IN_MATRIX = 40


def write_report(fit: "Fit", path: Path) -> Path:
    """Writes the report and returns its path."""
    parts = [
        f"<h1>System identification of {html.escape(', '.join(log.name for log in fit.logs))}</h1>",
        f"<p{'' if fit.converged else ' class=bad'}>{html.escape(fit.message)}</p>",
        f"<p>{fit.num_data} measured numbers, {counted(len(fit.unknown), 'parameter')}, "
        f"{counted(fit.rank, 'combination')} seen, condition "
        f"number {fit.condition_number:.3g}, chi squared per degree of freedom {fit.chi_squared:.3g}.</p>",
        "<h2>Parameters</h2>",
        table(["parameter", "start", "estimate", "± deviation", "unit"], fit.table()),
        f"<p>{html.escape(NOISE_ALONE)}</p>",
        "<h2>Errors</h2>",
        table(["channel", "error (rms)", *(f"{name} (held out)" for name in fit.held_out_errors)], fit.error_rows()),
        "<h2>What the data do not see</h2>",
        bullets(fit.unseen) if fit.unseen else "<p>Every parameter is seen by itself.</p>",
        "<h2>Strongest correlations</h2>",
        table(
            ["parameter", "parameter", "correlation"],
            [[a, b, f"{c:+.3f}"] for a, b, c in fit.strongest_correlations(10)],
        ),
        correlation_matrix(fit),
        "<h2>Measured and fitted</h2>",
        picture(fit),
        "<h2>Convergence</h2>",
        f"<p>Half the sum of squares, step by step: {', '.join(f'{cost:.4g}' for cost in fit.costs)}.</p>",
    ]
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>System identification</title>'
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{head}<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n", encoding="utf-8")
    return path


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """An HTML table of text."""
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def bullets(sentences: Sequence[str]) -> str:
    """A list of sentences."""
    return "<ul>" + "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences) + "</ul>"


def correlation_matrix(fit: "Fit") -> str:
    """Correlations as colours, of not too many parameters; names are in the titles of the cells."""
    names = fit.unknown.names
    if len(names) > MOST_IN_MATRIX:
        return ""
    rows = []
    for i, row in enumerate(fit.correlations):
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


def picture(fit: "Fit") -> str:
    """The plot of the fit as an image inside the page; a sentence where matplotlib is missing."""
    try:
        figure = plot_fit(fit)
    except ImportError as error:
        return f"<p>{html.escape(str(error))}</p>"
    memory = io.BytesIO()
    figure.savefig(memory, format="png", dpi=110)
    data = base64.b64encode(memory.getvalue()).decode()
    return f'<img alt="measured and fitted signals" src="data:image/png;base64,{data}">'
