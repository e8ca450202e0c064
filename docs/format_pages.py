"""Writes docs/reference/formats/: what becomes of every element and attribute of each format, and of robots of others.

`python docs/format_pages.py` writes the pages from the tables that the readers use, from MuJoCo's own schema and from
benchmarks/corpora.json. They are kept in the repository, since the documentation is built without mbjax, and a test
compares them.
"""

import json
import pathlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference" / "formats"
CORPORA = ROOT / "benchmarks" / "corpora.json"
WORDS = """**Used**: it is in the model. **Listed**: it changes nothing, and `model.report()` names it with the reason.
**Refused**: an error, or with `on_unsupported="warn"` an entry and a warning where the file makes sense without it.
What stands in no row is listed too."""
WRITES_THE_NUMBERS = "python -m benchmarks.corpora playground=0.2.0=FOLDER"
WRITTEN = "<!-- Written by docs/format_pages.py; do not edit. -->"


def code(names: Iterable[str]) -> str:
    """Names in alphabetic order, as code."""
    return " ".join(f"`{name}`" for name in sorted(names))


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table in Markdown."""
    lines = [f"| {' | '.join(header)} |", "|" + "---|" * len(header)]
    return "\n".join([*lines, *(f"| {' | '.join(cell.replace('|', '∣') for cell in row)} |" for row in rows)])


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", WRITTEN, *parts]) + "\n"


def elements(read: Mapping[str, tuple[set[str], set[str]]]) -> str:
    """The table of what is used."""
    rows = [(f"`<{tag}>`", code(read[tag][0]), code(read[tag][1])) for tag in sorted(read)]
    return table(("used element", "its attributes that are used", "what is used inside"), rows)


def reasons(what: str, found: Mapping[str, str]) -> str:
    """The table of what is listed or refused, by reason."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in found.items():
        by_reason.setdefault(reason, []).append(name)
    return table((what, "because"), sorted((code(names), reason) for reason, names in by_reason.items()))


def urdf() -> str:
    from mbjax.formats.urdf import leftovers as leftovers

    return page(
        "URDF, element by element",
        WORDS,
        elements(leftovers.READ),
        reasons("listed element", leftovers.REASONS),
        reasons("refused element", leftovers.PHYSICS),
    )


def sdformat() -> str:
    from mbjax.formats.sdf import leftovers

    within = {f"{tag} in {holder}": reason for (holder, tag), reason in leftovers.REASONS_IN.items()}
    refused = leftovers.PHYSICS | {
        f"{tag} in {holder}": reason for (holder, tag), reason in leftovers.PHYSICS_IN.items()
    }
    refused |= dict.fromkeys(leftovers.REFUSED_BY_READERS, "it has no counterpart in the model; the error says more")
    return page(
        "SDFormat, element by element",
        WORDS,
        "Elements that are not in the first column of the first table but in its last hold a text.",
        elements(leftovers.READ),
        reasons("listed element", leftovers.REASONS | within),
        reasons("refused element", refused),
    )


def directives() -> str:
    from mbjax.formats.directives import reader

    rows = [(f"`{kind}`", "used", code(keys)) for kind, keys in reader.KEYS.items()]
    rows += [("poses, such as `X_PF`", "used", code(reader.TRANSFORM))]
    rows += [(f"`rotation: {tag}`", "used", code(keys)) for tag, keys in reader.ROTATIONS.items()]
    rows += [(f"`{kind}`", "refused", reason) for kind, reason in reader.REFUSED.items()]
    return page("Model directives, key by key", "Any other key is an error.", table(("directive", "", "keys"), rows))


def schema() -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Paths of elements with their attributes, from the schema that MuJoCo prints."""
    import mujoco

    rows: list[tuple[tuple[str, ...], list[str]]] = []
    path: tuple[str, ...] = ()
    for line in mujoco.mj_printSchema(False, False).splitlines():
        found = re.match(r"^( *)([()a-z0-9_]+) \((?:.)\)\s*(.*)$", line)
        if found:
            path = (*path[: len(found.group(1)) // 3], found.group(2).replace("(world)", ""))
            rows.append((path, found.group(3).split()))
        else:
            rows[-1][1].extend(line.split())
    yield from rows


def mjcf() -> str:
    import mujoco

    from mbjax.formats.mjcf.coverage import LISTED_TAGS, REFUSED_TAGS, status_of

    rows = []
    for path, attributes in schema():
        above = [tag for tag in path[:-1] if tag in LISTED_TAGS or tag in REFUSED_TAGS]
        if above:
            continue
        name = "`" + "/".join(path) + "`"
        status, reason = status_of(path[-1]) or ("UNKNOWN", "")
        if status != "used":
            words = f"{status}, with all it holds" + (f": {reason}" if reason else "")
            rows.append((name, words, "", "", ""))
            continue
        by_status: dict[str, list[str]] = {"used": [], "refused": [], "UNKNOWN": []}
        listed: dict[str, list[str]] = {}
        for attribute in attributes:
            status, reason = status_of(path[-1], attribute) or ("UNKNOWN", "")
            (listed.setdefault(reason, []) if status == "listed" else by_status[status]).append(attribute)
        reasons = "; ".join(f"{code(names)}: {reason}" for reason, names in sorted(listed.items()))
        refused = code([*by_status["refused"], *(f"{name} (UNKNOWN)" for name in by_status["UNKNOWN"])])
        rows.append((name, "used", code(by_status["used"]), reasons, refused))
    return page(
        "MJCF, element by element",
        f"The rows are those of the schema that MuJoCo {mujoco.__version__} prints. " + WORDS,
        "Some attributes are used by MuJoCo's compiler, which turns them into others before mbjax reads its result. "
        "Attributes that are refused are so where the compiled model has a value other than zero.",
        table(("element", "", "used attributes", "listed attributes", "refused attributes"), rows),
    )


def robots() -> str:
    """The table of packages with robot files, from what benchmarks/corpora.py has found."""
    found = json.loads(CORPORA.read_text())
    rows = []
    for corpus in found["corpora"]:
        refused = "; ".join(f"{count} × {reason}" for reason, count in corpus["refused"].items())
        left_out = "; ".join(f"{count} × {reason}" for reason, count in corpus["warn"].items())
        agreement = "" if corpus["agreement"] is None else f"{corpus['agreement']:.0e}"
        row = (f"{corpus['package']} {corpus['version']}", corpus["format"], str(corpus["files"]), str(corpus["loads"]))
        rows.append((*row, left_out, refused, agreement))
    header = ("package", "format", "files", "load", 'load with `on_unsupported="warn"`', "refused", "agreement")
    return page(
        "Robots of others",
        "Files of packages from PyPI: how many load as they are, how many with physics left out, and why the others do "
        f"not. `{WRITES_THE_NUMBERS}` writes the numbers; FOLDER holds playground's files, "
        "which the environment of the tests has not. Agreement of MJCF with MuJoCo "
        f"{found['mujoco']} is the largest difference of poses, M, forces and actuation at random states, relative to "
        "the largest number, over the files that load as they are.",
        table(header, rows),
    )


PAGES = {"urdf": urdf, "sdformat": sdformat, "mjcf": mjcf, "directives": directives, "robots": robots}


def main() -> None:
    """Writes all pages."""
    sys.path.insert(0, str(ROOT))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in PAGES.items():
        (FOLDER / f"{name}.md").write_text(text())


if __name__ == "__main__":
    main()
