"""Tetrahedra with a linear pressure: the planes of their faces, and the pressure as a function of position."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide

from .planes import Planes


class Tetrahedra(NamedTuple):
    """Tetrahedra in a frame, components first, with the linear functions that follow from their corners.

    The components of the corners are x, y, z in m and the pressure in Pa. `faces` are the barycentric coordinates: face
    i is opposite to corner i, where its function is 1. A flat tetrahedron has only zeros.
    """

    corners: Float[Array, "4 4 n"]  # components, corners
    faces: Planes  # (3, 4, n), (4, n)
    pressure: Planes  # (3, n), (n)


def tetrahedra_of(corners: Float[Array, "4 4 n"]) -> Tetrahedra:
    """The function of face 1 is (e2 x e3)·(x - corner 0) / e1·(e2 x e3), with the edges from corner 0; and so on."""
    positions, pressures = corners[:3], corners[3]
    origin = positions[:, 0]
    e1, e2, e3 = (positions[:, i] - origin for i in (1, 2, 3))
    normals = [ca.cross(e2, e3), ca.cross(e3, e1), ca.cross(e1, e2)]
    volume = ca.dot(e1, normals[0])
    inverse = safe_divide(jnp.ones_like(volume), volume)
    slopes = [normal * inverse for normal in normals]
    values = [-ca.dot(slope, origin) for slope in slopes]
    is_flat = volume == 0.0
    slope = jnp.stack([-(slopes[0] + slopes[1] + slopes[2]), *slopes], axis=1)
    at_origin = jnp.stack([jnp.where(is_flat, 0.0, 1.0) - (values[0] + values[1] + values[2]), *values])
    pressure = Planes((slope * pressures).sum(axis=1), (at_origin * pressures).sum(axis=0))
    return Tetrahedra(corners, Planes(slope, at_origin), pressure)
