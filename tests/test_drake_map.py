"""Every member of the documents mbjax is built from has a place in docs/drake_map.csv, and every name there exists.

`python -m tests.test_drake_map` writes docs/reference/drake_map.md from it.
"""

import csv
import inspect
import pathlib
from typing import Any

import pytest

import mbjax

ROOT = pathlib.Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "drake_map.md"
AREAS = ("contact", "constraints", "hydroelastic", "deformable", "geometry of contact")
LATER_GROUPS = ("contact", "constraints", "deformable")
LATER_ROWS = {
    ("geometry", "ExcludeCollisionGeometriesWithCollisionFilterGroupPair"),
    ("introspection", "GetDefaultContactSurfaceRepresentation"),
    ("ports", "get_generalized_contact_forces_output_port"),
    ("ports", "get_contact_results_output_port"),
    ("ports", "get_deformable_body_configuration_output_port"),
}
DESIGN, LATER = "by design: ", "later: "
HEAD = """# Drake's names in mbjax

What became of each member of Drake's `MultibodyPlant`, `MultibodyTree`, `RigidBody`, `SpatialInertia` and of RBDL's
constraints: {counts}.

The rule behind the names: Drake's in snake_case without `Calc`, `Eval`, `Get`, `Make`. The context gives way to `model`
and the arrays that are used; what sets a parameter returns a new model, what sets state a new state. Names below stand
in `mbjax`. This page is written from [drake_map.csv](../drake_map.csv) by `python -m tests.test_drake_map`.
"""


def read(file: pathlib.Path) -> list[dict[str, str]]:
    with file.open(newline="") as stream:
        return list(csv.DictReader(stream))


ROWS = read(ROOT / "docs" / "drake_map.csv")


def key(row: dict[str, str]) -> tuple[str, str, str]:
    return row["class"], row["group"], row["method"]


def is_implemented(row: dict[str, str]) -> bool:
    return not row["mbjax"].startswith((DESIGN, LATER))


def resolve(dotted: str) -> Any:
    """The object of that name; of a field, the class that has it."""
    package, *path = dotted.split(".")
    assert package == "mbjax", dotted
    found: Any = mbjax
    for name in path:
        if not hasattr(found, name) and name in getattr(found, "__dataclass_fields__", {}):
            return found
        found = getattr(found, name)
    return found


def test_no_member_is_missing_or_unknown() -> None:
    expected = [key(row) for row in read(ROOT / "tests" / "drake_members.csv")]
    assert len(set(expected)) == len(expected) == 337
    assert sorted(map(key, ROWS)) == sorted(expected)


def test_every_name_exists() -> None:
    for row in filter(is_implemented, ROWS):
        assert row["mbjax"], key(row)
        for name in row["mbjax"].split():
            assert not inspect.ismodule(resolve(name)), (key(row), name)


def test_a_name_that_does_not_exist_is_found() -> None:
    for name in ("mbjax.mass_matrx", "mbjax.MultibodyModel.bodi", "mbjax.BodyInfo.colour"):
        with pytest.raises(AttributeError):
            resolve(name)


def test_only_the_named_areas_come_later() -> None:
    for row in ROWS:
        if row["mbjax"].startswith(LATER):
            assert row["mbjax"].removeprefix(LATER) in AREAS, key(row)
            assert row["group"] in LATER_GROUPS or key(row)[1:] in LATER_ROWS, key(row)
        if row["mbjax"].startswith(DESIGN):
            assert len(row["mbjax"]) > len(DESIGN) + 10, key(row)


def test_page_is_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nDrake map: {counts()}")
    assert PAGE.read_text() == page(), "run: python -m tests.test_drake_map"


def counts() -> str:
    """How many rows are what."""
    implemented = sum(map(is_implemented, ROWS))
    design, later = (sum(row["mbjax"].startswith(start) for row in ROWS) for start in (DESIGN, LATER))
    return f"{implemented} of {len(ROWS)} are implemented, {design} have no place by design, {later} come later"


def page() -> str:
    """A table per class and group."""
    lines = [HEAD.format(counts=counts())]
    for name in dict.fromkeys(row["class"] for row in ROWS):
        lines += [f"## {name}", ""]
        of_class = [row for row in ROWS if row["class"] == name]
        for group in dict.fromkeys(row["group"] for row in of_class):
            lines += [f"### {name}: {group}", ""] if len({r["group"] for r in of_class}) > 1 else []
            lines += [f"| {'RBDL' if 'rbdl' in name else 'Drake'} | mbjax |", "|---|---|"]
            lines += [table_row(row) for row in of_class if row["group"] == group]
            lines.append("")
    return "\n".join(lines)


def table_row(row: dict[str, str]) -> str:
    what = row["mbjax"]
    if is_implemented(row):
        what = ", ".join(f"`{name.removeprefix('mbjax.')}`" for name in what.split())
    return f"| `{row['method']}` | {what}{'; ' + row['note'] if row['note'] else ''} |"


if __name__ == "__main__":
    PAGE.write_text(page())
