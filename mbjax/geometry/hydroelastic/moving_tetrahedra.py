"""Contact surfaces of two meshes of tetrahedra whose corners move, as deformable bodies have.

Each mesh has a depth at its corners, linear in between: zero on its surface at rest, growing inward. The surface is
where both depths are the same, as that of two compliant hydroelastic geometries is where their pressures are.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from .element_pairs import elements_near
from .linear_functions import TETRAHEDRON_FACES, functions_of_tetrahedra, homogeneous, values_at
from .mesh_surfaces import Elements, polygons_of_tetrahedra, tetrahedra_and_tetrahedra
from .polygons import SMALLEST_AREA, area_and_centroid

AROUND = 4  # times the bound on polygons: elements of each mesh that may be near the other one


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
    A, B = elements_with_depth(corners_A, depth_A), elements_with_depth(corners_B, depth_B)
    still_A, still_B = jax.lax.stop_gradient((A, B))
    near = AROUND * bound
    chosen = (
        elements_near(still_A.corners, still_B.corners, near),
        elements_near(still_B.corners, still_A.corners, near),
    )
    polygons = polygons_of_tetrahedra(A, B, tetrahedra_and_tetrahedra(still_A, still_B, *chosen, bound))
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


def elements_with_depth(corners: Float[Array, "3 4 k"], depth: Float[Array, "4 k"]) -> Elements:
    """Tetrahedra with a depth in the place of a pressure."""
    return Elements(homogeneous(corners), depth, functions_of_tetrahedra(corners, depth))


def weights_of_corners(corners: Float[Array, "3 4 n"], points: Float[Array, "3 n"]) -> Float[Array, "4 n"]:
    """Weights with which the corners of tetrahedra sum up to points: barycentric coordinates."""
    functions = functions_of_tetrahedra(corners, jnp.zeros_like(corners[0]))
    return values_at(functions[:, TETRAHEDRON_FACES], points[:, None])
