"""Building a system: MultibodyPlant, the elements it holds, and `finalize`, which makes a model of it."""

from .multibody_plant import MultibodyPlant as MultibodyPlant
