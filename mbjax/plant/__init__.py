"""Builds systems: `MultibodyPlant` collects the elements, and its `finalize` makes a model of them."""

from .deformables import DeclaredDeformable as DeclaredDeformable
from .multibody_plant import MultibodyPlant as MultibodyPlant
