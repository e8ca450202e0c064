"""Edge: robot files → calls of the plant. Reads URDF."""

from .parser import Parser as Parser
from .parser import load as load
