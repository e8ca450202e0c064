"""Contact surfaces of a compliant mesh with another mesh."""

import math

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from mbjax.spatial import RigidTransform, safe_normalize
from mbjax.spatial import component_algebra as ca

from .element_pairs import ElementPairs, both_signs, elements_near, pairs_that_pass, reach_inside
from .faces import Polygons
from .plane_cut import cut_tetrahedra
from .polygons import clip
from .pressure_field import PressureField, corners_of
from .selection import Selection
from .tetrahedra import Barycentric, barycentric, linear_function
from .topology import HydroelasticTopology

LEAST_COSINE = math.cos(5.0 * math.pi / 8.0)  # between a face's normal and the pressure's gradient, as in Drake


def rigid_mesh(
    topology_C: HydroelasticTopology,
    field_C: PressureField,
    X_CD: RigidTransform,
    topology_D: HydroelasticTopology,
    field_D: PressureField,
    bound: int,
) -> Polygons:
    """Polygons that rigid triangles of D have in common with compliant tetrahedra of C, in C.

    Triangles whose normal is more than 5/8 pi from the pressure's gradient face away from it, and have none.
    """
    pairs = tetrahedra_and_triangles(*jax.lax.stop_gradient((field_C, X_CD, field_D)), topology_C, topology_D, bound)
    corners_C = corners_of(field_C, jnp.asarray(topology_C.mesh.elements.T)[:, pairs.elements_C])
    triangles = moved(corners_of(field_D, jnp.asarray(topology_D.mesh.elements.T)[:, pairs.elements_D]), X_CD)[:3]
    inside = barycentric(corners_C[:3])
    gradient, pressure_at_origin = linear_function(inside, corners_C[3])
    normal = normals_of(triangles)
    polygons, num_corners = within_tetrahedra(triangles, jnp.where(pairs.filled, 3, 0), inside)
    pressure = pressure_at_origin + dot_at_corners(gradient, polygons)
    polygons = jnp.concatenate([polygons, pressure[None]])
    return Polygons(polygons, num_corners, normal, ca.dot(gradient, normal), None, pairs.filled, pairs.left_out)


def tetrahedra_and_triangles(
    field_C: PressureField,
    X_CD: RigidTransform,
    field_D: PressureField,
    topology_C: HydroelasticTopology,
    topology_D: HydroelasticTopology,
    bound: int,
) -> ElementPairs:
    """Pairs of a compliant tetrahedron and a rigid triangle that may overlap."""
    chosen_C, chosen_D = elements_near_each_other(field_C, X_CD, field_D, topology_C, topology_D, bound)
    corners_C = corners_of(field_C, jnp.asarray(topology_C.mesh.elements.T)[:, chosen_C.indices])
    corners_D = moved(corners_of(field_D, jnp.asarray(topology_D.mesh.elements.T)[:, chosen_D.indices]), X_CD)[:3]
    inside = barycentric(corners_C[:3])
    normal = normals_of(corners_D)
    gradient, _ = linear_function(inside, corners_C[3])
    heights = [
        sum(normal[i] * corner[i][:, None] for i in range(3)) - ca.dot(normal, corners_D[:, 0])
        for corner in jnp.moveaxis(corners_C[:3], 1, 0)
    ]
    passed = reach_inside(inside, corners_D, tolerance_of(corners_D)) & both_signs(heights)
    return pairs_that_pass(passed & faces_along(gradient, normal), chosen_C, chosen_D, bound)


def compliant_mesh(
    topology_C: HydroelasticTopology,
    field_C: PressureField,
    X_CD: RigidTransform,
    topology_D: HydroelasticTopology,
    field_D: PressureField,
    bound: int,
) -> Polygons:
    """Polygons of equal pressure within two compliant tetrahedra, one of C and one of D, in C.

    The plane of equal pressure cuts the tetrahedron of C in a polygon, which that of D clips.
    """
    pairs = tetrahedra_and_tetrahedra(*jax.lax.stop_gradient((field_C, X_CD, field_D)), topology_C, topology_D, bound)
    corners_C = corners_of(field_C, jnp.asarray(topology_C.mesh.elements.T)[:, pairs.elements_C])
    corners_D = moved(corners_of(field_D, jnp.asarray(topology_D.mesh.elements.T)[:, pairs.elements_D]), X_CD)
    gradient_C, _ = linear_function(barycentric(corners_C[:3]), corners_C[3])
    inside_D = barycentric(corners_D[:3])
    gradient_D, pressure_at_origin = linear_function(inside_D, corners_D[3])
    excess = corners_C[3] - pressure_at_origin - dot_at_corners(gradient_D, corners_C[:3])
    polygons, num_corners = cut_tetrahedra(corners_C, excess)
    polygons, num_corners = within_tetrahedra(polygons, num_corners, inside_D)
    normal = safe_normalize(gradient_C - gradient_D, axis=0)
    return Polygons(
        polygons,
        num_corners,
        normal,
        ca.dot(gradient_C, normal),
        -ca.dot(gradient_D, normal),
        pairs.filled,
        pairs.left_out,
    )


def tetrahedra_and_tetrahedra(
    field_C: PressureField,
    X_CD: RigidTransform,
    field_D: PressureField,
    topology_C: HydroelasticTopology,
    topology_D: HydroelasticTopology,
    bound: int,
) -> ElementPairs:
    """Pairs of two compliant tetrahedra that may overlap where their pressures are equal."""
    chosen_C, chosen_D = elements_near_each_other(field_C, X_CD, field_D, topology_C, topology_D, bound)
    corners_C = corners_of(field_C, jnp.asarray(topology_C.mesh.elements.T)[:, chosen_C.indices])
    corners_D = moved(corners_of(field_D, jnp.asarray(topology_D.mesh.elements.T)[:, chosen_D.indices]), X_CD)
    inside_C, inside_D = barycentric(corners_C[:3]), barycentric(corners_D[:3])
    gradient_C, origin_C = linear_function(inside_C, corners_C[3])
    gradient_D, origin_D = linear_function(inside_D, corners_D[3])
    excess_C = [
        corner[3][:, None] - origin_D - sum(gradient_D[i] * corner[i][:, None] for i in range(3))
        for corner in jnp.moveaxis(corners_C, 1, 0)
    ]
    excess_D = [
        origin_C[:, None] + sum(gradient_C[i][:, None] * corner[i] for i in range(3)) - corner[3]
        for corner in jnp.moveaxis(corners_D, 1, 0)
    ]
    tolerance = tolerance_of(corners_C)
    passed = reach_inside(inside_C, corners_D[:3], tolerance) & reach_inside(inside_D, corners_C[:3], tolerance).T
    passed = passed & both_signs(excess_C) & both_signs(excess_D)
    passed = passed & difference_faces_along(gradient_C, gradient_D)
    return pairs_that_pass(passed, chosen_C, chosen_D, bound)
