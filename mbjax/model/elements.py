"""What a plant is built of, before `finalize`: bodies, frames, actuators, and names to find them by."""

import dataclasses
from typing import Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.geometry import Geometry
from mbjax.number_rules import as_numbers, is_known, shown
from mbjax.spatial import RigidTransform, SpatialInertia


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
    """Drives a one-dof joint: force or torque u in N or N m, at most `effort_limit` in magnitude.

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


def as_rigid_transform(what: str, X: Any) -> RigidTransform:
    """A RigidTransform from one, from a 4x4 matrix or from a translation; checked to be a rotation."""
    if X is None:
        return RigidTransform(np.eye(3), np.zeros(3))
    if isinstance(X, RigidTransform) and is_known(X):
        rotation, translation = np.asarray(X.rotation, float), np.asarray(X.translation, float)
    else:
        matrix = as_numbers(X) if is_known(X) else None
        if matrix is None:
            raise ModelError(
                f"{what} must be a RigidTransform, a 4x4 matrix or a translation of 3 numbers that are known, got "
                f"{shown(X)}."
            )
        if matrix.shape == (4, 4):
            rotation, translation = matrix[:3, :3], matrix[:3, 3]
        elif matrix.shape == (3,):
            rotation, translation = np.eye(3), matrix
        else:
            raise ModelError(
                f"{what} must be a RigidTransform, a 4x4 matrix or a translation of 3 numbers, "
                f"got an array of shape {matrix.shape}."
            )
    if rotation.shape != (3, 3) or translation.shape != (3,):
        raise ModelError(f"{what}: the rotation must be (3, 3) and the translation (3,), unbatched.")
    if not (np.all(np.isfinite(rotation)) and np.all(np.isfinite(translation))):
        raise ModelError(f"{what} must be finite, got rotation {rotation} and translation {translation}.")
    error = np.abs(rotation.T @ rotation - np.eye(3)).max()
    if error > 1e-5 or np.linalg.det(rotation) < 0.0:
        raise ModelError(
            f"{what}: the rotation is not a rotation matrix (R^T R differs from 1 by {error:.2g}, "
            f"determinant {np.linalg.det(rotation):.3g})."
        )
    return RigidTransform(rotation, translation)


def rotation_quaternion(R: np.ndarray) -> np.ndarray:
    """(w, x, y, z) with w >= 0 of a rotation matrix, from its largest component."""
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
