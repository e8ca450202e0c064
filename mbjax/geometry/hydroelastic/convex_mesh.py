"""Meshes of convex hulls: triangles on the hull, joined to the centre of its volume.

A margin moves the facets of a hull outward, each along its normal. A vertex of the grown hull is where three of the
moved facets meet. Which ones those are is found at finalize, as several may come from one vertex of the hull: where
four facets met, two vertices and an edge between them appear.
"""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.spatial import ConvexHull, HalfspaceIntersection

from mbjax.geometry.shapes import Convex

SAME_PLANE = 1e-9  # relative to the hull's size; facets closer than this are one


class ConvexPattern(NamedTuple):
    """The connectivity of a hull's mesh.

    `triangles` index the hull's vertices, and wind counterclockwise seen from outside. These are `kept` of the shape's
    vertices, or with a margin the points where the planes of three facets meet: `meeting` indexes `facets`, which give
    each plane by three of the shape's vertices. `elements` are the triangles of a rigid hull. Those of a compliant hull
    are tetrahedra, whose first corner is the centre; it comes after the hull's vertices.
    """

    elements: Int[np.ndarray, "elements corners"]
    triangles: Int[np.ndarray, "triangles 3"]
    kept: Int[np.ndarray, " hull_vertices"] | None
    facets: Int[np.ndarray, "facets 3"]
    meeting: Int[np.ndarray, "hull_vertices 3"]


def convex_pattern(shape: Convex, margin: float, is_rigid: bool) -> ConvexPattern:
    """The mesh of the hull of a shape's vertices, moved outward by the margin."""
    points = np.array(shape.vertices)
    hull = ConvexHull(points)
    facets, planes = facets_of(points, hull)
    if margin == 0.0:
        kept, meeting = np.sort(hull.vertices), np.zeros((0, 3), int)
        corners = points[kept]
    else:
        kept, meeting = None, meeting_facets(points, planes, margin)
        corners = np.linalg.solve(planes[meeting, :3], margin - planes[meeting, 3:])[..., 0]
    triangles = outward_triangles(corners, ConvexHull(corners))
    tetrahedra = np.column_stack([np.full(len(triangles), len(corners)), triangles])
    return ConvexPattern(triangles if is_rigid else tetrahedra, triangles, kept, facets, meeting)


def outward_triangles(points: Float[np.ndarray, "n 3"], hull: ConvexHull) -> Int[np.ndarray, "triangles 3"]:
    """The triangles of a hull, counterclockwise seen from outside."""
    triangles = np.asarray(hull.simplices)
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    is_inward = np.sum(np.cross(b - a, c - a) * hull.equations[:, :3], axis=1) < 0.0
    return np.where(is_inward[:, None], triangles[:, [0, 2, 1]], triangles)


def facets_of(
    points: Float[np.ndarray, "n 3"], hull: ConvexHull
) -> tuple[Int[np.ndarray, "facets 3"], Float[np.ndarray, "facets 4"]]:
    """The largest triangle in each plane of a hull, and the planes: outward normal · x + offset <= 0 inside."""
    triangles = outward_triangles(points, hull)
    a, b, c = np.moveaxis(points[triangles], 1, 0)
    size = np.ptp(points, axis=0).max()
    planes = hull.equations / np.array([1.0, 1.0, 1.0, size])
    chosen: list[int] = []
    for index in np.argsort(-np.linalg.norm(np.cross(b - a, c - a), axis=1)):
        if not chosen or np.abs(planes[chosen] - planes[index]).max(axis=1).min() > SAME_PLANE:
            chosen.append(int(index))
    return triangles[chosen], hull.equations[chosen]


def meeting_facets(
    points: Float[np.ndarray, "n 3"], planes: Float[np.ndarray, "facets 4"], margin: float
) -> Int[np.ndarray, "corners 3"]:
    """Three facets for each vertex of the grown hull: the least parallel ones where more of them meet."""
    moved = planes - np.array([0.0, 0.0, 0.0, margin])
    corners = HalfspaceIntersection(moved, points.mean(axis=0)).intersections
    size = np.ptp(points, axis=0).max() + margin
    is_on = np.abs(corners @ moved[:, :3].T + moved[:, 3]) <= SAME_PLANE * size
    return np.array(sorted({least_parallel(np.flatnonzero(row), planes[:, :3]) for row in is_on}))


def least_parallel(facets: Int[np.ndarray, " n"], normals: Float[np.ndarray, "facets 3"]) -> tuple[int, ...]:
    """Of some facets, the three whose normals span the largest volume."""
    triples = np.array(list(itertools.combinations(facets.tolist(), 3)))
    return tuple(int(i) for i in triples[np.argmax(np.abs(np.linalg.det(normals[triples])))])
