"""`mbjax check FILE…`: what is wrong with robot files, as lines or as JSON."""

import argparse
import dataclasses
import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.console import Console

from mbjax.contact import signed_distances
from mbjax.errors import ModelError, ModelWarning, ParseError
from mbjax.model import IGNORED, KEPT, REPAIRED, MultibodyModel, ReportEntry, default_positions
from mbjax.progress import telling
from mbjax.system_identification.parameter_table import counted

from .loading import load_as_it_must_be
from .option_words import in_options

ERROR, WARNING, INFO = "error", "warning", "info"
# What is left out and changes what one gets, other than what has no place in a rigid-body model.
MATTERS = re.compile(r"the model is built without it|file not found|no mass properties")
PLACED = re.compile(r"(?P<file>[^\n]*?):(?P<line>\d+): (?P<message>.*)", re.DOTALL)
SLACK = 1e-9  # m or rad


@dataclasses.dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or, as an info, not used."""

    severity: str
    file: str
    line: int | None
    element: str
    message: str

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.severity}: {self.element + ': ' if self.element else ''}{self.message}"


def check_files(options: argparse.Namespace, console: Console) -> bool:
    """Prints what is found; whether the files pass."""
    findings = [finding for file in options.file for finding in find_all(file, options)]
    count = {severity: sum(f.severity == severity for f in findings) for severity in (ERROR, WARNING, INFO)}
    shown = [finding for finding in findings if options.all or finding.severity != INFO]
    if options.json:
        answer = {"files": len(options.file), "errors": count[ERROR], "warnings": count[WARNING]}
        console.print_json(json.dumps({**answer, "findings": [dataclasses.asdict(finding) for finding in shown]}))
    else:
        for finding in shown:
            console.print(str(finding), markup=False, soft_wrap=True)
        hidden = "" if options.all or not count[INFO] else f", {count[INFO]} on what is not used (--all)"
        files, errors = counted(len(options.file), "file"), counted(count[ERROR], "error")
        console.print(f"{files}: {errors}, {counted(count[WARNING], 'warning')}{hidden}", markup=False)
    return not count[ERROR] and not (options.strict and count[WARNING])


def find_all(file: Path, options: argparse.Namespace) -> Iterator[Finding]:
    """What is wrong with one file: the error that stops the reading, or all that the model shows."""
    try:
        model = load_as_it_must_be(
            file, base=options.base, package_map=options.package_map, on_unsupported=options.on_unsupported,
            mimic=options.mimic, xacro_arguments=options.xacro_arguments, actuators=options.actuators,
        )  # fmt: skip
    except ParseError as error:
        yield finding_of_error(error, error.file or str(file), error.line)
        return
    except ModelError as error:
        yield finding_of_error(error, str(file), None)
        return
    for entry in model.report():
        if entry.status in (IGNORED, KEPT, REPAIRED):
            yield finding_of_entry(entry, str(file))
    yield from positions_outside_limits(model, str(file))
    if options.collisions:
        with telling(f"collisions of {file.name}"):
            found = list(overlaps(model, str(file)))
        yield from found


def finding_of_error(error: ModelError, file: str, line: int | None) -> Finding:
    """The message without its place."""
    found = PLACED.fullmatch(str(error))
    if found is not None and (line is not None or Path(found["file"]).is_file()):
        return Finding(ERROR, found["file"], int(found["line"]), "", in_options(found["message"]))
    return Finding(ERROR, file, line, "", in_options(str(error).removeprefix(f"{file}: ")))


def finding_of_entry(entry: ReportEntry, file: str) -> Finding:
    """What was kept or repaired is a warning; what was left out is one where it matters."""
    matters = entry.status in (KEPT, REPAIRED) or MATTERS.search(entry.message) is not None
    place, _, line = entry.place.rpartition(":")
    if not line.isdecimal():
        place, line = entry.place or file, ""
    severity = WARNING if matters else INFO
    said = in_options(entry.message)
    if not re.search(rf"\b{entry.status}\b", said):
        said = f"{entry.status}: {said}"
    return Finding(severity, place or file, int(line) if line else None, entry.element, said)


def positions_outside_limits(model: MultibodyModel, file: str) -> Iterator[Finding]:
    """Joints that start outside their limits."""
    q = np.asarray(default_positions(model))
    lower, upper = (np.asarray(limits) for limits in (model.position_lower_limits, model.position_upper_limits))
    for i in np.flatnonzero((q < lower - SLACK) | (q > upper + SLACK)):
        name = model.position_names()[i]
        message = f"starts at {q[i]:g}, outside its limits {lower[i]:g} to {upper[i]:g}"
        yield Finding(WARNING, file, None, f"position '{name}'", message)


def overlaps(model: MultibodyModel, file: str) -> Iterator[Finding]:
    """Collision geometries that overlap where the model starts, of those that may touch."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)
        found = signed_distances(model, default_positions(model))
    for (A, B), distance in zip(found.pairs, np.asarray(found.distance), strict=True):
        if distance < -SLACK:
            message = f"it overlaps '{B}' by {-1e3 * distance:.3g} mm where the model starts"
            yield Finding(WARNING, file, None, f"collision geometry '{A}'", message)
