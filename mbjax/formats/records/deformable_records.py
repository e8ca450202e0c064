"""Records of a deformable body in a robot file, checked and in plain values."""

import dataclasses
from typing import Any

from mbjax.geometry import ProximityProperties, Shape, TetrahedralMesh
from mbjax.spatial import RigidTransform

Vector3 = tuple[float, float, float]


@dataclasses.dataclass
class WallRecord:
    """A half-space of the world that holds the nodes in it: a point of its plane in m, and its outward unit normal."""

    place: str
    p_WQ: Vector3
    n_W: Vector3


@dataclasses.dataclass
class DeformableRecord:
    """A deformable body, whose mesh has the pose X_WG in the reference configuration.

    `mesh` is that of `shape`, with edges of about `resolution_hint` in m unless it comes from a file; that of a model
    has no shape. `material` holds what is said of it by the names of a material's numbers, and its `model`.
    """

    name: str
    line: int
    place: str
    shape: Shape | None
    mesh: TetrahedralMesh
    X_WG: RigidTransform
    material: dict[str, Any]
    properties: ProximityProperties
    resolution_hint: float | None = None
    walls: list[WallRecord] = dataclasses.field(default_factory=list)
    rgba: tuple[float, float, float, float] | None = None
