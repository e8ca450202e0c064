"""Distance constraints: two points a given distance apart."""

from collections.abc import Sequence
from typing import Any

from jaxtyping import Array, Float

from mbjax.model import DistanceConstraint
from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_norm, safe_normalize

from .axis_rows import RowsInP
from .relative_motion import FramePair, RelativeMotion, stack_columns


def distance_frames(constraint: DistanceConstraint) -> FramePair:
    """Frames of a distance constraint: at P and Q, along the bodies' axes."""
    return FramePair(constraint.body_A, None, constraint.p_AP, constraint.body_B, None, constraint.p_BQ)


def distance_rows(constraints: Sequence[Any], p_PS_P: Float[Array, "3 n"], motion: RelativeMotion | None) -> RowsInP:
    """Rows |p| - distance, along the unit vector u of p, with second rate u · a + (v² - (u · v)²) / |p|.

    Where the points coincide u is undefined: the row is zero there, with zero derivative.
    """
    length, u = safe_norm(p_PS_P, axis=0), safe_normalize(p_PS_P, axis=0)
    error = length - stack_columns([c.distance for c in constraints], 0)
    bias = None
    if motion is not None:
        sideways = motion.v_PS - ca.scale(u, ca.dot(u, motion.v_PS))
        bias = ca.dot(u, motion.a_PS) + safe_divide(ca.dot(sideways, sideways), length)
    return RowsInP(error, 0.0 * u, u, bias)
