"""The `mbjax` command: `mbjax simulate [FILE]`, `mbjax inspect FILE`, `mbjax bench FILE`."""

from .main import main as main
