"""Imports packages that mbjax does not need by itself."""

import importlib
from types import ModuleType

from mbjax.errors import ModelError


def imported(module: str, call: str, extra: str | None = None) -> ModuleType:
    """The module; raises `ModelError` that says what to install where it is missing."""
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != package:
            raise
        way_out = f'pip install "mbjax[{extra}]"' if extra else f"pip install {package}"
        raise ModelError(f"{call}: it needs the package {package}, which is not installed: {way_out}.") from None
