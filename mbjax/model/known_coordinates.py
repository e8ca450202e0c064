"""Checks positions and velocities that users set, where they are known: finite, and no quaternion of zeros."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mbjax.errors import ModelError
from mbjax.joints import JOINT_KINDS
from mbjax.number_rules import as_numbers, is_known, shown

from .model_layout import JointInfo
from .multibody_model import MultibodyModel


def require_positions(model: MultibodyModel, call: str, q: Any, model_instance: str | int | None = None) -> None:
    """Refuses positions, of the model or of one instance, that are not finite or hold a quaternion of zeros."""
    places = (
        list(range(model.num_positions)) if model_instance is None else model.model_instance(model_instance).q.tolist()
    )
    require_finite(call, "position", q, places, model.position_names)
    joints = [(j, places.index(j.q_start)) for j in model.layout.joints if j.num_positions and j.q_start in places]
    require_directions(model, call, q, joints)


def require_velocities(model: MultibodyModel, call: str, v: Any, model_instance: str | int | None = None) -> None:
    """Refuses velocities, of the model or of one instance, that are not finite."""
    places = (
        list(range(model.num_velocities)) if model_instance is None else model.model_instance(model_instance).v.tolist()
    )
    require_finite(call, "velocity", v, places, model.velocity_names)


def require_finite(call: str, what: str, x: Any, places: list[int], names: Callable[[], tuple[str, ...]]) -> None:
    """Raises `ModelError` with the name of the first number that is not finite; other shapes are refused elsewhere."""
    numbers = as_numbers(x) if is_known(x) else None
    if numbers is None or numbers.shape != (len(places),) or np.isfinite(numbers).all():
        return
    k = int(np.argmin(np.isfinite(numbers)))
    raise ModelError(f"{call}: {what} '{names()[places[k]]}' must be finite, got {numbers[k]}.")


def require_directions(model: MultibodyModel, call: str, q: Any, joints: Iterable[tuple[JointInfo, int]]) -> None:
    """Refuses quaternions of zeros; each joint comes with the place in q where its positions start."""
    numbers = as_numbers(q) if is_known(q) else None
    if numbers is None or numbers.ndim != 1:
        return
    for joint, start in joints:
        quaternion = numbers[start : start + 4]
        if JOINT_KINDS[joint.kind].has_quaternion and quaternion.shape == (4,) and not quaternion.any():
            raise ModelError(
                f"{call}: the quaternion of joint '{joint.name}' is {shown(quaternion)}, which is no orientation; give "
                "(w, x, y, z), like (1, 0, 0, 0) for none."
            )
