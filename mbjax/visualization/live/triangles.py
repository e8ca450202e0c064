"""Triangles of every shape, for viewers that draw nothing but meshes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mbjax.errors import ModelError
from mbjax.geometry import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Mesh, Shape, Sphere

from ..mesh_embedding import TOTAL_FACES, load_mesh, simplified

SIDES = 32  # of a circle
RINGS = 12  # from pole to pole
GROUND_SIZE = 20.0  # m; a half-space is drawn as a square of this side


class Triangles(NamedTuple):
    """Vertices (m, 3) in m and faces (k, 3), counterclockwise as seen from outside."""

    vertices: np.ndarray
    faces: np.ndarray


def triangles_of(shape: Shape, most_faces: int = TOTAL_FACES) -> Triangles | str:
    """The surface of a shape in its geometry frame, or a phrase that says why a mesh file cannot be read."""
    match shape:
        case Sphere(radius):
            return _turned(*_arc(radius, 0.0))
        case Ellipsoid(a, b, c):
            unit = _turned(*_arc(1.0, 0.0))
            return Triangles(unit.vertices * np.array([a, b, c]), unit.faces)
        case Capsule(radius, length):
            return _turned(*_arc(radius, length))
        case Cylinder(radius, length):
            half = 0.5 * length
            return _turned(np.array([0.0, radius, radius, 0.0]), np.array([-half, -half, half, half]))
        case Box(size):
            return _hull(0.5 * np.array(size) * np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, 8).T)
        case HalfSpace():
            half = 0.5 * GROUND_SIZE
            corners = np.array([[-half, -half, 0.0], [half, -half, 0.0], [half, half, 0.0], [-half, half, 0.0]])
            return Triangles(corners, np.array([[0, 1, 2], [0, 2, 3]]))
        case Convex():
            return _hull(np.array(shape.vertices))
        case Mesh():
            surface = load_mesh(shape)
            if isinstance(surface, str):
                return surface
            surface = simplified(surface, most_faces)
            faces = np.asarray(surface.faces)
            mirrored = np.prod(shape.scale) < 0.0
            return Triangles(
                np.asarray(surface.vertices) * np.array(shape.scale), faces[:, ::-1] if mirrored else faces
            )
    raise ModelError(f"Viewer: cannot draw a {type(shape).__name__}.")


def _arc(radius: float, length: float) -> tuple[np.ndarray, np.ndarray]:
    """Profile (r, z) from the lower pole to the upper one, the two halves `length` apart."""
    angle = np.linspace(-0.5 * np.pi, 0.5 * np.pi, 2 * (RINGS // 2) + 1)
    middle = len(angle) // 2
    angle = np.insert(angle, middle, angle[middle]) if length else angle
    shift = np.where(np.arange(len(angle)) <= middle, -0.5, 0.5) * length
    return radius * np.cos(angle), radius * np.sin(angle) + shift


def _turned(r: np.ndarray, z: np.ndarray) -> Triangles:
    """The surface that a profile, from bottom to top, makes as it turns around z."""
    around = 2.0 * np.pi * np.arange(SIDES) / SIDES
    rings = [
        np.stack([ri * np.cos(around), ri * np.sin(around), np.full(SIDES, zi)], 1) for ri, zi in zip(r, z, strict=True)
    ]
    here = np.arange(SIDES)
    after = (here + 1) % SIDES
    faces = []
    for k in range(len(rings) - 1):
        lower, upper = k * SIDES, (k + 1) * SIDES
        faces.append(np.stack([lower + here, lower + after, upper + after], 1))
        faces.append(np.stack([lower + here, upper + after, upper + here], 1))
    vertices, found = np.concatenate(rings), np.concatenate(faces)
    corners = vertices[found]
    area = np.linalg.norm(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1)
    return Triangles(vertices, found[area > 1e-12 * area.max()])


def _hull(points: np.ndarray) -> Triangles:
    from scipy.spatial import ConvexHull

    hull = ConvexHull(points)
    corners = hull.points[hull.simplices]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    points_inwards = np.sum(normals * hull.equations[:, :3], axis=1) < 0.0
    return Triangles(hull.points, np.where(points_inwards[:, None], hull.simplices[:, ::-1], hull.simplices))
