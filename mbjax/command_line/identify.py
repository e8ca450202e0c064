"""`mbjax identify ROBOT LOG…`: fits parameters of a robot to logs, prints them with error bars, writes a report."""

import argparse
from pathlib import Path

from rich.console import Console

from mbjax import system_identification as si
from mbjax.errors import ModelError
from mbjax.formats import load, to_mjcf, to_sdf, to_urdf
from mbjax.model import MultibodyModel
from mbjax.system_identification.system import velocity_labels

SPACES = {"positive": si.positive, "physical": si.physical, "free": si.free, "fixed": si.fixed}
RANGES = {"scaled": si.scaled, "between": si.between}

WRITERS = {".urdf": to_urdf, ".sdf": to_sdf, ".world": to_sdf, ".xml": to_mjcf, ".mjcf": to_mjcf}

EPILOG = """\
parameters are patterns KIND:NAME=SPACE, for example

  mbjax identify arm log.csv --parameters 'mass:*=scaled(0.5,2)' 'joint_friction:*=positive' 'body:tool=physical'

A space is positive, physical, free, fixed, scaled(LOW,HIGH) or between(LOW,HIGH); physical(nearest) starts bodies with
an impossible inertia at the nearest possible one. Kinds are mass, center_of_mass,
inertia, body, joint_friction, joint_damping, armature, frame_translation, friction, stiffness and others; a wrong one
prints them all. Logs are CSV, npz, Parquet or MCAP files.
"""


def identify_model(options: argparse.Namespace, console: Console) -> bool:
    """Fits, prints and writes; whether the fit converged."""
    torques = options.method == "torques"
    if not torques and (options.row or options.contact):
        raise ModelError(
            "--row and --contact say which efforts a fit of torques compares; --method trajectories simulates with all "
            "of them. Leave them out, or fit with --method torques."
        )
    if torques and options.horizon is not None:
        raise ModelError("--horizon is of --method trajectories; leave it out, or add that method.")
    if options.write is not None and options.write.suffix.lower() not in WRITERS:
        raise ModelError(f"--write {options.write}: the name must end in {', '.join(WRITERS)}, which says the format.")
    model = load(
        options.file, time_step=0.0 if torques else options.time_step, base=options.base,
        package_map=options.package_map, on_unsupported=options.on_unsupported, mimic=options.mimic,
        xacro_arguments=options.xacro_arguments, actuators=options.actuators,
    )  # fmt: skip
    unknown = si.Parameters(model, dict(parse_parameter(text) for text in options.parameters))
    columns, units = columns_of(options, model), parse_pairs("--unit", options.unit)
    offsets = parse_numbers("--time-offset", options.time_offset)

    def read(path: Path) -> si.Log:
        return si.read_log(
            path, model, columns=columns, units=units, cutoff=options.cutoff, period=options.period,
            time_offsets=offsets, start=options.start, stop=options.stop,
        )  # fmt: skip

    logs, held_out = ([read(path) for path in paths] for paths in (options.log, options.held_out))
    if torques:
        rows = tuple(options.row) or None
        method = si.Torques(loss=options.loss, contacts=tuple(options.contact), rows=rows)
    else:
        method = si.Trajectories(horizon=options.horizon, loss=options.loss)
    fit = si.fit(unknown, logs, method, held_out=tuple(held_out), unseen="report")
    console.print(str(fit), markup=False, soft_wrap=True)
    if options.output is not None:
        console.print(f"\nwrote {fit.report(options.output)}", markup=False, soft_wrap=True)
    if options.write is not None:
        write = WRITERS[options.write.suffix.lower()]
        options.write.parent.mkdir(parents=True, exist_ok=True)
        text = write(fit.model, options.write, on_unsupported=options.on_unsupported)
        console.print(f"\nwrote {options.write}", markup=False, soft_wrap=True)
        for entry in text.report:
            console.print(f"  {entry}", markup=False, soft_wrap=True)
    return fit.converged


def columns_of(options: argparse.Namespace, model: MultibodyModel) -> dict[str, str | None]:
    """What `--column` says; where `--row` names the efforts that were measured, the log need not have others."""
    unmeasured = [label for label in velocity_labels(model) if options.row and label not in options.row]
    return dict.fromkeys(f"effort.{label}" for label in unmeasured) | parse_pairs("--column", options.column)


