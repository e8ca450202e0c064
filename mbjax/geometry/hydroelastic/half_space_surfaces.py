"""Contact surfaces of which one geometry is a half-space."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.spatial import RigidTransform
from mbjax.spatial import component_algebra as ca

from .faces import Polygons
from .plane_cut import cut_tetrahedra
from .pressure_field import PressureField
from .selection import select
from .tetrahedra import barycentric, linear_function
from .topology import HydroelasticTopology


def rigid_half_space(
    topology: HydroelasticTopology, field: PressureField, X_CD: RigidTransform, bound: int
) -> Polygons:
    """Polygons in which the surface of a rigid half-space D cuts the tetrahedra of a compliant geometry C, in C."""
    normal_C, p_CoDo_C = X_CD.rotation[:, 2], X_CD.translation
    height = (field.vertices_G - p_CoDo_C) @ normal_C
    tetrahedra = jnp.asarray(topology.mesh.elements.T)
    heights = height[tetrahedra]
    chosen = select((heights.max(axis=0) > 0.0) & (heights.min(axis=0) <= 0.0), bound)
    corners = corners_of(field, tetrahedra[:, chosen.indices])
    heights = heights[:, chosen.indices]
    polygons, num_corners = cut_tetrahedra(corners, heights)
    gradient, _ = linear_function(barycentric(corners[:3]), corners[3])
    normal = jnp.broadcast_to(normal_C[:, None], gradient.shape)
    return Polygons(polygons, num_corners, normal, ca.dot(gradient, normal), None, chosen.filled, chosen.left_out)


def corners_of(field: PressureField, elements: Int[Array, "corners n"]) -> Float[Array, "4 corners n"]:
    """Positions in m, and pressures in Pa, of the corners of elements."""
    return jnp.concatenate([field.vertices_G, field.pressure[:, None]], axis=1).T[:, elements]
