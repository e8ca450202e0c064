"""Contact surfaces of two meshes of tetrahedra whose corners move, as deformable bodies have.

Each mesh has a depth at its corners, linear in between: zero on its surface at rest, growing inward. The surface is
where both depths are the same, as that of two compliant hydroelastic geometries is where their pressures are.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from mbjax.spatial import component_algebra as ca

from .element_pairs import (
    CANDIDATES,
    ElementPairs,
    boxes_overlap,
    elements_near,
    is_along,
    is_any_inside,
    pairs_that_overlap,
    pairs_that_passed,
)
from .faces import Polygons
from .linear_functions import TETRAHEDRON_FACES, functions_of_tetrahedra, homogeneous, values_at
from .mesh_surfaces import Elements, excess_over, pairs_that_share_a_polygon, polygons_of_tetrahedra
from .polygons import SMALLEST_AREA, area_and_centroid

CROSSING = 8  # pairs of elements whose boxes may overlap, for each slot of a polygon


class TetrahedronFaces(NamedTuple):
    """Polygons between meshes A and B with the depth at their centroids, components first, in the frame of both.

    Normals point out of B and into A.
    """

    area: Float[Array, " n"]  # m²
    centroid: Float[Array, "3 n"]
    normal: Float[Array, "3 n"]
    depth: Float[Array, " n"]  # m
    elements_A: Int[Array, " n"]
    elements_B: Int[Array, " n"]
    active: Bool[Array, " n"]
    left_out: Int[Array, ""]  # pairs of elements for which there was no slot


def faces_of_tetrahedra(
    corners_A: Float[Array, "3 4 k"],
    depth_A: Float[Array, "4 k"],
    corners_B: Float[Array, "3 4 l"],
    depth_B: Float[Array, "4 l"],
    bound: int,
) -> TetrahedronFaces:
    """The polygons on which two meshes are equally deep; `bound` at most."""
    polygons = polygons_of_equal_depth(corners_A, depth_A, corners_B, depth_B, bound)
    assert polygons.elements_C is not None
    assert polygons.elements_D is not None
    area, centroid = area_and_centroid(polygons.corners_C, polygons.normal_C)
    active = polygons.filled & (polygons.num_corners >= 3) & (area > SMALLEST_AREA)
    up = jnp.array([0.0, 0.0, 1.0], area.dtype)[:, None]
    return TetrahedronFaces(
        area=jnp.where(active, area, 0.0),
        centroid=centroid[:3],
        normal=jnp.where(active, polygons.normal_C, up),
        depth=jnp.where(active, centroid[3], 0.0),
        elements_A=polygons.elements_C,
        elements_B=polygons.elements_D,
        active=active,
        left_out=polygons.left_out,
    )


def polygons_of_equal_depth(
    corners_A: Float[Array, "3 4 k"],
    depth_A: Float[Array, "4 k"],
    corners_B: Float[Array, "3 4 l"],
    depth_B: Float[Array, "4 l"],
    bound: int,
) -> Polygons:
    """The polygons with the depth at their corners in the place of a pressure."""
    A, B = elements_with_depth(corners_A, depth_A), elements_with_depth(corners_B, depth_B)
    return polygons_of_tetrahedra(A, B, pairs_that_touch(*jax.lax.stop_gradient((A, B)), bound))


def elements_with_depth(corners: Float[Array, "3 4 k"], depth: Float[Array, "4 k"]) -> Elements:
    """Tetrahedra with a depth in the place of a pressure."""
    return Elements(homogeneous(corners), depth, functions_of_tetrahedra(corners, depth))


def pairs_that_touch(A: Elements, B: Elements, bound: int) -> ElementPairs:
    """Pairs of tetrahedra that overlap where both are equally deep.

    Meshes may be large, so that all pairs are tried by the boxes around them alone, and those that pass one by one.
    """
    near_A, near_B = elements_near(A.corners, B.corners, bound), elements_near(B.corners, A.corners, bound)
    passed = boxes_overlap(A.at(near_A.indices).corners, B.at(near_B.indices).corners)
    crossing = pairs_that_passed(passed, near_A, near_B, CROSSING * bound)
    of_A, of_B = A.at(crossing.elements_C), B.at(crossing.elements_D)
    excess_A, excess_B = excess_over(of_A, of_B), excess_over(of_B, of_A)
    may_touch = (excess_A.max(axis=0) > 0.0) & (excess_A.min(axis=0) <= 0.0)
    may_touch &= (excess_B.max(axis=0) > 0.0) & (excess_B.min(axis=0) <= 0.0)
    may_touch &= is_any_inside(of_A.faces, of_B.corners[:3]) & is_any_inside(of_B.faces, of_A.corners[:3])
    slope_A, slope_B = of_A.pressure[:3], of_B.pressure[:3]
    normal = slope_A - slope_B
    for slope, along in ((slope_A, ca.dot(slope_A, normal)), (slope_B, -ca.dot(slope_B, normal))):
        may_touch &= is_along(along, ca.dot(normal, normal), ca.dot(slope, slope))
    candidates = pairs_that_overlap(crossing, may_touch, CANDIDATES * bound)
    return pairs_that_share_a_polygon(A, B, candidates, bound)


def weights_of_corners(corners: Float[Array, "3 4 n"], points: Float[Array, "3 n"]) -> Float[Array, "4 n"]:
    """Weights with which the corners of tetrahedra sum up to points: barycentric coordinates."""
    functions = functions_of_tetrahedra(corners, jnp.zeros_like(corners[0]))
    return values_at(functions[:, TETRAHEDRON_FACES], points[:, None])
