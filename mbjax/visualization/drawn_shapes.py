"""The shapes drawn on each body of a model, with the sizes and poses that the model's leaves hold."""

from __future__ import annotations

import dataclasses

import numpy as np

from mbjax.geometry import Box, Convex, Geometry, HalfSpace, Mesh, Shape
from mbjax.model import CollisionGeometryRecord, CollisionParameters, GeometryParameters, MultibodyModel

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
    """Collision shapes of a body with the numbers of `model.collision`, or of its `others` if they touch nothing."""
    contact, others = model.layout.contact, model.collision.others
    parts = [(contact.geometries, model.collision)] + ([] if others is None else [(contact.others, others)])
    places = {g.name: (numbers, k, g) for records, numbers in parts for k, g in enumerate(records) if g.body == body}
    return [
        _with_numbers(geometry, *places[geometry.name]) if geometry.name in places else geometry
        for geometry in model.layout.collision[body]
    ]


def _with_numbers(
    geometry: Geometry, numbers: CollisionParameters | GeometryParameters, row: int, record: CollisionGeometryRecord
) -> Geometry:
    from scipy.spatial.transform import Rotation

    w, x, y, z = np.asarray(numbers.quaternion[row], dtype=np.float64)
    rotation = Rotation.from_quat([x, y, z, w]).as_matrix()
    sizes = np.asarray(numbers.size[record.sizes], dtype=np.float64).tolist()
    vertices = np.asarray(numbers.vertices[record.vertices], dtype=np.float64).tolist()
    return dataclasses.replace(
        geometry,
        shape=_resized(geometry.shape, sizes, vertices),
        rotation=tuple(map(tuple, rotation.tolist())),
        translation=tuple(np.asarray(numbers.translation[row], dtype=np.float64).tolist()),
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
