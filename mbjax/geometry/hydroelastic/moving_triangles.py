"""Triangles whose corners move, as the surface of a deformable body, within the pressure field of a rigid shape.

A polygon is what of a triangle lies within one tetrahedron of the field, or below the plane of a half-space.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import RigidTransform

from .faces import Polygons
from .half_space_surfaces import polygons_in_compliant_half_space
from .linear_functions import TRIANGLE_EDGES, functions_of_triangles, homogeneous, values_at
from .mesh_surfaces import polygons_with_rigid_mesh
from .polygons import SMALLEST_AREA, area_and_centroid
from .pressure_field import PressureField
from .selection import take_columns
from .surface_of_pair import SMALL_MESH
from .topology import HydroelasticTopology

SHARE_OF_TRIANGLES, SHARE_OF_FIELD = 2, 4  # larger meshes are bounded by these fractions of their elements


class TriangleFaces(NamedTuple):
    """Polygons with the pressure at their centroids, components first, in the frame C of the field.

    Normals point into the field's shape; `gradient` is that of the pressure along them. The centroid is the sum of the
    triangle's corners times `weights`.
    """

    area: Float[Array, " n"]  # m²
    centroid_C: Float[Array, "3 n"]
    normal_C: Float[Array, "3 n"]
    pressure: Float[Array, " n"]  # Pa
    gradient: Float[Array, " n"]  # Pa/m
    triangles: Int[Array, " n"]
    weights: Float[Array, "3 n"]
    active: Bool[Array, " n"]
    left_out: Int[Array, ""]  # pairs of elements for which there was no slot


def polygons_of_triangles(
    topology: HydroelasticTopology, field: PressureField, corners_C: Float[Array, "3 3 f"], bound: int
) -> tuple[Polygons, Float[Array, "4 k f"]]:
    """What of triangles lies in a field, and the triangles' linear functions."""
    none = jnp.zeros((), corners_C.dtype)
    triangles = PressureField(
        vertices_G=jnp.zeros((0, 3), corners_C.dtype),
        pressure=jnp.zeros(0, corners_C.dtype),
        slope=none,
        margin=none,
        corners_G=homogeneous(corners_C),
        corner_pressure=jnp.zeros(corners_C.shape[1:], corners_C.dtype),
        functions_G=functions_of_triangles(corners_C),
    )
    same = RigidTransform(jnp.eye(3, dtype=corners_C.dtype), jnp.zeros(3, corners_C.dtype))
    if topology.is_half_space:
        return polygons_in_compliant_half_space(field, triangles, same, bound), triangles.functions_G
    return polygons_with_rigid_mesh(field, triangles, same, bound, bound), triangles.functions_G


def faces_of_triangles(
    topology: HydroelasticTopology, field: PressureField, corners_C: Float[Array, "3 3 f"], bound: int
) -> TriangleFaces:
    """The polygons of triangles, counterclockwise from outside, in the field of a compliant shape; `bound` at most."""
    polygons, functions = polygons_of_triangles(topology, field, corners_C, bound)
    assert polygons.elements_D is not None
    assert polygons.gradient_C is not None
    area, centroid = area_and_centroid(polygons.corners_C, polygons.normal_C)
    active = polygons.filled & (polygons.num_corners >= 3) & (area > SMALLEST_AREA)
    edges = take_columns(functions[:, TRIANGLE_EDGES], polygons.elements_D)
    beyond = values_at(edges, centroid[:3, None])  # of the edge from a corner to the next: the weight of the third
    up = jnp.array([0.0, 0.0, 1.0], area.dtype)[:, None]
    return TriangleFaces(
        area=jnp.where(active, area, 0.0),
        centroid_C=centroid[:3],
        normal_C=jnp.where(active, polygons.normal_C, up),
        pressure=jnp.where(active, centroid[3], 0.0),
        gradient=jnp.where(active, polygons.gradient_C, 1.0),
        triangles=polygons.elements_D,
        weights=jnp.roll(beyond, -1, axis=0),
        active=active,
        left_out=polygons.left_out,
    )


def usual_number_of_faces(topology: HydroelasticTopology, num_triangles: int) -> int:
    """A bound on the polygons that contact of usual depth does not reach: half of the triangles, or few more."""
    of_triangles = max(min(num_triangles, SMALL_MESH), num_triangles // SHARE_OF_TRIANGLES)
    n = topology.num_elements
    return of_triangles + max(min(n, SMALL_MESH), n // SHARE_OF_FIELD)
