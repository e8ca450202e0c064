"""Meshes of tetrahedra that fill shapes, with edges of about a length."""

import itertools
import math
import os
from typing import Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.number_rules import POSITIVE, known_numbers

from ..hydroelastic.mesh_pattern import oriented
from ..hydroelastic.sphere_mesh import refinement_level
from ..shapes import Box, Capsule, Cylinder, Ellipsoid, Mesh, Shape, Sphere
from .ball import unit_ball, unit_disk
from .mesh_files import read_tetrahedra
from .tetrahedral_mesh import TetrahedralMesh, check_tetrahedra

MOST_TETRAHEDRA = 1_000_000
SHORTEST_EDGE = 1e-9  # edge of a unit sphere, far beyond the finest one
ROUNDING = 1e-9  # of a number of cells, so that 0.3 m in cells of 0.1 m are three
CORNERS_OF_CELL = np.array(list(itertools.product((0, 1), repeat=3)))
# Of a cell whose corner i has the bits of i as coordinates: the six tetrahedra around the diagonal from 0 to 7
OF_CELL = np.array([[0, 4, 6, 7], [0, 4, 5, 7], [0, 2, 6, 7], [0, 2, 3, 7], [0, 1, 5, 7], [0, 1, 3, 7]])


def as_tetrahedral_mesh(mesh: Any, resolution_hint: float | None = None, *, call: str) -> TetrahedralMesh:
    """A mesh given as such, as (points, tetrahedra), as the path of a file, or as a shape with a resolution hint."""
    if isinstance(mesh, Shape):
        return mesh_of_shape(mesh, resolution_hint, call)
    if resolution_hint is not None:
        raise ModelError(
            f"{call}: resolution_hint is {resolution_hint!r}, but only a shape is cut into tetrahedra; leave it out."
        )
    match mesh:
        case TetrahedralMesh():
            return mesh
        case str() | os.PathLike():
            return read_tetrahedra(mesh)
        case [points, tetrahedra]:
            return TetrahedralMesh(*check_tetrahedra(points, tetrahedra, label=f"{call}: the mesh"))
    raise ModelError(
        f"{call}: the mesh is of type {type(mesh).__name__}; give a TetrahedralMesh, a pair (points, tetrahedra), the "
        "path of a file, or a shape with a resolution_hint."
    )


def tetrahedra_of(shape: Shape, resolution_hint: float | None = None) -> TetrahedralMesh:
    """The mesh of a shape, with edges of about `resolution_hint` in m, in the frame G of the shape.

    A box is a grid of cells of six tetrahedra each, no longer than the hint along x, y and z. A sphere is the one of
    Drake's deformable spheres: an octahedron that is split until edges of its equator are as short as the hint, so that
    half the hint makes eight times as many tetrahedra. An ellipsoid is the unit sphere, stretched. A cylinder is the
    disk at the sphere's equator in layers, and a capsule has the halves of a sphere on its ends. A `Mesh` is read from
    its file and scaled, and needs no hint.
    """
    return mesh_of_shape(shape, resolution_hint, "tetrahedra_of")


def mesh_of_shape(shape: Shape, resolution_hint: Any, call: str) -> TetrahedralMesh:
    """The mesh of a shape, as `tetrahedra_of` says; messages of errors begin with `call`."""
    label = f"{call}: the {type(shape).__name__}"
    if isinstance(shape, Mesh):
        if shape.path is None:
            raise ModelError(f"{label} '{shape.filename}' has no file on disk; give Mesh(filename, path).")
        return read_tetrahedra(shape.path).scaled(shape.scale)
    if not isinstance(shape, Box | Sphere | Ellipsoid | Cylinder | Capsule):
        raise ModelError(
            f"{label} has no mesh of tetrahedra; give a Box, Sphere, Ellipsoid, Cylinder or Capsule, or a mesh that "
            "fTetWild (pytetwild), TetGen or Gmsh makes of a surface."
        )
    hint = float(
        known_numbers(label, "resolution_hint", resolution_hint, POSITIVE, unit="m", hint="Give the length of an edge.")
    )
    refuse_too_many(shape, hint, label)
    match shape:
        case Box():
            points, tetrahedra = box_grid(shape, hint)
        case Sphere(radius):
            points, tetrahedra = ball(level_of(hint, radius), np.full(3, radius))
        case Ellipsoid(a, b, c):
            points, tetrahedra = ball(level_of(hint, max(a, b, c)), np.array([a, b, c]))
        case Cylinder():
            points, tetrahedra = layers_of_disk(shape, hint)
        case Capsule():
            points, tetrahedra = capped_layers(shape, hint)
    return TetrahedralMesh(points, tetrahedra, f"{shape} with resolution_hint={hint:g}")


