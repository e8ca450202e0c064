"""SDFormat: worlds, models in models, includes, frames and Drake's extensions."""

from .reader import Options as Options
from .reader import read_sdf as read_sdf
from .writer import to_sdf as to_sdf
