"""What of a hydroelastic geometry is fixed when a plant is finalized: compliance and the connectivity of its mesh."""

import functools
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from mbjax.execution import HashedOnce
from mbjax.geometry.mesh_hull import read_surface
from mbjax.geometry.proximity_properties import as_float, is_not_negative
from mbjax.geometry.shapes import Box, Capsule, Convex, Cylinder, Ellipsoid, HalfSpace, Mesh, Shape, Sphere

from .box_mesh import box_pattern
from .capsule_mesh import capsule_pattern
from .convex_mesh import ConvexPattern, convex_pattern
from .cylinder_mesh import cylinder_pattern
from .mesh_pattern import MeshPattern, surface_of
from .sphere_mesh import ellipsoid_pattern, sphere_pattern

Compliance = Literal["compliant", "rigid"]
ROUND = Sphere, Ellipsoid, Cylinder, Capsule  # shapes whose mesh only approximates them


@dataclass(frozen=True)
class SurfaceMesh:
    """Vertices and triangles of a surface, as plain numbers."""

    vertices: tuple[tuple[float, float, float], ...]
    triangles: tuple[tuple[int, int, int], ...]


class SurfacePattern(NamedTuple):
    """A surface that is as it is, without lengths."""

    elements: Int[np.ndarray, "triangles 3"]
    vertices: Float[np.ndarray, "vertices 3"]


@dataclass(frozen=True)
class HydroelasticTopology(HashedOnce):
    """The shape, compliance and numbers that a hydroelastic geometry was registered with; static and hashable.

    `mesh` is made of them, but for half-spaces, which have none. It has tetrahedra where the geometry is compliant,
    and surface triangles where it is rigid; those of a mesh file are in `surface`.
    """

    shape: Shape
    compliance: Compliance
    resolution_hint: float | None
    margin: float
    slab_thickness: float | None
    surface: SurfaceMesh | None = None

    __hash__ = HashedOnce.__hash__

    @property
    def is_rigid(self) -> bool:
        return self.compliance == "rigid"

    @property
    def is_half_space(self) -> bool:
        return isinstance(self.shape, HalfSpace)

    @functools.cached_property
    def mesh(self) -> MeshPattern | ConvexPattern | SurfacePattern:
        """Elements, and how their vertices follow from the numbers of the shape."""
        if isinstance(self.shape, Convex):
            return convex_pattern(self.shape, self.margin, self.is_rigid)
        if self.surface is not None:
            return SurfacePattern(np.array(self.surface.triangles), np.array(self.surface.vertices))
        pattern = volume_pattern(self.shape, self.resolution_hint, self.margin)
        return surface_of(pattern) if self.is_rigid else pattern

    @property
    def num_elements(self) -> int:
        """Number of tetrahedra or triangles; none for a half-space."""
        return 0 if self.is_half_space else len(self.mesh.elements)


def hydroelastic_geometry(
    shape: Shape,
    *,
    compliance: Compliance = "compliant",
    resolution_hint: float | None = None,
    margin: float = 0.0,
    slab_thickness: float | None = None,
    surface: SurfaceMesh | None = None,
) -> HydroelasticTopology:
    """The topology of a shape's pressure field, or of its surface where it is rigid.

    `resolution_hint` in m is about the length of an edge; round shapes need it, others ignore it. `margin` in m grows a
    compliant shape by a layer of negative pressure; a rigid shape ignores it. `slab_thickness` in m is the depth at
    which the pressure of a compliant half-space reaches its modulus. A compliant `Mesh` is the hull of its file's
    vertices, a rigid one has the triangles of the file, or of `surface`, which need not be closed nor convex.
    """
    label = f"hydroelastic_geometry: the {compliance} {type(shape).__name__}"
    if compliance not in ("compliant", "rigid"):
        raise ValueError(f"hydroelastic_geometry: compliance is {compliance!r}; give 'compliant' or 'rigid'.")
    is_rigid = compliance == "rigid"
    margin = 0.0 if is_rigid else not_negative_length(label, "margin", margin)
    if isinstance(shape, ROUND):
        resolution_hint = positive_length(label, "resolution_hint", resolution_hint, "the length of an edge")
    else:
        resolution_hint = None
    if isinstance(shape, HalfSpace) and not is_rigid:
        slab_thickness = positive_length(label, "slab_thickness", slab_thickness, "the depth of full pressure")
    else:
        slab_thickness = None
    if isinstance(shape, Mesh) and is_rigid:
        surface = surface_in_file(shape, label) if surface is None else surface
        return HydroelasticTopology(shape, compliance, None, 0.0, None, surface)
    if isinstance(shape, Mesh):
        shape = Convex(surface_in_file(shape, label).vertices)
    return HydroelasticTopology(shape, compliance, resolution_hint, margin, slab_thickness)


def volume_pattern(shape: Shape, resolution_hint: float | None, margin: float) -> MeshPattern:
    """Tetrahedra of a shape with a margin."""
    if isinstance(shape, Box):
        return box_pattern(shape)
    assert resolution_hint is not None  # which `hydroelastic_geometry` sees to
    match shape:
        case Sphere():
            return sphere_pattern(shape, resolution_hint, margin)
        case Ellipsoid():
            return ellipsoid_pattern(shape, resolution_hint, margin)
        case Cylinder():
            return cylinder_pattern(shape, resolution_hint, margin)
        case Capsule():
            return capsule_pattern(shape, resolution_hint, margin)
    raise ValueError(f"a {type(shape).__name__} has no mesh of tetrahedra.")


def surface_in_file(shape: Mesh, label: str) -> SurfaceMesh:
    """The scaled surface of a mesh file; ValueError where there is none."""
    if shape.path is None:
        raise ValueError(f"{label} '{shape.filename}' has no file on disk; give Mesh(filename, path).")
    surface = read_surface(shape.path)
    vertices = np.asarray(getattr(surface, "vertices", ()), float).reshape(-1, 3) * np.array(shape.scale)
    triangles = np.asarray(getattr(surface, "faces", ()), int).reshape(-1, 3)
    if not len(triangles):
        raise ValueError(f"{label} '{shape.path}' has no triangles; give a file with a surface.")
    if np.prod(shape.scale) < 0.0:
        triangles = triangles[:, ::-1]
    return SurfaceMesh(
        tuple((x, y, z) for x, y, z in vertices.tolist()), tuple((a, b, c) for a, b, c in triangles.tolist())
    )


def count_open_edges(surface: SurfaceMesh) -> int:
    """Number of edges around holes: those of one triangle alone, vertices at the same place being one."""
    vertices, triangles = np.array(surface.vertices), np.array(surface.triangles)
    _, place = np.unique(vertices, axis=0, return_inverse=True)
    corners = place.reshape(-1)[triangles]
    edges = np.sort(corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
    _, count = np.unique(edges, axis=0, return_counts=True)
    return int((count == 1).sum())


def positive_length(label: str, name: str, value: float | None, meaning: str) -> float:
    """The value as a float; ValueError unless it is positive and finite."""
    number = as_float(value)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{label}: {name} is {value}; give {meaning} in m, a positive number.")
    return number


def not_negative_length(label: str, name: str, value: float) -> float:
    """The value as a float; ValueError if it is negative or not finite."""
    number = as_float(value)
    if not is_not_negative(number):
        raise ValueError(f"{label}: {name} is {value}; give a number of m >= 0.")
    return number
