"""Reads poses that users give: a RigidTransform, a pair (R, p), a 4x4 matrix, or a translation alone."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from mbjax.errors import ModelError
from mbjax.number_rules import is_known, shown
from mbjax.spatial import RigidTransform

PoseLike = RigidTransform | tuple[ArrayLike, ArrayLike] | ArrayLike
ACCEPTED = (
    "a RigidTransform, a pair (R, p) of a rotation matrix (3, 3) and a translation (3,), a 4x4 matrix, or a "
    "translation of 3 numbers"
)


def as_rigid_transform(what: str, X: Any) -> RigidTransform:
    """A pose in NumPy numbers, checked to be finite and a rotation; the identity for None."""
    if X is None:
        return RigidTransform(np.eye(3), np.zeros(3))
    if not is_known(X):
        raise ModelError(f"{what} must be {ACCEPTED}, of numbers that are known; got {shown(X)}.")
    rotation, translation = split_pose(what, X, lambda part: np.asarray(part, dtype=float))
    if not (np.all(np.isfinite(rotation)) and np.all(np.isfinite(translation))):
        raise ModelError(f"{what} must be finite, got rotation {rotation} and translation {translation}.")
    error = np.abs(rotation.T @ rotation - np.eye(3)).max()
    if error > 1e-5 or np.linalg.det(rotation) < 0.0:
        raise ModelError(
            f"{what}: the rotation is not a rotation matrix (R^T R differs from 1 by {error:.2g}, "
            f"determinant {np.linalg.det(rotation):.3g})."
        )
    return RigidTransform(rotation, translation)


def require_last_row(what: str, row: np.ndarray) -> None:
    """Raises `ModelError` where the last row of a 4x4 pose is not [0, 0, 0, 1], as that of a transposed one."""
    if not np.allclose(row, [0.0, 0.0, 0.0, 1.0], rtol=0.0, atol=1e-6):
        raise ModelError(
            f"{what}: the last row of a 4x4 pose is [0, 0, 0, 1], with the translation in the last column; got "
            f"{row}. A matrix for row vectors, with the translation in the last row, is to be transposed."
        )


def as_traced_pose(what: str, X: Any, dtype: DTypeLike | None = None) -> RigidTransform:
    """A pose in JAX numbers, which may be traced: its shapes are checked, its values are not."""
    return RigidTransform(*split_pose(what, X, lambda part: jnp.asarray(part, dtype)))


def split_pose(what: str, X: Any, as_array: Callable[[Any], Any]) -> tuple[Any, Any]:
    """Rotation (3, 3) and translation (3,) of a pose in any accepted form."""
    last_row = None
    try:
        if isinstance(X, RigidTransform):
            rotation, translation = as_array(X.rotation), as_array(X.translation)
        elif isinstance(X, tuple | list) and len(X) == 2:
            rotation, translation = map(as_array, X)
        else:
            array = as_array(X)
            rotation, translation = as_array(np.eye(3)), array
            if array.shape == (4, 4):
                rotation, translation = array[:3, :3], array[:3, 3]
                last_row = array[3]
    except (TypeError, ValueError):
        raise ModelError(f"{what} must be {ACCEPTED}; got {describe_pose(X)}.") from None
    if last_row is not None and is_known(last_row):
        require_last_row(what, np.asarray(last_row, dtype=float))
    if rotation.shape != (3, 3) or translation.shape != (3,):
        raise ModelError(f"{what} must be {ACCEPTED}; got {describe_pose(X)}.")
    return rotation, translation


def describe_pose(X: Any) -> str:
    """Describes a value given in place of a pose: its type, and shapes where it has any."""
    if isinstance(X, RigidTransform):
        return f"a RigidTransform of a rotation {np.shape(X.rotation)} and a translation {np.shape(X.translation)}"
    if isinstance(X, tuple | list) and len(X) == 2:
        return f"a {type(X).__name__} of {describe_pose(X[0])} and {describe_pose(X[1])}"
    try:
        shape = np.shape(X)
    except (TypeError, ValueError):
        return f"a {type(X).__name__} of {len(X)}"
    if shape and not isinstance(X, str):
        return f"{'an array' if hasattr(X, 'dtype') else f'a {type(X).__name__}'} of shape {shape}"
    return f"{X!r}"[:80]
