"""Checks the numbers given to a constraint when it is made; errors are `ModelError`."""

from typing import Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.number_rules import as_numbers as numbers_or_none
from mbjax.number_rules import is_known
from mbjax.spatial import RigidTransform

from .elements import rotation_quaternion
from .poses import as_rigid_transform


def finite_numbers(label: str, what: str, value: Any, *shape: int) -> Any:
    """An array of finite numbers of that shape; a scalar is repeated."""
    numbers = as_constraint_numbers(value)
    if numbers.shape not in ((), shape) or not np.all(np.isfinite(numbers)):
        wanted = "a finite number" if shape == () else f"finite numbers of shape {shape}"
        raise ModelError(f"{label}: {what} must be {wanted}, got {value!r}.")
    return np.broadcast_to(numbers, shape).copy()


def point(label: str, what: str, value: Any) -> Any:
    """Three finite numbers, in m."""
    numbers = as_constraint_numbers(value)
    if numbers.shape != (3,) or not np.all(np.isfinite(numbers)):
        raise ModelError(f"{label}: {what} must be 3 finite numbers, got {value!r}.")
    return numbers


def constraint_pose(label: str, what: str, X: Any) -> tuple[Any, Any]:
    """Quaternion (w, x, y, z) and translation of a pose; the identity for None."""
    transform: RigidTransform = as_rigid_transform(f"{label}: {what}", X)
    return rotation_quaternion(np.asarray(transform.rotation)), np.asarray(transform.translation)


def independent_rows(label: str, what: str, value: Any, size: int, most: int) -> Any:
    """Linearly independent directions (k, size), 1 <= k <= most, none zero; a single one may have shape (size,)."""
    numbers = as_constraint_numbers(value)
    rows = numbers[None] if numbers.ndim == 1 else numbers
    if rows.ndim != 2 or rows.shape[1] != size or not 1 <= rows.shape[0] <= most or not np.all(np.isfinite(rows)):
        raise ModelError(f"{label}: {what} must be 1 to {most} rows of {size} finite numbers, got {value!r}.")
    lengths = np.linalg.norm(rows, axis=1)
    if np.any(lengths < 1e-10):
        raise ModelError(f"{label}: row {int(np.argmin(lengths))} of {what} is zero and has no direction.")
    smallest = np.linalg.svd(rows / lengths[:, None], compute_uv=False).min()
    if smallest < 1e-6:
        raise ModelError(f"{label}: the rows of {what} depend on each other: {rows.tolist()}. Give fewer.")
    return rows.copy()


def switch(label: str, active: Any) -> Any:
    """A truth value as 1 or 0."""
    numbers = as_constraint_numbers(active)
    if numbers.shape != () or numbers not in (0.0, 1.0):
        raise ModelError(f"{label}: active must be True or False, got {active!r}.")
    return numbers


def stabilization(label: str, time: Any) -> Any:
    """A time constant > 0 in s; inf, for no stabilization, where None is given."""
    numbers = np.asarray(np.inf) if time is None else as_constraint_numbers(time)
    if numbers.shape != () or not numbers > 0.0:
        raise ModelError(
            f"{label}: stabilization_time must be a number of seconds > 0, or None for none, got {time!r}."
        )
    return numbers


def as_constraint_numbers(value: Any) -> Any:
    """A value as an array of floats; a single NaN where it is not numbers, or is traced."""
    numbers = numbers_or_none(value) if is_known(value) else None
    return np.full((), np.nan) if numbers is None else numbers
