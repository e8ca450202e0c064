"""`python -m mbjax` is the `mbjax` command."""

import sys

from mbjax.command_line import main

sys.exit(main())
