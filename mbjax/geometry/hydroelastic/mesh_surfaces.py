"""Contact surfaces of a compliant mesh with another mesh: polygons between pairs of their elements.

The compliant mesh C has tetrahedra. The other mesh D has triangles where it is rigid, tetrahedra where it is compliant.
All is computed in the frame of C.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from mbjax.spatial import RigidTransform, safe_divide, safe_norm
from mbjax.spatial import component_algebra as ca

from .element_pairs import (
    CANDIDATES,
    ElementPairs,
    both_signs,
    elements_near,
    is_along,
    is_any_inside,
    pairs_that_overlap,
    pairs_that_passed,
    reach_inside,
)
from .faces import Polygons
from .linear_functions import (
    TETRAHEDRON_FACES,
    TETRAHEDRON_PRESSURE,
    TRIANGLE_EDGES,
    TRIANGLE_FACE,
    moved_functions,
    moved_points,
    values_at,
    values_of_all,
)
from .outlines import clip, corners_where_planes_meet, cut_tetrahedra, whole_triangles
from .pressure_field import PressureField
from .selection import Selection, take_columns

MOST_CORNERS_OF_TRIANGLE, MOST_CORNERS_OF_CUT = 7, 8  # within a tetrahedron


class Elements(NamedTuple):
    """Elements of a mesh in C, as in `PressureField`."""

    corners: Float[Array, "4 corners n"]
    corner_pressure: Float[Array, "corners n"]
    functions: Float[Array, "4 functions n"]

    def at(self, index: Int[Array, " m"]) -> "Elements":
        """Some of the elements."""
        return Elements(*(take_columns(part, index) for part in self))

    @property
    def faces(self) -> Float[Array, "4 4 n"]:
        """Barycentric coordinates of tetrahedra."""
        return self.functions[:, TETRAHEDRON_FACES]

    @property
    def pressure(self) -> Float[Array, "4 n"]:
        """Pressure in tetrahedra."""
        return self.functions[:, TETRAHEDRON_PRESSURE]


def elements_of(field: PressureField, X_CG: RigidTransform | None = None) -> Elements:
    """The elements of a field, moved from G to C; None stands for the same frame."""
    if X_CG is None:
        return Elements(field.corners_G, field.corner_pressure, field.functions_G)
    functions = moved_functions(X_CG, field.functions_G)
    return Elements(moved_points(X_CG, field.corners_G), field.corner_pressure, functions)


def polygons_with_rigid_mesh(
    C: PressureField, D: PressureField, X_CD: RigidTransform, bound: int, near: int
) -> Polygons:
    """The parts of rigid triangles of D within compliant tetrahedra of C; at most `near` elements of each are tried."""
    all_C, all_D = elements_of(C), elements_of(D, X_CD)
    chosen = chosen_elements(*jax.lax.stop_gradient((all_C, all_D, C, D, X_CD)), near)
    pairs = tetrahedra_and_triangles(*jax.lax.stop_gradient((all_C, all_D)), *chosen, bound)
    of_C, of_D = all_C.at(pairs.elements_C), all_D.at(pairs.elements_D)
    planes = jnp.concatenate([of_D.functions[:, TRIANGLE_EDGES], of_C.faces], axis=1)
    face = of_D.functions[:, TRIANGLE_FACE]
    triangles, sides = jax.lax.stop_gradient((of_D.corners[:3], planes))
    outline = clip(whole_triangles(triangles), sides, 3, MOST_CORNERS_OF_TRIANGLE)
    return Polygons(
        corners_C=with_pressure(corners_where_planes_meet(outline, face, planes), of_C.pressure),
        num_corners=outline.num_corners,
        normal_C=face[:3],
        gradient_C=ca.dot(of_C.pressure[:3], face[:3]),
        gradient_D=None,
        filled=pairs.filled,
        left_out=pairs.left_out,
        elements_D=pairs.elements_D,
    )


def tetrahedra_and_triangles(
    all_C: Elements, all_D: Elements, chosen_C: Selection, chosen_D: Selection, bound: int
) -> ElementPairs:
    """Pairs of a tetrahedron and a triangle that overlap, and whose triangle faces the growing pressure."""
    of_C, of_D = all_C.at(chosen_C.indices), all_D.at(chosen_D.indices)
    face = of_D.functions[:, TRIANGLE_FACE]
    passed = reach_inside(of_C.faces, of_D.corners)
    passed &= both_signs(values_of_all(face, of_C.corners)).T
    gradient, normal = of_C.pressure[:3], face[:3]
    along = values_of_all(gradient, normal)
    passed &= is_along(along, ca.dot(normal, normal), ca.dot(gradient, gradient)[:, None])
    pairs = pairs_that_passed(passed, chosen_C, chosen_D, CANDIDATES * bound)
    of_C, of_D = all_C.at(pairs.elements_C), all_D.at(pairs.elements_D)
    heights = values_at(of_D.functions[:, TRIANGLE_FACE, None], of_C.corners[:3])
    cut = cut_tetrahedra(of_C.corners[:3], heights)
    return pairs_that_overlap(pairs, is_any_inside(of_D.functions[:, TRIANGLE_EDGES], cut.corners), bound)


def polygons_with_compliant_mesh(C: PressureField, D: PressureField, X_CD: RigidTransform, bound: int) -> Polygons:
    """The polygons between two compliant meshes."""
    all_C, all_D = elements_of(C), elements_of(D, X_CD)
    chosen = chosen_elements(*jax.lax.stop_gradient((all_C, all_D, C, D, X_CD)), bound)
    pairs = tetrahedra_and_tetrahedra(*jax.lax.stop_gradient((all_C, all_D)), *chosen, bound)
    return polygons_of_tetrahedra(all_C, all_D, pairs)


def polygons_of_tetrahedra(all_C: Elements, all_D: Elements, pairs: ElementPairs) -> Polygons:
    """Where the planes of equal pressure cut tetrahedra of C, as far as these polygons are within tetrahedra of D."""
    of_C, of_D = all_C.at(pairs.elements_C), all_D.at(pairs.elements_D)
    excess = of_C.pressure - of_D.pressure
    face = safe_divide(excess, jnp.broadcast_to(safe_norm(excess[:3], axis=0), excess.shape))
    planes = jnp.concatenate([of_C.faces, of_D.faces], axis=1)
    corners, heights, sides = jax.lax.stop_gradient((of_C.corners[:3], excess_over(of_C, of_D), planes))
    outline = clip(cut_tetrahedra(corners, heights), sides, 4, MOST_CORNERS_OF_CUT)
    return Polygons(
        corners_C=with_pressure(corners_where_planes_meet(outline, face, planes), of_C.pressure),
        num_corners=outline.num_corners,
        normal_C=face[:3],
        gradient_C=ca.dot(of_C.pressure[:3], face[:3]),
        gradient_D=-ca.dot(of_D.pressure[:3], face[:3]),
        filled=pairs.filled,
        left_out=pairs.left_out,
        elements_D=pairs.elements_D,
        elements_C=pairs.elements_C,
    )


def tetrahedra_and_tetrahedra(
    all_C: Elements, all_D: Elements, chosen_C: Selection, chosen_D: Selection, bound: int
) -> ElementPairs:
    """Pairs of tetrahedra that overlap on their plane of equal pressure."""
    of_C, of_D = all_C.at(chosen_C.indices), all_D.at(chosen_D.indices)
    passed = reach_inside(of_C.faces, of_D.corners) & reach_inside(of_D.faces, of_C.corners).T
    passed &= both_signs(of_C.corner_pressure - values_of_all(of_D.pressure, of_C.corners)).T
    passed &= both_signs(values_of_all(of_C.pressure, of_D.corners) - of_D.corner_pressure)
    gradient_C, gradient_D = of_C.pressure[:3], of_D.pressure[:3]
    product = values_of_all(gradient_C, gradient_D)
    square_C, square_D = ca.dot(gradient_C, gradient_C)[:, None], ca.dot(gradient_D, gradient_D)
    square = square_C - 2.0 * product + square_D  # of the normal, which is the difference of the gradients
    passed &= is_along(square_C - product, square, square_C) & is_along(square_D - product, square, square_D)
    pairs = pairs_that_passed(passed, chosen_C, chosen_D, CANDIDATES * bound)
    return pairs_that_share_a_polygon(all_C, all_D, pairs, bound)


def pairs_that_share_a_polygon(all_C: Elements, all_D: Elements, pairs: ElementPairs, bound: int) -> ElementPairs:
    """Those pairs of tetrahedra that overlap on their plane of equal pressure."""
    of_C, of_D = all_C.at(pairs.elements_C), all_D.at(pairs.elements_D)
    cut_C = cut_tetrahedra(of_C.corners[:3], excess_over(of_C, of_D))
    cut_D = cut_tetrahedra(of_D.corners[:3], excess_over(of_D, of_C))
    overlap = is_any_inside(of_D.faces, cut_C.corners) & is_any_inside(of_C.faces, cut_D.corners)
    return pairs_that_overlap(pairs, overlap, bound)


def excess_over(elements: Elements, others: Elements) -> Float[Array, "4 n"]:
    """Pressure of the corners of tetrahedra above the pressure of other tetrahedra there."""
    return elements.corner_pressure - values_at(others.pressure[:, None], elements.corners[:3])


def chosen_elements(
    all_C: Elements, all_D: Elements, C: PressureField, D: PressureField, X_CD: RigidTransform, bound: int
) -> tuple[Selection, Selection]:
    """The elements of each mesh that are near the other mesh."""
    chosen_C = elements_near(moved_points(X_CD.inverse(), all_C.corners), D.corners_G, bound)
    return chosen_C, elements_near(all_D.corners, C.corners_G, bound)


def with_pressure(corners: Float[Array, "3 corners n"], pressure: Float[Array, "4 n"]) -> Float[Array, "4 corners n"]:
    """Corners with the pressure there as fourth component."""
    return jnp.concatenate([corners, values_at(pressure[:, None], corners)[None]])
