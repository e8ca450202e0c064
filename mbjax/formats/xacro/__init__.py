"""xacro: files with macros and expressions, expanded by the package of that name in a process of its own."""

from .expansion import expand_xacro as expand_xacro
from .expansion import is_xacro as is_xacro
