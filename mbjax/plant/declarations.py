"""What is declared on a plant beside its elements: shapes that touch, filters, mimic relations and keyframes."""

import dataclasses
from typing import Any

import numpy as np

from mbjax.geometry import Geometry, ProximityProperties
from mbjax.joints import AbstractJoint
from mbjax.model import Body


@dataclasses.dataclass(frozen=True, eq=False)
class RegisteredCollision:
    """A shape on a body, with its contact properties; `source` is its place in the file it comes from."""

    body: Body
    geometry: Geometry
    properties: ProximityProperties
    source: str | None = None

    @property
    def name(self) -> str:
        return f"{self.body.name}::{self.geometry.name}"


@dataclasses.dataclass(frozen=True)
class CollisionExclusion:
    """No geometry of group A touches one of B; a group holds bodies, for all their geometries, and geometries.

    Deformable bodies may be among the bodies.
    """

    group_A: tuple[Any, ...]
    group_B: tuple[Any, ...]


@dataclasses.dataclass(frozen=True)
class Mimic:
    """A mimic relation: q of the follower = multiplier q of the leader + offset."""

    follower: AbstractJoint
    leader: AbstractJoint
    multiplier: float
    offset: float


@dataclasses.dataclass(frozen=True, eq=False)
class DeclaredKeyframe:
    """Numbers by joint; the others are at their defaults, at rest."""

    name: str
    positions: dict[AbstractJoint, np.ndarray]
    velocities: dict[AbstractJoint, np.ndarray]
    time: float
