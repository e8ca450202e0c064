"""Entry point of the `mbjax` command: parses arguments, sets exit codes, and prints errors as one clear line."""

import argparse
import os
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import jax
from rich.console import Console

from mbjax.errors import ModelError, ModelWarning, UnsupportedError
from mbjax.execution import keep_compiled_programs
from mbjax.reference_models import REFERENCE_MODELS, find_robot, no_robot
from mbjax.version import __version__
from mbjax.visualization.browser import BrowserError

from .bench import batch_sizes, bench_model, function_names, output_file
from .check import check_files
from .doctor import add_doctor_command, examine
from .identify import EPILOG as IDENTIFY_EPILOG
from .identify import add_identify_options, identify_model
from .inspect import inspect_model
from .option_words import in_options
from .questions import DEFAULT_QUESTIONS, QUESTIONS
from .simulate import simulate_model
from .view import add_view_command, view_model

UNBOUNDED = 10_000  # columns; wide enough that lines in a file or a pipe are not wrapped
EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_BAD_FILE, EXIT_UNSUPPORTED, EXIT_MISSING_EXTRA = 0, 1, 2, 3, 4, 5

EPILOG = f"""\
FILE is a URDF, SDFormat, MJCF or directives file, or the name of a robot: {", ".join(REFERENCE_MODELS)},
or one of example-robot-data, robot_descriptions or MuJoCo Playground where these are installed, such as panda.

exit codes: 0 done; 1 a measurement, a fit or writing failed, or check or doctor found errors; 2 wrong arguments or no
such file; 3 the file cannot be read as a model; 4 it asks for physics mbjax does not simulate (try --on-unsupported
warn); 5 an optional package or a browser is missing.
"""

BENCH_EPILOG = f"""\
functions:
{chr(10).join(f"  {name:18} {question.about}" for name, question in QUESTIONS.items())}

{EPILOG}"""


