"""Shapes of a model as records, those that touch with the numbers that the model has now."""

import dataclasses
from typing import Any

import jax
import numpy as np

from mbjax.geometry import (
    Box,
    Capsule,
    Convex,
    Cylinder,
    Ellipsoid,
    Geometry,
    HalfSpace,
    HydroelasticProperties,
    ProximityProperties,
    Shape,
    Sphere,
)
from mbjax.geometry.proximity_properties import DEFAULT_RELAXATION_TIME
from mbjax.model import CollisionGeometryRecord, HydroelasticRecord, MultibodyModel

from ..notes.write_notes import WriteNotes
from .numbers import as_double
from .poses import matrix
from .robot_records import CollisionRecord

PLACE = "model:0"  # what stands for the place in a file
OF_LENGTHS: dict[str, Any] = {
    "Sphere": Sphere,
    "Cylinder": Cylinder,
    "Capsule": Capsule,
    "Ellipsoid": Ellipsoid,
    "Box": lambda *size: Box(size),
    "HalfSpace": HalfSpace,
}


class CollisionShapes:
    """Finds the numbers of collision geometries, by body and name."""

    def __init__(self, model: MultibodyModel, notes: WriteNotes):
        self.layout = model.layout
        self.default_time = float(as_double(np.asarray(DEFAULT_RELAXATION_TIME, model.dtype)))
        self.numbers = jax.tree.map(as_double, model.collision)
        contact = model.layout.contact
        self._touching = {(g.body, g.name): (i, g) for i, g in enumerate(contact.geometries)}
        self._others = {(g.body, g.name): (i, g) for i, g in enumerate(contact.others)}
        if contact.others:
            what = f"{len(contact.others)} shapes that can touch nothing"
            notes.ignored("friction", f"the model does not hold that of {what}: the file has none for them")

    def of_body(self, body: int) -> list[CollisionRecord]:
        return [self._record(body, geometry) for geometry in self.layout.collision[body]]

    def _record(self, body: int, geometry: Geometry) -> CollisionRecord:
        key = body, geometry.name
        if key in self._touching:
            i, found = self._touching[key]
            return CollisionRecord(PLACE, self._current(geometry, i, found, self.numbers), self._properties(i, found))
        if key in self._others:
            i, found = self._others[key]
            return CollisionRecord(PLACE, self._current(geometry, i, found, self.numbers.others), ProximityProperties())
        return CollisionRecord(PLACE, geometry, ProximityProperties())

    def _current(self, geometry: Geometry, i: int, found: CollisionGeometryRecord, numbers: Any) -> Geometry:
        rotation: Any = tuple(map(tuple, matrix(numbers.quaternion[i]).tolist()))
        translation: Any = tuple(numbers.translation[i].tolist())
        return dataclasses.replace(
            geometry, shape=current_shape(found, numbers), rotation=rotation, translation=translation
        )

    def _properties(self, i: int, found: CollisionGeometryRecord) -> ProximityProperties:
        numbers = self.numbers
        time = float(numbers.relaxation_time[i])
        stiffness, dissipation = found.stiffness_index, found.dissipation_index
        return ProximityProperties(
            float(numbers.static_friction[i]),
            float(numbers.dynamic_friction[i]),
            float(numbers.stiffness[stiffness]) if stiffness >= 0 else None,
            float(numbers.hunt_crossley_dissipation[dissipation]) if dissipation >= 0 else None,
            None if time == self.default_time else time,
            self._hydroelastic(found.hydroelastic),
        )

    def _hydroelastic(self, found: HydroelasticRecord | None) -> HydroelasticProperties | None:
        if found is None:
            return None
        modulus = None if found.modulus_index < 0 else float(self.numbers.hydroelastic_modulus[found.modulus_index])
        return HydroelasticProperties(
            found.compliance, modulus, found.resolution_hint, found.margin, found.slab_thickness
        )


def current_shape(found: CollisionGeometryRecord, numbers: Any) -> Shape:
    """A shape with the lengths or the vertices that the model has now."""
    if found.kind == "Convex":
        return Convex(tuple(map(tuple, numbers.vertices[found.vertices].tolist())))
    return OF_LENGTHS[found.kind](*numbers.size[found.sizes].tolist())
