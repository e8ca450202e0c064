"""Contact surfaces of a compliant mesh with another mesh: polygons between pairs of their elements.

The compliant mesh C has tetrahedra. The other mesh D has triangles where it is rigid, tetrahedra where it is compliant.
All is computed in the frame of C.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.spatial import RigidTransform, safe_norm
from mbjax.spatial import component_algebra as ca

from .element_pairs import (
    ElementPairs,
    both_signs,
    elements_near,
    is_along,
    pairs_that_passed,
    reach_inside,
    values_of_all,
)
from .faces import Polygons
from .outlines import clip, corners_where_planes_meet, cut_tetrahedra, whole_triangles
from .planes import Planes
from .selection import Selection
from .tetrahedra import tetrahedra_of
from .triangles import triangles_of

MOST_CORNERS = {"triangle": 7, "tetrahedron": 8}  # of a triangle, or of a cut tetrahedron, within a tetrahedron


class Meshes(NamedTuple):
    """Vertices of C and of D in C, with the pressure as fourth component, and the elements of both."""

    vertices_C: Float[Array, "4 vertices_C"]
    elements_C: Int[Array, "4 elements_C"]
    vertices_D: Float[Array, "4 vertices_D"]
    elements_D: Int[Array, "corners elements_D"]
    X_CD: RigidTransform

    def corners(self, of_C: Int[Array, " n"], of_D: Int[Array, " m"]) -> tuple[Array, Array]:
        """Corners of elements of both, in C."""
        return self.vertices_C[:, self.elements_C[:, of_C]], self.vertices_D[:, self.elements_D[:, of_D]]


def polygons_with_rigid_mesh(meshes: Meshes, bound: int) -> Polygons:
    """The parts of rigid triangles of D within compliant tetrahedra of C."""
    pairs = tetrahedra_and_triangles(jax.lax.stop_gradient(meshes), bound)
    corners_C, corners_D = meshes.corners(pairs.elements_C, pairs.elements_D)
    tetrahedra, triangles = tetrahedra_of(corners_C), triangles_of(corners_D[:3])
    planes = joined(triangles.edges, tetrahedra.faces)
    outline = clip(*jax.lax.stop_gradient((whole_triangles(triangles.corners), planes)), 3, MOST_CORNERS["triangle"])
    corners = corners_where_planes_meet(outline, triangles.face, planes)
    normal = triangles.face.slope
    return Polygons(
        corners_C=with_pressure(corners, tetrahedra.pressure),
        num_corners=outline.num_corners,
        normal_C=normal,
        gradient_C=ca.dot(tetrahedra.pressure.slope, normal),
        gradient_D=None,
        filled=pairs.filled,
        left_out=pairs.left_out,
    )


def tetrahedra_and_triangles(meshes: Meshes, bound: int) -> ElementPairs:
    """Pairs of a tetrahedron and a triangle that may overlap, and whose triangle faces the growing pressure."""
    chosen_C, chosen_D = chosen_elements(meshes, bound)
    corners_C, corners_D = meshes.corners(chosen_C.indices, chosen_D.indices)
    tetrahedra, triangles = tetrahedra_of(corners_C), triangles_of(corners_D[:3])
    passed = reach_inside(tetrahedra.faces, triangles.corners)
    passed &= both_signs(values_of_all(triangles.face, tetrahedra.corners[:3])).T
    gradient, normal = tetrahedra.pressure.slope, triangles.face.slope
    along = jnp.tensordot(gradient, normal, axes=(0, 0))
    passed &= is_along(along, ca.dot(normal, normal), ca.dot(gradient, gradient)[:, None])
    return pairs_that_passed(passed, chosen_C, chosen_D, bound)


def polygons_with_compliant_mesh(meshes: Meshes, bound: int) -> Polygons:
    """Where the planes of equal pressure cut tetrahedra of C, as far as these polygons are within tetrahedra of D."""
    pairs = tetrahedra_and_tetrahedra(jax.lax.stop_gradient(meshes), bound)
    of_C, of_D = (tetrahedra_of(corners) for corners in meshes.corners(pairs.elements_C, pairs.elements_D))
    excess = Planes(of_C.pressure.slope - of_D.pressure.slope, of_C.pressure.at_origin - of_D.pressure.at_origin)
    steepness = safe_norm(excess.slope, axis=0)
    is_flat = steepness == 0.0
    scale = jnp.where(is_flat, 0.0, 1.0 / jnp.where(is_flat, 1.0, steepness))
    face = Planes(excess.slope * scale, excess.at_origin * scale)
    planes = joined(of_C.faces, of_D.faces)
    corners, heights, sides = jax.lax.stop_gradient(
        (of_C.corners[:3], of_C.corners[3] - of_D.pressure.at(of_C.corners[:3]), planes)
    )
    outline = clip(cut_tetrahedra(corners, heights), sides, 4, MOST_CORNERS["tetrahedron"])
    corners = corners_where_planes_meet(outline, face, planes)
    return Polygons(
        corners_C=with_pressure(corners, of_C.pressure),
        num_corners=outline.num_corners,
        normal_C=face.slope,
        gradient_C=ca.dot(of_C.pressure.slope, face.slope),
        gradient_D=-ca.dot(of_D.pressure.slope, face.slope),
        filled=pairs.filled,
        left_out=pairs.left_out,
    )


def tetrahedra_and_tetrahedra(meshes: Meshes, bound: int) -> ElementPairs:
    """Pairs of tetrahedra that may overlap on their plane of equal pressure."""
    chosen_C, chosen_D = chosen_elements(meshes, bound)
    of_C, of_D = (tetrahedra_of(corners) for corners in meshes.corners(chosen_C.indices, chosen_D.indices))
    passed = reach_inside(of_C.faces, of_D.corners[:3]) & reach_inside(of_D.faces, of_C.corners[:3]).T
    passed &= both_signs(of_C.corners[3][None] - values_of_all(of_D.pressure, of_C.corners[:3])).T
    passed &= both_signs(values_of_all(of_C.pressure, of_D.corners[:3]) - of_D.corners[3])
    gradient_C, gradient_D = of_C.pressure.slope, of_D.pressure.slope
    product = jnp.tensordot(gradient_C, gradient_D, axes=(0, 0))
    square_C, square_D = ca.dot(gradient_C, gradient_C)[:, None], ca.dot(gradient_D, gradient_D)
    square = square_C - 2.0 * product + square_D  # of the normal, which is the difference of the gradients
    passed &= is_along(square_C - product, square, square_C) & is_along(square_D - product, square, square_D)
    return pairs_that_passed(passed, chosen_C, chosen_D, bound)


def chosen_elements(meshes: Meshes, bound: int) -> tuple[Selection, Selection]:
    """The elements of each mesh that are near the other mesh."""
    X_DC, p_C, p_D = meshes.X_CD.inverse(), meshes.vertices_C[:3], meshes.vertices_D[:3]
    own_D = (X_DC @ p_D.T).T
    chosen_C = elements_near((X_DC @ p_C.T).T, meshes.elements_C, own_D, bound)
    return chosen_C, elements_near(p_D, meshes.elements_D, p_C, bound)


def joined(a: Planes, b: Planes) -> Planes:
    """The planes of both, in this order."""
    return Planes(jnp.concatenate([a.slope, b.slope], axis=1), jnp.concatenate([a.at_origin, b.at_origin]))


def with_pressure(corners: Float[Array, "3 corners n"], pressure: Planes) -> Float[Array, "4 corners n"]:
    """Corners with the pressure there as fourth component."""
    at_corners = Planes(pressure.slope[:, None], pressure.at_origin).at(corners)
    return jnp.concatenate([corners, at_corners[None]])
