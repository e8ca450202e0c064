"""Contact surfaces of a compliant mesh with another mesh: polygons between pairs of their elements.

The compliant mesh C has tetrahedra. The other mesh D has triangles where it is rigid, tetrahedra where it is compliant.
All is computed in the frame of C.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.spatial import RigidTransform, safe_normalize
from mbjax.spatial import component_algebra as ca

from .element_pairs import (
    ElementPairs,
    PlacedMesh,
    both_signs,
    elements_near,
    is_along,
    pairs_that_passed,
    reach_inside,
)
from .faces import Polygons
from .plane_cut import cut_tetrahedra
from .polygons import clip
from .selection import Selection
from .tetrahedra import Tetrahedra, tetrahedra_of, values_at


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
    tetrahedra, triangles = tetrahedra_of(corners_C), corners_D[:3]
    normal = safe_normalize(normals_of(triangles), axis=0)
    corners, num_corners = within(tetrahedra, triangles, jnp.where(pairs.filled, 3, 0))
    pressure = values_at(corners, tetrahedra.gradient[:, None], tetrahedra.pressure_at_origin)
    corners = jnp.concatenate([corners, pressure[None]])
    gradient = ca.dot(tetrahedra.gradient, normal)
    return Polygons(corners, num_corners, normal, gradient, None, pairs.filled, pairs.left_out)


def tetrahedra_and_triangles(meshes: Meshes, bound: int) -> ElementPairs:
    """Pairs of a tetrahedron and a triangle that may overlap, and whose triangle faces the growing pressure."""
    chosen_C, chosen_D = chosen_elements(meshes, bound)
    corners_C, triangles = meshes.corners(chosen_C.indices, chosen_D.indices)
    tetrahedra, triangles = tetrahedra_of(corners_C), triangles[:3]
    normal = normals_of(triangles)
    at_origin = -ca.dot(normal, triangles[:, 0])
    heights = [values_at(corners_C[:3, i, :, None], normal[:, None], at_origin) for i in range(4)]
    passed = reach_inside(tetrahedra, triangles, rounding_of(triangles)) & both_signs(heights)
    passed &= is_along(normal[:, None], tetrahedra.gradient[..., None])
    return pairs_that_passed(passed, chosen_C, chosen_D, bound)


def polygons_with_compliant_mesh(meshes: Meshes, bound: int) -> Polygons:
    """Where the planes of equal pressure cut tetrahedra of C, as far as these polygons are within tetrahedra of D."""
    pairs = tetrahedra_and_tetrahedra(jax.lax.stop_gradient(meshes), bound)
    of_C, of_D = (tetrahedra_of(corners) for corners in meshes.corners(pairs.elements_C, pairs.elements_D))
    corners, num_corners = cut_tetrahedra(of_C.corners, excess_at(of_C.corners, of_D.gradient, of_D.pressure_at_origin))
    corners, num_corners = within(of_D, corners, jnp.where(pairs.filled, num_corners, 0))
    normal = safe_normalize(of_C.gradient - of_D.gradient, axis=0)
    gradient_C, gradient_D = ca.dot(of_C.gradient, normal), -ca.dot(of_D.gradient, normal)
    return Polygons(corners, num_corners, normal, gradient_C, gradient_D, pairs.filled, pairs.left_out)


def tetrahedra_and_tetrahedra(meshes: Meshes, bound: int) -> ElementPairs:
    """Pairs of tetrahedra that may overlap on their plane of equal pressure."""
    chosen_C, chosen_D = chosen_elements(meshes, bound)
    of_C, of_D = (tetrahedra_of(corners) for corners in meshes.corners(chosen_C.indices, chosen_D.indices))
    rounding = rounding_of(of_C.corners)
    passed = reach_inside(of_C, of_D.corners[:3], rounding) & reach_inside(of_D, of_C.corners[:3], rounding).T
    excess_C = excess_at(of_C.corners[..., None], of_D.gradient[:, None], of_D.pressure_at_origin)
    excess_D = excess_at(of_D.corners[:, :, None], of_C.gradient[..., None], of_C.pressure_at_origin[:, None])
    passed &= both_signs(list(excess_C)) & both_signs([-excess for excess in excess_D])
    gradient_C, gradient_D = of_C.gradient[..., None], of_D.gradient[:, None]
    normal = gradient_C - gradient_D
    passed &= is_along(normal, gradient_C) & is_along(normal, -gradient_D)
    return pairs_that_passed(passed, chosen_C, chosen_D, bound)


def chosen_elements(meshes: Meshes, bound: int) -> tuple[Selection, Selection]:
    """The elements of each mesh that are near the other mesh."""
    X_DC = meshes.X_CD.inverse()
    p_C, p_D = meshes.vertices_C[:3], meshes.vertices_D[:3]
    C = PlacedMesh(p_C, (X_DC @ p_C.T).T, meshes.elements_C)
    D = PlacedMesh((X_DC @ p_D.T).T, p_D, meshes.elements_D)
    return elements_near(C, D, bound), elements_near(D, C, bound)


def excess_at(corners: Array, gradient: Array, at_origin: Array) -> Array:
    """Pressure of corners (4, corners, …) above the pressure of another tetrahedron there; axes broadcast."""
    return corners[3] - values_at(corners[:3], gradient[:, None], at_origin)


def within(
    tetrahedra: Tetrahedra, corners: Float[Array, "k corners n"], num_corners: Int[Array, " n"]
) -> tuple[Float[Array, "k corners+4 n"], Int[Array, " n"]]:
    """The parts of polygons within tetrahedra: what is on the inner side of all four faces."""
    rounding = rounding_of(corners)
    for face in range(4):
        slope, at_origin = tetrahedra.barycentric_slopes[:, face, None], tetrahedra.barycentric_at_origin[face]
        corners, num_corners = clip(corners, num_corners, values_at(corners[:3], slope, at_origin), rounding)
    return corners, num_corners


def normals_of(triangles: Float[Array, "3 3 n"]) -> Float[Array, "3 n"]:
    """Vectors normal to triangles that wind counterclockwise about them; as long as twice the areas."""
    return ca.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])


def rounding_of(x: Array) -> float:
    """How far from zero rounding may put a barycentric coordinate."""
    return 16.0 * float(jnp.finfo(x.dtype).eps)