def refuse_too_many(shape: Box | Sphere | Ellipsoid | Cylinder | Capsule, hint: float, label: str) -> None:
    """ModelError where a mesh would have more tetrahedra than a body can use, before it is made."""
    match shape:
        case Box(size):
            count = 6.0 * math.prod(cells_along(length, hint) for length in size)
        case Sphere(radius):
            count = 8.0 ** (level_of(hint, radius) + 1)
        case Ellipsoid(a, b, c):
            count = 8.0 ** (level_of(hint, max(a, b, c)) + 1)
        case Cylinder(radius, length) | Capsule(radius, length):
            level = level_of(hint, radius)
            caps = 8.0 ** (level + 1) if isinstance(shape, Capsule) else 0.0
            count = 12.0 * 4.0**level * cells_along(length, hint) + caps
    if not count <= MOST_TETRAHEDRA:
        raise ModelError(
            f"{label} with resolution_hint={hint:g} has {count:.3g} tetrahedra or more, and {MOST_TETRAHEDRA} are "
            "allowed; give a longer resolution_hint."
        )


def cells_along(length: float, hint: float) -> float:
    """The number of cells along a length, a whole one."""
    ratio = length / hint
    return max(1.0, float(math.ceil(ratio - ROUNDING))) if ratio < MOST_TETRAHEDRA else ratio


def box_grid(box: Box, hint: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of a grid, and six tetrahedra in each cell, so that neighbours share the triangles of their faces."""
    counts = np.array([int(cells_along(length, hint)) for length in box.size])
    axes = [np.linspace(-0.5 * length, 0.5 * length, n + 1) for length, n in zip(box.size, counts, strict=True)]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    cells = np.stack(np.meshgrid(*map(np.arange, counts), indexing="ij"), axis=-1).reshape(-1, 1, 3)
    i, j, k = np.moveaxis(cells + CORNERS_OF_CELL, -1, 0)
    corners = (i * (counts[1] + 1) + j) * (counts[2] + 1) + k
    return points, oriented(corners[:, OF_CELL].reshape(-1, 4), points)


def level_of(hint: float, radius: float) -> int:
    """How often the octahedron is refined; lengths that only an error gives count as very short."""
    return refinement_level(max(hint / radius, SHORTEST_EDGE))


def ball(level: int, semi_axes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The unit ball, stretched."""
    tetrahedra, points = unit_ball(level)
    return points * semi_axes, tetrahedra


def layers_of_disk(cylinder: Cylinder, hint: float) -> tuple[np.ndarray, np.ndarray]:
    """Layers of prisms on the disk, each of three tetrahedra."""
    level = level_of(hint, cylinder.radius)
    on_disk, triangles = np.unique(unit_disk(level), return_inverse=True)
    disk = unit_ball(level)[1][on_disk] * cylinder.radius
    count = int(cells_along(cylinder.length, hint))
    heights = np.linspace(-0.5 * cylinder.length, 0.5 * cylinder.length, count + 1)
    points = (disk + heights[:, None, None] * np.array([0.0, 0.0, 1.0])).reshape(-1, 3)
    layers = np.arange(len(points)).reshape(count + 1, len(disk))
    return points, oriented(prisms_between(layers, triangles.reshape(-1, 3)), points)


def capped_layers(capsule: Capsule, hint: float) -> tuple[np.ndarray, np.ndarray]:
    """The two halves of a ball, moved apart, and layers of prisms on the disk between them."""
    level = level_of(hint, capsule.radius)
    tetrahedra, unit = unit_ball(level)
    triangles = unit_disk(level)
    on_disk, in_layer = np.unique(triangles, return_inverse=True)
    is_above = unit[tetrahedra, 2].sum(axis=1) > 0.0
    count = int(cells_along(capsule.length, hint))
    up = np.array([0.0, 0.0, 0.5 * capsule.length])
    ball_points = capsule.radius * unit
    inner = np.linspace(-1.0, 1.0, count + 1)[1:-1, None, None] * up + ball_points[on_disk]
    # Nodes of the disk at the lower end are those of the ball; at the upper end they follow after all others.
    points = np.concatenate(
        [ball_points + np.where(unit[:, 2:] > 0.0, up, -up), inner.reshape(-1, 3), ball_points[on_disk] + up]
    )
    later = len(unit) + np.arange(count * len(on_disk)).reshape(count, len(on_disk))
    at_upper_end = np.arange(len(unit))
    at_upper_end[on_disk] = later[-1]
    of_caps = np.where(is_above[:, None], at_upper_end[tetrahedra], tetrahedra)
    between = prisms_between(np.concatenate([on_disk[None], later]), in_layer.reshape(-1, 3))
    return points, oriented(np.concatenate([of_caps, between]), points)


def prisms_between(layers: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Three tetrahedra for each triangle between neighbouring layers of nodes (layers, nodes of the disk).

    The side over an edge is split from the lower end at its first node to the upper end at its second one, so that
    neighbours share the triangles of their sides.
    """
    low, high = layers[:-1][:, np.sort(triangles, axis=1)], layers[1:][:, np.sort(triangles, axis=1)]
    (a, b, c), (d, e, f) = np.moveaxis(low, -1, 0), np.moveaxis(high, -1, 0)
    return np.stack([[a, b, c, f], [a, b, e, f], [a, d, e, f]]).transpose(2, 3, 0, 1).reshape(-1, 4)
