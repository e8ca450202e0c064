"""Shapes and their poses in a body, as plain hashable values, as a robot file gives them.

Lengths are in metres. Every shape is centred at the origin of its geometry frame G; axes of revolution
are Gz.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass

import numpy as np

from mbjax.errors import MissingPackageError

from .mesh_hull import MAX_VERTICES, describe_cut, read_mesh_hull

Floats3 = tuple[float, float, float]
Floats3x3 = tuple[Floats3, Floats3, Floats3]

IDENTITY: Floats3x3 = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
ORTHONORMAL_TOLERANCE = 1e-6
FLATNESS_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Sphere:
    radius: float

    def __post_init__(self) -> None:
        _set(self, radius=_positive(self, "radius", self.radius))


@dataclass(frozen=True)
class Box:
    """A box; `size` holds the full lengths along Gx, Gy, Gz."""

    size: Floats3

    def __post_init__(self) -> None:
        size = _vector3(self, "size", self.size)
        _set(self, size=tuple(_positive(self, "size", length) for length in size))


@dataclass(frozen=True)
class Cylinder:
    """A cylinder; `length` is the full length along Gz."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _set(self, radius=_positive(self, "radius", self.radius))
        _set(self, length=_positive(self, "length", self.length))


@dataclass(frozen=True)
class Capsule:
    """A capsule; `length` is that of the cylindrical part along Gz, and the two caps add `2 radius`."""

    radius: float
    length: float

    def __post_init__(self) -> None:
        _set(self, radius=_positive(self, "radius", self.radius))
        _set(self, length=_positive(self, "length", self.length))


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid; `a`, `b`, `c` are the semi-axes along Gx, Gy, Gz."""

    a: float
    b: float
    c: float

    def __post_init__(self) -> None:
        for name in ("a", "b", "c"):
            _set(self, **{name: _positive(self, name, getattr(self, name))})


@dataclass(frozen=True)
class HalfSpace:
    """A half-space: all points with z <= 0 in the geometry frame; the outward normal is Gz."""


@dataclass(frozen=True)
class Mesh:
    """A mesh; `filename` is as the robot file gives it, and `path` is that file on disk, or None if not found."""

    filename: str
    path: str | None = None
    scale: Floats3 = (1.0, 1.0, 1.0)

    def __post_init__(self) -> None:
        if not self.filename:
            raise ValueError("Mesh: filename is empty; give the mesh file's name.")
        scale = _vector3(self, "scale", self.scale)
        if any(factor == 0.0 for factor in scale):
            raise ValueError(
                f"Mesh('{self.filename}'): scale is {scale}, but a zero factor flattens the mesh. "
                "Give three factors other than zero (negative ones mirror)."
            )
        _set(self, scale=scale)


@dataclass(frozen=True)
class Convex:
    """The convex hull of `vertices`, at least four points in the geometry frame that span a volume."""

    vertices: tuple[Floats3, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.vertices, Iterable):
            raise ValueError(f"Convex: vertices is {self.vertices!r}; give at least four points of 3 numbers each.")
        vertices = tuple(_vector3(self, "a vertex", vertex) for vertex in self.vertices)
        points = np.array(vertices).reshape(-1, 3)
        extent = np.linalg.svd(points - points[:1], compute_uv=False) if len(points) > 3 else np.zeros(3)
        if extent[-1] <= FLATNESS_TOLERANCE * extent[0]:
            raise ValueError(
                f"Convex: {len(vertices)} vertices span no volume; give at least four points that are not in a plane."
            )
        _set(self, vertices=vertices)

    @classmethod
    def from_mesh(
        cls,
        path: str | os.PathLike[str],
        *,
        scale: float | Sequence[float] = 1.0,
        max_vertices: int = MAX_VERTICES,
    ) -> Convex:
        """The convex hull of a mesh file, scaled by one factor or three; needs `pip install "mbjax[mesh]"`.

        A hull with more than `max_vertices` keeps those that reach farthest out, and warns by how much it was cut. The
        cost of a pair of shapes is proportional to their vertices. Raises `ValueError` for a file that cannot be read
        or spans no volume, for a factor that is zero or not finite, and for `max_vertices` that is no integer >= 4.
        """
        try:
            hull = read_mesh_hull(path, scale, max_vertices)
        except MissingPackageError:
            raise
        except ValueError as error:
            raise ValueError(f"Convex.from_mesh: {error}") from None
        if hull.num_left_out:
            warnings.warn(f"Convex.from_mesh('{path}'): {describe_cut(hull)}; max_vertices= keeps more.", stacklevel=2)
        return cls(tuple(map(tuple, hull.vertices.tolist())))


Shape = Sphere | Box | Cylinder | Capsule | Ellipsoid | HalfSpace | Mesh | Convex


def shape_lengths(shape: Shape) -> tuple[float, ...]:
    """The lengths of a shape, in the order of its fields; none for a half-space, a mesh or a convex hull."""
    match shape:
        case Box(size):
            return size
        case HalfSpace() | Mesh() | Convex():
            return ()
        case _:
            return astuple(shape)


@dataclass(frozen=True)
class Geometry:
    """A named shape fixed to a body B, with pose X_BG: `rotation` R_BG, `translation` p_BoGo_B in m.

    `name` is any text but an empty one. `rgba` has four values in [0, 1]; None where the robot file gives no color.
    """

    name: str
    shape: Shape
    rotation: Floats3x3 = IDENTITY
    translation: Floats3 = (0.0, 0.0, 0.0)
    rgba: tuple[float, float, float, float] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"Geometry: the name must be a non-empty string, got {self.name!r}.")
        if not isinstance(self.shape, Shape):
            raise TypeError(
                f"Geometry('{self.name}'): shape is {self.shape!r}, not a shape of mbjax.geometry. "
                "Give a Sphere, Box, Cylinder, Capsule, Ellipsoid, HalfSpace, Mesh or Convex."
            )
        _set(self, rotation=_rotation_matrix(self, self.rotation))
        _set(self, translation=_vector3(self, "translation", self.translation))
        if self.rgba is not None:
            _set(self, rgba=_color(self, self.rgba))


def _set(instance: object, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(instance, name, value)


def _label(instance: object) -> str:
    kind = type(instance).__name__
    name = getattr(instance, "name", None) or getattr(instance, "filename", None)
    return f"{kind}('{name}')" if name else kind


def _positive(instance: object, name: str, value: float) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{_label(instance)}: {name} is {value}; give a positive, finite length in metres.")
    return number


def _finite_tuple(instance: object, name: str, values: Iterable[float], count: int) -> tuple[float, ...]:
    try:
        numbers = tuple(float(value) for value in values)
    except (TypeError, ValueError):
        numbers = ()
    if len(numbers) != count or not all(math.isfinite(number) for number in numbers):
        raise ValueError(f"{_label(instance)}: {name} is {values}; give {count} finite numbers.")
    return numbers


def _vector3(instance: object, name: str, values: Iterable[float]) -> Floats3:
    x, y, z = _finite_tuple(instance, name, values, 3)
    return (x, y, z)


def _color(instance: object, values: Iterable[float]) -> tuple[float, float, float, float]:
    red, green, blue, alpha = _finite_tuple(instance, "rgba", values, 4)
    if not all(0.0 <= channel <= 1.0 for channel in (red, green, blue, alpha)):
        raise ValueError(f"{_label(instance)}: rgba is {(red, green, blue, alpha)}; give four values from 0 to 1.")
    return (red, green, blue, alpha)


def _rotation_matrix(instance: object, rows: Iterable[Iterable[float]]) -> Floats3x3:
    if not isinstance(rows, Iterable):
        raise ValueError(f"{_label(instance)}: rotation is {rows}; give a 3x3 matrix.")
    matrix = tuple(_vector3(instance, "rotation row", row) for row in rows)
    if len(matrix) != 3:
        raise ValueError(f"{_label(instance)}: rotation has {len(matrix)} rows; give a 3x3 matrix.")
    row_x, row_y, row_z = matrix
    is_orthonormal = all(
        abs(_dot(matrix[i], matrix[j]) - float(i == j)) <= ORTHONORMAL_TOLERANCE for i in range(3) for j in range(i, 3)
    )
    if not is_orthonormal or _dot(_cross(row_x, row_y), row_z) < 0.0:
        raise ValueError(
            f"{_label(instance)}: rotation is {matrix}, which is not a rotation matrix. "
            "Give orthonormal rows with determinant +1."
        )
    return (row_x, row_y, row_z)


def _dot(a: Floats3, b: Floats3) -> float:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Floats3, b: Floats3) -> Floats3:
    return (a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0])
