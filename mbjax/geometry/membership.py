"""Which points are within a shape, its surface included; for points that are known, like the nodes of a mesh."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from scipy.spatial import ConvexHull

from mbjax.errors import ModelError
from mbjax.number_rules import shown

from .shapes import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Sphere

ON_SURFACE = 1e-12  # m, or share of an ellipsoid's axes: as near as this is within


def is_inside(call: str, shape: Any, p_GP: Float[np.ndarray, "n 3"]) -> Bool[np.ndarray, " n"]:
    """Mask of the points P, in the shape's frame G, that are within the shape; `call` begins the message of errors."""
    x, y, z = p_GP.T
    across = np.hypot(x, y)
    match shape:
        case Sphere():
            return np.linalg.norm(p_GP, axis=1) <= shape.radius + ON_SURFACE
        case Box():
            return np.all(np.abs(p_GP) <= 0.5 * np.array(shape.size) + ON_SURFACE, axis=1)
        case Cylinder():
            return (across <= shape.radius + ON_SURFACE) & (np.abs(z) <= 0.5 * shape.length + ON_SURFACE)
        case Capsule():
            beyond = np.maximum(np.abs(z) - 0.5 * shape.length, 0.0)
            return np.hypot(across, beyond) <= shape.radius + ON_SURFACE
        case Ellipsoid():
            return np.linalg.norm(p_GP / np.array([shape.a, shape.b, shape.c]), axis=1) <= 1.0 + ON_SURFACE
        case HalfSpace():
            return z <= ON_SURFACE
        case Convex():
            facets = ConvexHull(np.array(shape.vertices)).equations
            return np.all(p_GP @ facets[:, :3].T + facets[:, 3] <= ON_SURFACE, axis=1)
    raise ModelError(
        f"{call}: the shape must be a mbjax.Box, Sphere, Cylinder, Capsule, Ellipsoid, HalfSpace or Convex, got "
        f"{shown(shape)}."
    )
