"""Poses as MuJoCo has them: a quaternion (w, x, y, z) and a translation, as 4x4 matrices."""

from typing import Any

import numpy as np


def matrix(quaternion: Any) -> np.ndarray:
    """R (3, 3) of a quaternion (w, x, y, z)."""
    w, x, y, z = np.asarray(quaternion, float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def pose(quaternion: Any, translation: Any) -> np.ndarray:
    """X (4, 4)."""
    X = np.eye(4)
    X[:3, :3], X[:3, 3] = matrix(quaternion), translation
    return X


def shift(translation: Any) -> np.ndarray:
    """X (4, 4) of a translation alone."""
    return pose((1.0, 0.0, 0.0, 0.0), translation)


def turn(axis: Any, angle: float) -> np.ndarray:
    """X (4, 4) of a rotation about an axis through the origin."""
    axis = np.asarray(axis, float) / np.linalg.norm(axis)
    return pose([np.cos(angle / 2), *(np.sin(angle / 2) * axis)], np.zeros(3))


def roll_pitch_yaw(quaternion: Any) -> np.ndarray:
    """(roll, pitch, yaw) with R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R = matrix(quaternion)
    pitch = np.arctan2(-R[2, 0], np.hypot(R[0, 0], R[1, 0]))
    if np.hypot(R[0, 0], R[1, 0]) < 1e-12:
        return np.array([np.arctan2(-R[1, 2], R[1, 1]), pitch, 0.0])
    return np.array([np.arctan2(R[2, 1], R[2, 2]), pitch, np.arctan2(R[1, 0], R[0, 0])])
