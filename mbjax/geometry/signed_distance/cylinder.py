"""The lowest points of a cylinder above a plane."""

import math

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_sqrt

from .choices import direction_rounding, sign_of

UPRIGHT_ANGLE = 1e-3  # tilt, in rad, below which the rim's lowest point moves to the middle of the end
STANDING_ANGLE = 0.05  # tilt, in rad, from which the three points of the end are in its middle


def lowest_points_of_cylinder(
    size: Float[Array, "2 n *w"], R_AB: Float[Array, "3 3 n *w"]
) -> list[Float[Array, "3 n *w"]]:
    """The lowest point of each rim along Az, and three points of the lower end, from the centre in A.

    A rim's lowest point would jump when an upright cylinder tilts, so at tilts below `UPRIGHT_ANGLE` it comes from the
    middle of the end. The three points of a standing cylinder would be bumps on a rolling one, so they move to the
    middle of the end up to `STANDING_ANGLE`. All points move smoothly and on the surface.
    """
    radius, length = jnp.unstack(size)
    Bx, By, Bz = jnp.unstack(R_AB, axis=1)
    x, y, z = jnp.unstack(Bz)
    squared_sine = x * x + y * y
    downwards = jnp.stack([x * z, y * z, -squared_sine])  # in the plane of the ends, |downwards| = sine
    to_lowest = ca.scale(downwards, radius * smooth_inverse_sqrt(squared_sine, UPRIGHT_ANGLE**2))
    half_axis = ca.scale(Bz, 0.5 * length)
    lower_end = ca.scale(half_axis, -sign_of(z, direction_rounding(z.dtype)))
    reach = radius * smooth_step_down(squared_sine, STANDING_ANGLE**2)
    angles = (2.0 * math.pi * k / 3.0 for k in range(3))
    feet = [lower_end + ca.scale(math.cos(a) * Bx + math.sin(a) * By, reach) for a in angles]
    return [to_lowest + half_axis, to_lowest - half_axis, *feet]


def smooth_inverse_sqrt(x: Float[Array, "*n"], limit: float) -> Float[Array, "*n"]:
    """1/√x for x >= `limit`, and below it the tangent line at `limit`."""
    is_regular = x >= limit
    line = (1.5 - 0.5 * x / limit) / math.sqrt(limit)
    return jnp.where(is_regular, 1.0 / safe_sqrt(jnp.where(is_regular, x, 1.0)), line)


def smooth_step_down(x: Float[Array, "*n"], limit: float) -> Float[Array, "*n"]:
    """A step from 1 at x = 0 to 0 at `limit` and beyond, with continuous slope."""
    return jnp.where(x < limit, (1.0 - x / limit) ** 2, 0.0)
