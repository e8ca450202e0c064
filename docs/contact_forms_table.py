"""Writes the table of contact forms into docs/development/contact.md, from the table that chooses among them.

Run it with `python docs/contact_forms_table.py` after a change of `mbjax/contact/forms/choose.py`; a test compares.
"""

import inspect
import pathlib

PAGE = pathlib.Path(__file__).parent / "development" / "contact.md"
BEGIN, END = "<!-- table of forms: python docs/contact_forms_table.py -->", "<!-- end of the table -->"


def table() -> str:
    """The forms in the order in which they are asked, with the models that take them."""
    from mbjax.contact.forms.choose import FORMS

    lines = ["| form | taken by | what it is |", "|---|---|---|"]
    for row in FORMS:
        summary = (inspect.getdoc(row.form) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"| `{row.form.__name__}` | {row.when} | {summary} |")
    return "\n".join(lines)


def with_table(text: str) -> str:
    """The page's text with the table of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