def parse_parameter(text: str) -> tuple[str, si.Space]:
    """A pattern and its space, from `mass:*=scaled(0.5,2)`; positive, or physical for bodies, if none is given."""
    pattern, _, space = text.partition("=")
    if not space:
        space = "physical" if pattern.startswith(("body:", "inertia:")) else "positive"
    if space == "physical(nearest)":
        return pattern, si.physical(nearest=True)
    name, _, rest = space.partition("(")
    if name in SPACES and not rest:
        return pattern, SPACES[name]()
    numbers = rest.rstrip(")").split(",")
    if name not in RANGES or len(numbers) != 2:
        raise ModelError(
            f"--parameters {text}: the space must be positive, physical, free, fixed, scaled(LOW,HIGH) or "
            "between(LOW,HIGH)."
        )
    try:
        low, high = (float(x) for x in numbers)
    except ValueError:
        raise ModelError(f"--parameters {text}: {', '.join(numbers)} are no two numbers.") from None
    return pattern, RANGES[name](low, high)


def parse_pairs(option: str, pairs: list[str]) -> dict[str, str]:
    """`NAME=VALUE` options as a dict."""
    found = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not (name and separator and value):
            raise ModelError(f"{option} {pair}: write NAME=VALUE.")
        found[name] = value
    return found


def parse_numbers(option: str, pairs: list[str]) -> dict[str, float]:
    """`NAME=NUMBER` options as a dict."""
    found = {}
    for name, value in parse_pairs(option, pairs).items():
        try:
            found[name] = float(value)
        except ValueError:
            raise ModelError(f"{option} {name}={value}: '{value}' is no number.") from None
    return found


def add_identify_options(parser: argparse.ArgumentParser) -> None:
    """Adds the command's own options."""
    parser.add_argument("file", metavar="ROBOT", help="a robot file or a bundled model's name")
    parser.add_argument("log", metavar="LOG", nargs="+", type=Path, help="logs: .csv, .npz, .parquet or .mcap")
    parser.add_argument(
        "--parameters", nargs="+", required=True, metavar="KIND:NAME=SPACE", help="what is unknown, see below"
    )
    parser.add_argument(
        "--method", choices=("torques", "trajectories"), default="torques",
        help="fit efforts by inverse dynamics (default), or motions by simulation",
    )  # fmt: skip
    parser.add_argument("--time-step", type=float, default=1e-3, metavar="S", help="of trajectories (default: 0.001)")
    parser.add_argument("--horizon", type=int, metavar="N", help="samples a window of trajectories (default: all)")
    parser.add_argument(
        "--loss", choices=("least_squares", "huber", "soft_l1"), default="least_squares", help="for outliers"
    )
    parser.add_argument("--cutoff", type=float, metavar="HZ", help="of a filter for measured and predicted efforts")
    parser.add_argument(
        "--column", action="append", default=[], metavar="SIGNAL=NAME",
        help="the file's column of a signal, such as effort.elbow=i4, or a number if it stands still, such as "
        "position.head=0; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--unit", action="append", default=[], metavar="SIGNAL=UNIT", help="such as position=deg; may be repeated"
    )
    parser.add_argument(
        "--time-offset", action="append", default=[], metavar="SIGNAL=S",
        help="seconds added to the times of a signal, such as effort=-0.01; may be repeated",
    )  # fmt: skip
    parser.add_argument("--period", type=float, metavar="S", help="resample to this period (default: the log's)")
    parser.add_argument("--start", type=float, metavar="S", help="leave out what is before this time")
    parser.add_argument("--stop", type=float, metavar="S", help="leave out what is after this time")
    parser.add_argument(
        "--contact", action="append", default=[], metavar="BODY",
        help="project out forces on a body that nobody measured; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--row", action="append", default=[], metavar="JOINT",
        help="a joint whose effort was measured (default: all); may be repeated",
    )  # fmt: skip
    parser.add_argument("--held-out", nargs="+", type=Path, default=[], metavar="LOG", help="logs that only check")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write a report as one HTML file")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="write the fitted robot as .urdf, .sdf or, for MJCF, .xml"
    )