def make_parser() -> argparse.ArgumentParser:
    """The parser of the command's arguments."""
    parser = argparse.ArgumentParser(
        prog="mbjax",
        description="Differentiable rigid-body dynamics in JAX.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"mbjax {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    inspect = commands.add_parser(
        "inspect", help="print a model as a table, with everything its file left unused",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    inspect.add_argument("file", metavar="FILE", help="a robot file, or a robot's name")
    add_loading_options(inspect)

    simulate = commands.add_parser(
        "simulate", help="simulate a robot under PD control, differentiate the rollout, write pictures",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    simulate.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="arm",
        help="a robot file, or a robot's name (default: arm)",
    )
    simulate.add_argument(
        "--duration", type=positive, default=4.0, metavar="S", help="seconds to simulate (default: 4)"
    )
    simulate.add_argument(
        "--time-step", type=positive, default=1e-3, metavar="S", help="seconds a step (default: 0.001)"
    )
    simulate.add_argument(
        "--gradient-duration", type=positive, default=0.5, metavar="S",
        help="seconds of the rollout that is differentiated (default: 0.5)",
    )  # fmt: skip
    simulate.add_argument(
        "--bandwidth", type=positive, default=3.0, metavar="HZ", help="of the PD control (default: 3)"
    )
    simulate.add_argument(
        "--output", type=Path, default=Path("output"), metavar="DIR",
        help="where animation.html and plots.png go (default: output)",
    )  # fmt: skip
    add_loading_options(simulate)

    check = commands.add_parser(
        "check", help="say what is wrong with robot files, with file and line",
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    check.add_argument("file", metavar="FILE", nargs="+", help="robot files, or names of robots")
    check.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    check.add_argument("--strict", action="store_true", help="exit with 1 for warnings too")
    check.add_argument(
        "--collisions", action="store_true", help="also look for shapes that overlap where the model starts (compiles)"
    )
    check.add_argument("--all", action="store_true", help="print what is merely not used as well")
    add_loading_options(check)

    bench = commands.add_parser(
        "bench", help="measure compile time, run time and memory of a robot's functions on this machine",
        epilog=BENCH_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    bench.add_argument("file", metavar="FILE", help="a robot file, or a robot's name")
    bench.add_argument(
        "--batch", type=batch_sizes, default=[1, 64, 4096], metavar="N,N,…",
        help="numbers of worlds evaluated together (default: 1,64,4096)",
    )  # fmt: skip
    bench.add_argument("--dtype", choices=("float32", "float64"), default="float32", help="(default: float32)")
    bench.add_argument(
        "--functions", type=function_names, default=list(DEFAULT_QUESTIONS), metavar="NAME,NAME,…",
        help=f"what to measure, of the list below (default: {','.join(DEFAULT_QUESTIONS)})",
    )  # fmt: skip
    bench.add_argument(
        "--time-step", type=positive, default=1e-3, metavar="S", help="seconds of `step` (default: 0.001)"
    )
    bench.add_argument(
        "--seconds", type=positive, default=0.6, metavar="S", help="to repeat each measurement (default: 0.6)"
    )
    bench.add_argument(
        "--output", type=output_file, metavar="FILE", help="write the numbers to this .csv or .json file too"
    )
    add_loading_options(bench)

    identify = commands.add_parser(
        "identify", help="fit parameters of a robot to logs, with error bars and a report",
        epilog=IDENTIFY_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_identify_options(identify)
    add_loading_options(identify)
    add_view_command(commands, EPILOG, add_loading_options)
    add_doctor_command(commands, EPILOG)
    return parser


def add_loading_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of how a file is read, which all commands share."""
    parser.add_argument(
        "--base", choices=("file", "fixed", "floating"), default="file",
        help="what holds the root: as the file says (free if nothing), welded to the world, or free",
    )  # fmt: skip
    parser.add_argument(
        "--mimic", choices=("couple", "eliminate", "free"), default="couple",
        help="joints that mimic others: held by couplers (default), without coordinates of their own, or let go",
    )  # fmt: skip
    parser.add_argument(
        "--actuators", choices=("file", "joints"), default="file",
        help="those of the file, or also one for each joint of one degree of freedom that has none",
    )  # fmt: skip
    parser.add_argument(
        "--package", action="append", default=[], metavar="NAME=DIR", help="where package://NAME is; may be repeated"
    )
    parser.add_argument(
        "--xacro-arg", action="append", default=[], metavar="NAME:=VALUE",
        help="an argument of a xacro file, which is expanded (so are files called *.xacro); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--on-unsupported", choices=("error", "warn"), default="error",
        help="whether physics mbjax does not simulate stops the reading",
    )  # fmt: skip


def positive(text: str) -> float:
    """Parses a finite number above zero."""
    value = float(text)
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a finite number above 0, got {text}")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    console, errors = Console(highlight=False, width=output_width()), Console(stderr=True, highlight=False)
    try:
        if options.command == "check":
            options.file = [file_to_check(name) for name in options.file]
        elif options.command != "doctor":
            options.file = find_model_file(options.file)
        options.package_map = parse_packages(getattr(options, "package", ()))
        options.xacro_arguments = parse_xacro_arguments(getattr(options, "xacro_arg", ()))
    except (FileNotFoundError, ValueError) as error:
        print_error(errors, str(error))
        return EXIT_USAGE
    jax.config.update("jax_enable_x64", True)  # finite differences need it; only an application may set it
    if arguments is None and options.command != "bench":  # a process of its own; `bench` measures how long it takes
        keep_compiled_programs()
    try:
        with warnings.catch_warnings():
            if options.command == "identify":  # which prints no load report, and whose logs have warnings of their own
                warnings.simplefilter("always", ModelWarning)
                warnings.showwarning = lambda message, *_: print_warning(errors, str(message))
            else:
                warnings.simplefilter("ignore", ModelWarning)  # the load report lists these warnings, in order
            return run(options, console)
    except ImportError as error:  # `MissingPackageError` is one
        print_error(errors, str(error))
        return EXIT_MISSING_EXTRA
    except UnsupportedError as error:
        print_error(errors, str(error))
        return EXIT_UNSUPPORTED
    except ModelError as error:
        print_error(errors, str(error))
        return EXIT_BAD_FILE
    except (BrowserError, OSError) as error:  # a file that cannot be written, a port in use
        print_error(errors, str(error))
        return EXIT_FAILED
    except KeyboardInterrupt:
        print_error(errors, "stopped")
        return 130


def output_width() -> int | None:
    """Width of the output in columns; None lets rich use the terminal's or COLUMNS, and other outputs have no limit."""
    return None if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit() else UNBOUNDED


def run(options: argparse.Namespace, console: Console) -> int:
    """Runs the chosen command; returns its exit code."""
    if options.command == "inspect":
        inspect_model(options, console)
    elif options.command == "check":
        return EXIT_OK if check_files(options, console) else EXIT_FAILED
    elif options.command == "identify":
        return EXIT_OK if identify_model(options, console) else EXIT_FAILED
    elif options.command == "bench":
        return EXIT_OK if bench_model(options, console) else EXIT_FAILED
    elif options.command == "doctor":
        return EXIT_OK if examine(options, console) else EXIT_FAILED
    elif options.command == "view":
        view_model(options, console)
    else:
        simulate_model(options, console)
    return EXIT_OK


def file_to_check(name: str) -> Path:
    """The path of a file, or of a robot by name; where there is none, the name, which is what is wrong with it."""
    try:
        return find_model_file(name)
    except FileNotFoundError:
        return Path(name)


def find_model_file(name: str) -> Path:
    """The path of a file, or of a robot by name."""
    file = Path(name)
    if file.exists():
        return file
    robot = find_robot(name)
    if robot is not None:
        return robot
    folder = file.parent
    nearby = [p.name for p in folder.iterdir()] if folder.is_dir() else []
    close = get_close_matches(file.name, nearby, n=3)
    hint = f" Did you mean the file {' or '.join(close)}?" if close else ""
    raise FileNotFoundError(f"there is no file '{name}', and {no_robot(name)}{hint}")


def parse_packages(pairs: Sequence[str]) -> dict[str, str]:
    """Parses `NAME=DIR` options to a dict of folders by package name."""
    packages = {}
    for pair in pairs:
        name, separator, folder = pair.partition("=")
        if not (name and separator and Path(folder).is_dir()):
            raise FileNotFoundError(f"--package {pair}: write NAME=DIR with a folder that exists.")
        packages[name] = folder
    return packages


def parse_xacro_arguments(pairs: Sequence[str]) -> dict[str, str] | None:
    """Parses `NAME:=VALUE` options to a dict; None without any."""
    arguments = {}
    for pair in pairs:
        name, separator, value = pair.partition(":=")
        if not (name and separator):
            raise ValueError(f"--xacro-arg {pair}: write NAME:=VALUE.")
        arguments[name] = value
    return arguments or None


def print_error(console: Console, message: str) -> None:
    """Prints an error as one line that starts with the program's name."""
    console.print(f"mbjax: error: {in_options(message)}", style="red", markup=False, soft_wrap=True)


def print_warning(console: Console, message: str) -> None:
    """Prints a warning as one line."""
    console.print(f"mbjax: warning: {in_options(message)}", style="yellow", markup=False, soft_wrap=True)


if __name__ == "__main__":
    sys.exit(main())
