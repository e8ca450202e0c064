"""`mbjax inspect FILE`: prints the model as a table, and its load report."""

import argparse

from rich.console import Console

from mbjax.model.model_table import print_model

from .loading import load_as_it_must_be
from .option_words import in_options


def inspect_model(options: argparse.Namespace, console: Console) -> None:
    """Prints the model's table and counts, and every entry of the load report that was not simply used."""
    model = load_as_it_must_be(
        options.file, base=options.base, package_map=options.package_map, on_unsupported=options.on_unsupported,
        mimic=options.mimic, xacro_arguments=options.xacro_arguments, actuators=options.actuators,
    )  # fmt: skip
    print_model(console, model, weld="--base fixed")
    entries = [entry for entry in model.report() if entry.status != "used"]
    console.print(f"\nload report: {len(entries)} entries" if entries else "\nload report: everything was used")
    for entry in entries:
        console.print(in_options(f"  {entry}"), markup=False, soft_wrap=True)
