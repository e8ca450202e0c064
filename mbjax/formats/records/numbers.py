"""Numbers and poses as files write them: with all digits, so that reading gives the same number back."""

from typing import Any

import numpy as np

from mbjax.model.elements import rotation_quaternion
from mbjax.spatial import RigidTransform, SpatialInertia

from ..xml.values import rotation_from_rpy
from .poses import pose as pose_of_quaternion

# Moments and products of inertia by their names in files, with row and column.
MOMENTS = (("ixx", 0, 0), ("iyy", 1, 1), ("izz", 2, 2), ("ixy", 0, 1), ("ixz", 0, 2), ("iyz", 1, 2))


def as_double(leaf: Any) -> np.ndarray:
    """An array in double precision; from single precision with the shortest decimals that round to its numbers."""
    array = np.asarray(leaf)
    if array.dtype != np.float32:
        return np.asarray(array, float)
    return np.array([float(str(number)) for number in array.ravel()], float).reshape(array.shape)


def number_text(value: Any) -> str:
    """The shortest text that reads back as the same double."""
    return repr(float(value) + 0.0).removesuffix(".0")


def numbers_text(values: Any) -> str:
    """Numbers separated by blanks."""
    return " ".join(number_text(value) for value in np.ravel(values))


def roll_pitch_yaw(R: np.ndarray) -> np.ndarray:
    """Angles with R = Rz(yaw) Ry(pitch) Rx(roll), exact to rounding at pitch ±90° too, where roll is any choice.

    Yaw is that of R Rx(roll)ᵀ, so that an error in roll is made up for.
    """
    roll = np.arctan2(R[2, 1], R[2, 2])
    s, c = np.sin(roll), np.cos(roll)
    pitch = np.arctan2(-R[2, 0], s * R[2, 1] + c * R[2, 2])
    yaw = np.arctan2(s * R[0, 2] - c * R[0, 1], c * R[1, 1] - s * R[1, 2])
    return np.array([roll, pitch, yaw])


def pose_matrix(rotation: Any, translation: Any) -> np.ndarray:
    """X (4, 4) of a rotation matrix and a translation."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = rotation, translation
    return X


def inverse_pose(X: np.ndarray) -> np.ndarray:
    """The inverse of a rigid transform."""
    R = X[:3, :3].T
    return pose_matrix(R, -R @ X[:3, 3])


def is_identity(X: np.ndarray) -> bool:
    return bool(np.array_equal(X, np.eye(4)))


def as_rigid_transform(X: np.ndarray) -> RigidTransform:
    return RigidTransform(X[:3, :3], X[:3, 3])


def as_matrix(X: RigidTransform) -> np.ndarray:
    return pose_matrix(as_double(X.rotation), as_double(X.translation))


def pose_of_floating(q: np.ndarray) -> np.ndarray:
    """X_FM of a floating joint, with a quaternion or with roll-pitch-yaw angles."""
    if len(q) == 7:
        return pose_of_quaternion(q[:4], q[4:])
    return pose_matrix(rotation_from_rpy(np.asarray(q[:3])), q[3:])


def quaternion_of(R: np.ndarray) -> np.ndarray:
    """(w, x, y, z) of a rotation matrix."""
    return rotation_quaternion(R)


def central_inertia(M: SpatialInertia) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and the matrix of moments about it, in kg m², in the body's axes."""
    mass, com = float(as_double(M.mass)), as_double(M.com)
    xx, yy, zz = (float(x) for x in as_double(M.unit_inertia.moments))
    xy, xz, yz = (float(x) for x in as_double(M.unit_inertia.products))
    G = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    moments = mass * (G - (np.dot(com, com) * np.eye(3) - np.outer(com, com)))
    return mass, com, moments if M.com.dtype != np.float32 else as_double(moments.astype(np.float32))
