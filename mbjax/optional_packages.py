"""Imports packages that mbjax does without: each belongs to an extra, and is imported where it is needed."""

import importlib
from typing import Any

from .errors import MissingPackageError


def imported(
    module: str, needs: str, extra: str | None = None, otherwise: str = "", file: str | None = None,
    line: int | None = None,
) -> Any:  # fmt: skip
    """The module, or `MissingPackageError` if its package is missing.

    `needs` is the start of the message, such as "plot needs matplotlib"; `otherwise` says what works without. `file`
    and `line` say what is read, if that needs the package.
    """
    package = module.split(".")[0]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != package:
            raise  # the package is there, and lacks one of its own
        message = f"{needs}: {how_to_install(package, extra)}.{otherwise and ' '}{otherwise}"
        raise MissingPackageError(message, file=file, line=line) from None


def how_to_install(package: str, extra: str | None) -> str:
    """The command that installs an extra, or a package that no extra has."""
    return f'pip install "mbjax[{extra}]"' if extra else f"pip install {package}"
