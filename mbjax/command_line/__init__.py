"""The `mbjax` command: `mbjax simulate [FILE]`, `mbjax inspect FILE`."""

from .main import main as main
