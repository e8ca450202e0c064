"""Linear functions on tetrahedra: barycentric coordinates, and the gradients of pressure."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide


class Barycentric(NamedTuple):
    """Gradients of the four barycentric coordinates of tetrahedra, and their values at the origin.

    A point x is inside where all four values `slopes · x + values` are positive. They are zero for a flat tetrahedron.
    """

    slopes: Float[Array, "3 4 n"]
    values: Float[Array, "4 n"]


def barycentric(corners: Float[Array, "3 4 n"]) -> Barycentric:
    """Barycentric coordinates from corners: of corner 1, (e2 x e3)·(x - corner 0) / e1·(e2 x e3), and so on."""
    origin = corners[:, 0]
    e1, e2, e3 = (corners[:, i] - origin for i in (1, 2, 3))
    normals = [ca.cross(e2, e3), ca.cross(e3, e1), ca.cross(e1, e2)]
    inverse = safe_divide(jnp.ones_like(e1[0]), ca.dot(e1, normals[0]))
    slopes = [normal * inverse for normal in normals]
    values = [-ca.dot(slope, origin) for slope in slopes]
    slopes = [-(slopes[0] + slopes[1] + slopes[2]), *slopes]
    values = [1.0 - (values[0] + values[1] + values[2]), *values]
    return Barycentric(jnp.stack(slopes, axis=1), jnp.stack(values))


def linear_function(of: Barycentric, at_corners: Float[Array, "4 n"]) -> tuple[Float[Array, "3 n"], Float[Array, " n"]]:
    """Gradient, and value at the origin, of the linear function with given values at the corners."""
    return (of.slopes * at_corners).sum(axis=1), (of.values * at_corners).sum(axis=0)
