"""Contact surfaces of which one geometry is a half-space."""

import jax
import jax.numpy as jnp

from mbjax.spatial import RigidTransform
from mbjax.spatial import component_algebra as ca

from .element_pairs import is_along
from .faces import Polygons
from .linear_functions import TRIANGLE_EDGES, TRIANGLE_FACE, homogeneous, values_at
from .mesh_surfaces import elements_of, with_pressure
from .outlines import clip, corners_where_planes_meet, cut_tetrahedra, whole_triangles
from .pressure_field import PressureField
from .selection import select


def polygons_with_rigid_half_space(C: PressureField, X_CD: RigidTransform, bound: int) -> Polygons:
    """Polygons in which the surface of a rigid half-space D cuts the tetrahedra of a compliant mesh C, in C."""
    up_C = X_CD.rotation[:, 2]
    height = jnp.concatenate([up_C, -(up_C @ X_CD.translation)[None]])
    all_C = elements_of(C)
    heights = jax.lax.stop_gradient(values_at(height, all_C.corners[:3]))
    chosen = select((heights.max(axis=0) > 0.0) & (heights.min(axis=0) <= 0.0), bound)
    of_C = all_C.at(chosen.indices)
    corners = jax.lax.stop_gradient(of_C.corners[:3])
    outline = cut_tetrahedra(corners, jax.lax.stop_gradient(values_at(height, corners)))
    surface = jnp.broadcast_to(height[:, None], of_C.pressure.shape)
    return Polygons(
        corners_C=with_pressure(corners_where_planes_meet(outline, surface, of_C.faces), of_C.pressure),
        num_corners=outline.num_corners,
        normal_C=surface[:3],
        gradient_C=ca.dot(of_C.pressure[:3], surface[:3]),
        gradient_D=None,
        filled=chosen.filled,
        left_out=chosen.left_out,
    )


def polygons_in_compliant_half_space(C: PressureField, D: PressureField, X_CD: RigidTransform, bound: int) -> Polygons:
    """The parts of rigid triangles of D below the surface of a compliant half-space C, and its margin, in C.

    The pressure is `slope` times the depth below Cz = 0.
    """
    all_D = elements_of(D, X_CD)
    corners, normal, margin = jax.lax.stop_gradient((all_D.corners, all_D.functions[:3, TRIANGLE_FACE], C.margin))
    faces_up = is_along(-normal[2], ca.dot(normal, normal), jnp.ones((), normal.dtype))
    chosen = select((corners[2].min(axis=0) <= margin) & faces_up, bound)
    of_D = all_D.at(chosen.indices)
    down = homogeneous(jnp.array([0.0, 0.0, -1.0], normal.dtype))
    below_margin = jnp.broadcast_to((down.at[3].set(C.margin))[:, None, None], (4, 1, bound))
    pressure = jnp.broadcast_to((C.slope * down.at[3].set(0.0))[:, None], (4, bound))
    planes = jnp.concatenate([of_D.functions[:, TRIANGLE_EDGES], below_margin], axis=1)
    face = of_D.functions[:, TRIANGLE_FACE]
    triangles, sides = jax.lax.stop_gradient((of_D.corners[:3], planes))
    outline = clip(whole_triangles(triangles), sides, 3, 4)
    return Polygons(
        corners_C=with_pressure(corners_where_planes_meet(outline, face, planes), pressure),
        num_corners=outline.num_corners,
        normal_C=face[:3],
        gradient_C=ca.dot(pressure[:3], face[:3]),
        gradient_D=None,
        filled=chosen.filled,
        left_out=chosen.left_out,
        elements_D=chosen.indices,
    )
