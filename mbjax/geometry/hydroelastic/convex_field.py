"""Vertices of convex hulls that a margin has grown, and the extents of pressure in them."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.spatial import cross3, safe_norm, safe_normalize

from .convex_mesh import ConvexPattern


def convex_vertices_and_extents(
    pattern: ConvexPattern, is_rigid: bool, points: Float[Array, "n 3"], margin: Float[Array, ""]
) -> tuple[Float[Array, "vertices 3"], Float[Array, " vertices"]]:
    """Vertices in G, the centre last where the hull is compliant, and their pressures over modulus.

    The pressure falls from 1 at the centre to -margin / H on the surface, H being the distance between the two.
    """
    corners = points[pattern.kept] if pattern.kept is not None else grown_corners(pattern, points, margin)
    if is_rigid:
        return corners, jnp.zeros_like(corners[:, 0])
    a, b, c = jnp.moveaxis(corners[pattern.triangles], 1, 0)
    normals = cross3(b - a, c - a)
    volumes = (a * normals).sum(axis=1)  # six times those of tetrahedra from the origin
    centre = volumes @ (a + b + c) / (4.0 * volumes.sum())
    depth = ((a - centre) * normals).sum(axis=1) / safe_norm(normals)
    on_surface = jnp.broadcast_to(-margin / depth.min(), corners[:, 0].shape)
    one = jnp.ones(1, corners.dtype)
    return jnp.concatenate([corners, centre[None]]), jnp.concatenate([on_surface, one])


def grown_corners(
    pattern: ConvexPattern, points: Float[Array, "n 3"], margin: Float[Array, ""]
) -> Float[Array, "corners 3"]:
    """Where the planes of three facets meet that the margin has moved outward: n1·x = d1, n2·x = d2, n3·x = d3."""
    a, b, c = jnp.moveaxis(points[pattern.facets], 1, 0)
    normals = safe_normalize(cross3(b - a, c - a))
    distances = (normals * a).sum(axis=1) + margin
    n1, n2, n3 = jnp.moveaxis(normals[pattern.meeting], 1, 0)
    d1, d2, d3 = distances[pattern.meeting].T[:, :, None]
    n23 = cross3(n2, n3)
    numerator = d1 * n23 + d2 * cross3(n3, n1) + d3 * cross3(n1, n2)
    return numerator / (n1 * n23).sum(axis=1, keepdims=True)
