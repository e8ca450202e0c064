"""Tetrahedra with a linear pressure: barycentric coordinates, gradients, and pressures at points."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide


class Tetrahedra(NamedTuple):
    """Tetrahedra in a frame, components first, with the linear functions that follow from their corners.

    The components of the corners are x, y, z in m and the pressure in Pa. A function's value at x is its slope · x plus
    its value at the origin. A point is inside where all four barycentric coordinates are positive; a flat tetrahedron
    has only zeros.
    """

    corners: Float[Array, "4 4 n"]  # components, corners
    barycentric_slopes: Float[Array, "3 4 n"]
    barycentric_at_origin: Float[Array, "4 n"]
    gradient: Float[Array, "3 n"]  # of the pressure, Pa/m
    pressure_at_origin: Float[Array, " n"]


def tetrahedra_of(corners: Float[Array, "4 4 n"]) -> Tetrahedra:
    """The barycentric coordinate of corner 1 is (e2 x e3)·(x - corner 0) / e1·(e2 x e3), with edges from corner 0."""
    positions, pressures = corners[:3], corners[3]
    origin = positions[:, 0]
    e1, e2, e3 = (positions[:, i] - origin for i in (1, 2, 3))
    normals = [ca.cross(e2, e3), ca.cross(e3, e1), ca.cross(e1, e2)]
    volume = ca.dot(e1, normals[0])
    inverse = safe_divide(jnp.ones_like(volume), volume)
    slopes = [normal * inverse for normal in normals]
    values = [-ca.dot(slope, origin) for slope in slopes]
    slopes = jnp.stack([-(slopes[0] + slopes[1] + slopes[2]), *slopes], axis=1)
    values = jnp.stack([jnp.where(volume == 0.0, 0.0, 1.0) - (values[0] + values[1] + values[2]), *values])
    return Tetrahedra(corners, slopes, values, (slopes * pressures).sum(axis=1), (values * pressures).sum(axis=0))


def values_at(
    points: Float[Array, "3 *m"], slope: Float[Array, "3 *n"], at_origin: Float[Array, "*n"]
) -> Float[Array, "..."]:
    """Values slope · x + at_origin of linear functions at points x; axes after the components broadcast."""
    return slope[0] * points[0] + slope[1] * points[1] + slope[2] * points[2] + at_origin
