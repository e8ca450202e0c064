"""Contact surfaces of which one geometry is a half-space."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.spatial import RigidTransform, safe_normalize
from mbjax.spatial import component_algebra as ca

from .element_pairs import is_along
from .faces import Polygons
from .mesh_surfaces import normals_of
from .plane_cut import cut_tetrahedra
from .polygons import clip
from .selection import select
from .tetrahedra import tetrahedra_of


def polygons_with_rigid_half_space(
    vertices_C: Float[Array, "4 vertices"], elements_C: Int[Array, "4 n"], X_CD: RigidTransform, bound: int
) -> Polygons:
    """Polygons in which the surface of a rigid half-space D cuts the tetrahedra of a compliant mesh C, in C."""
    normal_C = X_CD.rotation[:, 2]
    height = normal_C @ (vertices_C[:3] - X_CD.translation[:, None])
    heights = jax.lax.stop_gradient(height)[elements_C]
    chosen = select((heights.max(axis=0) > 0.0) & (heights.min(axis=0) <= 0.0), bound)
    elements = elements_C[:, chosen.indices]
    tetrahedra = tetrahedra_of(vertices_C[:, elements])
    corners, num_corners = cut_tetrahedra(tetrahedra.corners, height[elements])
    normal = jnp.broadcast_to(normal_C[:, None], tetrahedra.gradient.shape)
    gradient = ca.dot(tetrahedra.gradient, normal)
    return Polygons(corners, num_corners, normal, gradient, None, chosen.filled, chosen.left_out)


def polygons_in_compliant_half_space(
    slope: Float[Array, ""],
    margin: Float[Array, ""],
    vertices_C: Float[Array, "3 vertices"],
    elements_D: Int[Array, "3 n"],
    bound: int,
) -> Polygons:
    """The parts of rigid triangles of D below the surface of a compliant half-space C, and its margin, in C.

    The pressure is `slope` times the depth below Cz = 0.
    """
    down = jnp.zeros((3, 1), slope.dtype).at[2].set(-1.0)
    triangles = jax.lax.stop_gradient(vertices_C)[:, elements_D]
    touches = triangles[2].min(axis=0) <= jax.lax.stop_gradient(margin)
    chosen = select(touches & is_along(normals_of(triangles), down), bound)
    corners = vertices_C[:, elements_D[:, chosen.indices]]
    normal = safe_normalize(normals_of(corners), axis=0)
    corners, num_corners = clip(corners, jnp.where(chosen.filled, 3, 0), margin - corners[2], 0.0)
    corners = jnp.concatenate([corners, -slope * corners[2:]])
    return Polygons(corners, num_corners, normal, -slope * normal[2], None, chosen.filled, chosen.left_out)
