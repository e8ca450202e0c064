"""The shapes drawn on each body of a model, with the sizes and poses that the model's leaves hold."""

from __future__ import annotations

import dataclasses

import numpy as np

from mbjax.geometry import Box, Convex, Geometry, HalfSpace, Mesh, Shape
from mbjax.model import CollisionGeometryRecord, MultibodyModel

from .mesh_parts import in_own_colors


@dataclasses.dataclass(frozen=True)
class DrawnShapes:
    """Shapes of each body, world first: those always seen, and collision shapes seen on request."""

    seen: list[list[Geometry]]
    touching: list[list[Geometry]]


def drawn_shapes(model: MultibodyModel, collision_shapes: bool) -> DrawnShapes:
    """Collects visual shapes, half-spaces, collision shapes of bodies without visual ones, and the others if wanted."""
    seen: list[list[Geometry]] = []
    touching: list[list[Geometry]] = []
    for body, visual in enumerate(model.layout.visual):
        collision = current_collision_geometries(model, body)
        stand_in = [g for g in collision if not visual or isinstance(g.shape, HalfSpace)]
        colored = [part for geometry in visual for part in in_own_colors(geometry)]
        seen.append([*colored, *stand_in])
        touching.append([g for g in collision if g not in stand_in] if collision_shapes else [])
    return DrawnShapes(seen, touching)


def current_collision_geometries(model: MultibodyModel, body: int) -> list[Geometry]:
    """Collision shapes of a body; those that may touch another have the numbers of `model.collision`."""
    records = {g.name: (i, g) for i, g in enumerate(model.layout.contact.geometries) if g.body == body}
    return [
        _with_numbers(model, geometry, *records[geometry.name]) if geometry.name in records else geometry
        for geometry in model.layout.collision[body]
    ]


def _with_numbers(model: MultibodyModel, geometry: Geometry, index: int, record: CollisionGeometryRecord) -> Geometry:
    from scipy.spatial.transform import Rotation

    collision = model.collision
    w, x, y, z = np.asarray(collision.quaternion[index], dtype=np.float64)
    rotation = Rotation.from_quat([x, y, z, w]).as_matrix()
    sizes = np.asarray(collision.size[record.sizes], dtype=np.float64).tolist()
    vertices = np.asarray(collision.vertices[record.vertices], dtype=np.float64).tolist()
    return dataclasses.replace(
        geometry,
        shape=_resized(geometry.shape, sizes, vertices),
        rotation=tuple(map(tuple, rotation.tolist())),
        translation=tuple(np.asarray(collision.translation[index], dtype=np.float64).tolist()),
    )


def _resized(shape: Shape, sizes: list[float], vertices: list[list[float]]) -> Shape:
    match shape:
        case HalfSpace() | Mesh():
            return shape
        case Convex():
            return Convex(tuple((x, y, z) for x, y, z in vertices))
        case Box():
            x, y, z = sizes
            return Box((x, y, z))
        case _:
            return type(shape)(*sizes)
