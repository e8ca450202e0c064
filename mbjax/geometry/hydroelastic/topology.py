"""What of a hydroelastic geometry is fixed when a plant is finalized: compliance and the connectivity of its mesh."""

import functools
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mbjax.execution import HashedOnce
from mbjax.geometry.shapes import Box, Ellipsoid, HalfSpace, Shape, Sphere

from .box_mesh import box_pattern
from .mesh_pattern import MeshPattern, surface_of
from .sphere_mesh import ellipsoid_pattern, sphere_pattern

Compliance = Literal["compliant", "rigid"]


@dataclass(frozen=True)
class HydroelasticTopology(HashedOnce):
    """The shape, compliance and numbers that a hydroelastic geometry was registered with; static and hashable.

    `mesh` is made of them, but for half-spaces, which have none. It has tetrahedra where the geometry is compliant,
    and surface triangles where it is rigid.
    """

    shape: Shape
    compliance: Compliance
    resolution_hint: float | None
    margin: float
    slab_thickness: float | None

    __hash__ = HashedOnce.__hash__

    @property
    def is_rigid(self) -> bool:
        return self.compliance == "rigid"

    @property
    def is_half_space(self) -> bool:
        return isinstance(self.shape, HalfSpace)

    @functools.cached_property
    def mesh(self) -> MeshPattern:
        """Elements and vertices for any lengths of the shape."""
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
) -> HydroelasticTopology:
    """The topology of a shape's pressure field, or of its surface where it is rigid.

    `resolution_hint` in m is about the length of an edge. `margin` in m grows a compliant shape by a layer of negative
    pressure. `slab_thickness` in m is the depth at which a half-space's pressure reaches its modulus.
    """
    is_rigid = compliance == "rigid"
    return HydroelasticTopology(shape, compliance, resolution_hint, 0.0 if is_rigid else margin, slab_thickness)


def volume_pattern(shape: Shape, resolution_hint: float | None, margin: float) -> MeshPattern:
    """Tetrahedra of a shape with a margin."""
    match shape:
        case Sphere():
            return sphere_pattern(shape, resolution_hint, margin)
        case Ellipsoid():
            return ellipsoid_pattern(shape, resolution_hint, margin)
        case Box():
            return box_pattern(shape)
    raise NotImplementedError(f"{shape} has no hydroelastic mesh.")
