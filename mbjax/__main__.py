"""Runs the `mbjax` command as `python -m mbjax`."""

import sys

from .command_line import main

sys.exit(main())
