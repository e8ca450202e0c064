"""Triangles of rigid surfaces: the planes that they are in, and the planes through their edges."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import component_algebra as ca
from mbjax.spatial import safe_divide, safe_normalize

from .planes import Planes


class Triangles(NamedTuple):
    """Triangles in a frame, components first.

    `face` has unit normals; the corners wind counterclockwise about them. `edges` are normal to it: the one from corner
    k to the next is 0 there, and 1 at the third corner. A triangle without area has only zeros.
    """

    corners: Float[Array, "3 3 n"]  # components, corners
    face: Planes  # (3, n), (n)
    edges: Planes  # (3, 3, n), (3, n)


def triangles_of(corners: Float[Array, "3 3 n"]) -> Triangles:
    """The edge function is (n x e)·(x - corner) / |n|², with the edge e and n = e0 x e1."""
    sides = jnp.roll(corners, -1, axis=1) - corners
    normal = ca.cross(sides[:, 0], sides[:, 1])
    spread = jnp.broadcast_to(normal[:, None], sides.shape)
    slope = safe_divide(ca.cross(spread, sides), ca.dot(spread, spread))
    unit = safe_normalize(normal, axis=0)
    return Triangles(corners, Planes(unit, -ca.dot(unit, corners[:, 0])), Planes(slope, -ca.dot(slope, corners)))
