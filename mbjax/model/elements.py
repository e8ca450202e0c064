"""Elements of a plant before `finalize`: bodies, frames and actuators."""

import dataclasses
from typing import Any

import numpy as np

from mbjax.geometry import Geometry
from mbjax.spatial import RigidTransform, SpatialInertia

from .controls import Control


@dataclasses.dataclass(eq=False)
class Body:
    """A rigid body with its spatial inertia M_BBo_B about the origin of its own frame, in kg and kg m²."""

    name: str
    index: int
    model_instance: int
    inertia: SpatialInertia | None
    source: str | None = None
    visual: list[Geometry] = dataclasses.field(default_factory=list)
    collision: list[Geometry] = dataclasses.field(default_factory=list)


@dataclasses.dataclass(eq=False)
class Frame:
    """A frame F: a body's own (`X_PF` is None) or one fixed at X_PF in another frame P of that body."""

    name: str
    index: int
    model_instance: int
    body: Body
    parent: "Frame | None" = None
    X_PF: RigidTransform | None = None
    source: str | None = None


@dataclasses.dataclass(eq=False)
class JointActuator:
    """An actuator that drives a one-dof joint with u in N or N m, at most `effort_limit` in magnitude.

    The reflected inertia `rotor_inertia * gear_ratio**2` (kg m² or kg) is added to the mass matrix.
    With `kp` or `kd` the actuator tracks a desired state: u = kp (q_d - q) + kd (v_d - v) + u_feedforward.
    """

    name: str
    index: int
    model_instance: int
    joint: Any
    effort_limit: float = float("inf")
    rotor_inertia: float = 0.0
    gear_ratio: float = 1.0
    kp: float | None = None
    kd: float | None = None
    source: str | None = None
    control: Control | None = None  # of a file in MJCF


def rotation_quaternion(R: np.ndarray) -> np.ndarray:
    """Quaternion (w, x, y, z) with w >= 0 of a rotation matrix, computed from its largest component."""
    K = np.array(
        [
            [1 + R[0, 0] + R[1, 1] + R[2, 2], R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], 1 + R[0, 0] - R[1, 1] - R[2, 2], R[0, 1] + R[1, 0], R[0, 2] + R[2, 0]],
            [R[0, 2] - R[2, 0], R[0, 1] + R[1, 0], 1 - R[0, 0] + R[1, 1] - R[2, 2], R[1, 2] + R[2, 1]],
            [R[1, 0] - R[0, 1], R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], 1 - R[0, 0] - R[1, 1] + R[2, 2]],
        ]
    )
    quaternion = K[np.argmax(np.diag(K))]
    quaternion = quaternion / np.linalg.norm(quaternion)
    return quaternion if quaternion[0] >= 0.0 else -quaternion
