"""Robot files, read and written: URDF, SDFormat, MJCF, model directives and xacro, one folder a format.

A reader turns a file into records, of which a plant is built; a writer turns a model into records, and these into text.
"""

from .parser import Parser as Parser
from .parser import load as load
from .urdf import to_urdf as to_urdf
from .notes.write_notes import Written as Written
from .sdf import to_sdf as to_sdf
from .mjcf import to_mjcf as to_mjcf
