"""`mbjax view FILE`: shows a robot in a browser, with sliders, a simulation, and bodies that can be dragged."""

import argparse
import webbrowser
from pathlib import Path
from typing import Any

from rich.console import Console

from mbjax.formats import load
from mbjax.visualization import Viewer
from mbjax.visualization.live.viewer import import_viser


def add_view_command(commands: Any, epilog: str, add_loading_options: Any) -> None:
    """Adds the command to the parser."""
    view = commands.add_parser(
        "view", help="show a robot in a browser: joint sliders, simulation, bodies that the mouse drags",
        epilog=epilog, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    view.add_argument("file", metavar="FILE", help="a robot file or a bundled model's name")
    view.add_argument("--time-step", type=float, default=1e-3, metavar="S", help="of the simulation (default: 0.001)")
    view.add_argument("--port", type=int, default=8080, metavar="N", help="of the server; 0 takes any (default: 8080)")
    view.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS",
        help="who may see it: this machine (default), or 0.0.0.0 for the whole network",
    )  # fmt: skip
    view.add_argument(
        "--allow-host", action="append", default=[], metavar="NAME",
        help="a further name under which the view may be opened, as behind a proxy; may be given several times",
    )  # fmt: skip
    view.add_argument("--no-browser", action="store_true", help="print the address only")
    view.add_argument(
        "--save", type=Path, metavar="FILE", help="write a picture, page or video of the default pose instead"
    )
    add_loading_options(view)


def view_model(options: argparse.Namespace, console: Console) -> None:
    """Loads a model and serves its view until the program is interrupted."""
    if options.save is None:
        import_viser()
    model = load(
        options.file, time_step=options.time_step, base=options.base, package_map=options.package_map,
        on_unsupported=options.on_unsupported, mimic=options.mimic, xacro_arguments=options.xacro_arguments,
        actuators=options.actuators,
    )  # fmt: skip
    if options.save is not None:
        from mbjax.simulation import default_state
        from mbjax.visualization import animate

        console.print(f"wrote {animate(model, default_state(model)).save(options.save)}", markup=False)
        return
    with Viewer(model, host=options.host, port=options.port, allow_hosts=options.allow_host) as viewer:
        console.print(f"{options.file.name}: {viewer.url} (Ctrl+C ends it)", markup=False)
        if not options.no_browser:
            webbrowser.open(viewer.url)
        viewer.wait()
