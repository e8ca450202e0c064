"""Checks the known numbers of goals and constraints, by the names that a task has for them."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from mbjax.errors import ModelError
from mbjax.number_rules import NOT_NEGATIVE, as_numbers, is_known, shown
from mbjax.trajectory_optimization import Barrier, Constraint


def require_goal_numbers(call: str, goals: dict[str, Any], what: str = "goal") -> None:
    """Raises with the name where a known number of a goal or constraint is NaN, or a known weight is none."""
    for name, goal in goals.items():
        place = place_of(goal, lambda x: bool(np.any(np.isnan(x))))
        if place is not None:
            raise ModelError(f"{call}: {what} '{name}' has a number that is NaN, in {place}.")
        weight = getattr(goal.function if isinstance(goal, Constraint) else goal, "weight", None)
        numbers = as_numbers(weight) if weight is not None and is_known(weight) else None
        if numbers is not None and not np.all(NOT_NEGATIVE.holds(numbers)):
            raise ModelError(f"{call}: {what} '{name}': weight must be {NOT_NEGATIVE.words}, got {shown(weight)}.")


def require_finite(call: str, goals: dict[str, Any]) -> None:
    """Raises as `require_goal_numbers`, and where a known number of a goal is infinite; bounds of barriers may be."""
    require_goal_numbers(call, goals)
    for name, goal in goals.items():
        place = None if isinstance(goal, Barrier) else place_of(goal, lambda x: bool(np.any(np.isinf(x))))
        if place is not None:
            raise ModelError(f"{call}: goal '{name}' has a number that is infinite, in {place}.")


def place_of(goal: Any, is_wrong: Callable[[np.ndarray], bool]) -> str | None:
    """Where a goal has known numbers that are wrong; None if nowhere."""
    if not any(hasattr(x, "dtype") and is_known(x) and is_wrong(np.asarray(x)) for x in jax.tree.leaves(goal)):
        return None
    leaves = jax.tree_util.tree_leaves_with_path(goal)
    return next(where(path) for path, x in leaves if hasattr(x, "dtype") and is_known(x) and is_wrong(np.asarray(x)))


def where(path: tuple) -> str:
    """A leaf's place as one would write it."""
    return jax.tree_util.keystr(path).lstrip(".")
