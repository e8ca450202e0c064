"""Leaves as numbers for tables, where they are known."""

from typing import Any

import numpy as np
from jax.core import Tracer
from jaxtyping import Float

from .deformable_bodies import DeformableBodies

UNKNOWN = "–"


def concrete(leaf: Any) -> np.ndarray | None:
    """A leaf as numbers, or None while it is traced or has a batch."""
    if isinstance(leaf, Tracer) or not hasattr(leaf, "ndim") or leaf.ndim != 1:
        return None
    return np.asarray(leaf, dtype=float)


def known_element_masses(deformables: DeformableBodies) -> Float[np.ndarray, "*batch m"] | None:
    """Masses of all elements in kg, for each world of a batch; None while they are traced."""
    density, positions = deformables.mass_density, deformables.reference_positions
    if isinstance(density, Tracer) or isinstance(positions, Tracer):
        return None
    corners = np.asarray(positions, float)[..., deformables.mesh.reference_corners, :]
    volumes = np.linalg.det(corners[..., 1:, :] - corners[..., :1, :]) / 6.0
    places = deformables.layout.numbers_of_elements("mass_density")
    return np.asarray(density, float)[..., places] * volumes
