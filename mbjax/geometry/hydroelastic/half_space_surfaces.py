"""Contact surfaces of which one geometry is a half-space."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.spatial import RigidTransform
from mbjax.spatial import component_algebra as ca

from .element_pairs import is_along
from .faces import Polygons
from .mesh_surfaces import joined, with_pressure
from .outlines import clip, corners_where_planes_meet, cut_tetrahedra, whole_triangles
from .planes import Planes
from .selection import select
from .tetrahedra import tetrahedra_of
from .triangles import triangles_of


def polygons_with_rigid_half_space(
    vertices_C: Float[Array, "4 vertices"], elements_C: Int[Array, "4 n"], X_CD: RigidTransform, bound: int
) -> Polygons:
    """Polygons in which the surface of a rigid half-space D cuts the tetrahedra of a compliant mesh C, in C."""
    up_C = X_CD.rotation[:, 2]
    height = jax.lax.stop_gradient(up_C @ (vertices_C[:3] - X_CD.translation[:, None]))
    heights = height[elements_C]
    chosen = select((heights.max(axis=0) > 0.0) & (heights.min(axis=0) <= 0.0), bound)
    elements = elements_C[:, chosen.indices]
    tetrahedra = tetrahedra_of(vertices_C[:, elements])
    outline = cut_tetrahedra(jax.lax.stop_gradient(tetrahedra.corners[:3]), height[elements])
    normal = jnp.broadcast_to(up_C[:, None], tetrahedra.pressure.slope.shape)
    surface = Planes(normal, jnp.broadcast_to(-up_C @ X_CD.translation, (bound,)))
    corners = corners_where_planes_meet(outline, surface, tetrahedra.faces)
    return Polygons(
        corners_C=with_pressure(corners, tetrahedra.pressure),
        num_corners=outline.num_corners,
        normal_C=normal,
        gradient_C=ca.dot(tetrahedra.pressure.slope, normal),
        gradient_D=None,
        filled=chosen.filled,
        left_out=chosen.left_out,
    )


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
    every = triangles_of(jax.lax.stop_gradient(vertices_C)[:, elements_D])
    touches = every.corners[2].min(axis=0) <= jax.lax.stop_gradient(margin)
    faces_up = is_along(-every.face.slope[2], ca.dot(every.face.slope, every.face.slope), jnp.ones((), slope.dtype))
    chosen = select(touches & faces_up, bound)
    triangles = triangles_of(vertices_C[:, elements_D[:, chosen.indices]])
    none, one = jnp.zeros(bound, slope.dtype), jnp.ones(bound, slope.dtype)
    top = Planes(jnp.stack([none, none, -one])[:, None], jnp.broadcast_to(margin, (1, bound)))
    planes = joined(triangles.edges, top)
    outline = clip(*jax.lax.stop_gradient((whole_triangles(triangles.corners), planes)), 3, 4)
    corners = corners_where_planes_meet(outline, triangles.face, planes)
    pressure = Planes(jnp.stack([none, none, -slope * one]), none)
    return Polygons(
        corners_C=with_pressure(corners, pressure),
        num_corners=outline.num_corners,
        normal_C=triangles.face.slope,
        gradient_C=ca.dot(pressure.slope, triangles.face.slope),
        gradient_D=None,
        filled=chosen.filled,
        left_out=chosen.left_out,
    )
