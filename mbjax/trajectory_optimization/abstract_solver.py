"""The contract of solvers."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from mbjax.errors import ModelError
from mbjax.number_rules import INFINITY, NumberRule, checked_numbers

from .multipliers import Penalties
from .problem import Problem
from .solution import History

ABOVE_ONE = NumberRule("a finite number > 1", lambda x: (x > 1.0) & (x < INFINITY), is_positive=True)


class Found(eqx.Module):
    """What a solver's search ends with."""

    states: Any
    efforts: Float[Array, "steps nu"]
    gains: Float[Array, "steps nu ndx"]
    costates: Float[Array, "steps_and_end ndx"]
    effort_slopes: Float[Array, "steps nu"]  # derivative of the cost to go by each effort: zero but at limits
    A: Float[Array, "steps ndx ndx"]
    B: Float[Array, "steps ndx nu"]
    penalties: Penalties | None
    outcome: Int[Array, ""]
    history: History
    cost: Float[Array, ""] | None = None  # of states and efforts, without penalties, where the search knows it


class AbstractSolver(eqx.Module):
    """A method that improves a trajectory.

    Fields that are whole or floating-point numbers reach `search` as arrays, so that other tolerances and other numbers
    of iterations take the same program; numbers that set shapes are static fields.
    """

    max_iterations: eqx.AbstractVar[int]
    takes_constraints: ClassVar[bool] = False  # by itself; else `solve` puts `AugmentedLagrangian` around it
    runs_on_host: ClassVar[bool] = False  # so that `search` is not compiled as a whole

    @abstractmethod
    def search(
        self,
        problem: Problem,
        states: Any,
        efforts: Float[Array, "steps nu"],
        penalties: Penalties | None,
        history: History,
        callback: Callable | None,
    ) -> Found:
        """Searches from a trajectory, which may have gaps, for one that minimizes cost and penalties."""


def require_solver_numbers(solver: AbstractSolver, counts: tuple[str, ...], **rules: NumberRule) -> None:
    """Raises `ModelError` unless fields that are counts are whole numbers of at least 1, and others keep their rule."""
    call = type(solver).__name__
    for name in counts:
        value = getattr(solver, name)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise ModelError(f"{call}: {name} must be a whole number of at least 1, got {value!r}.")
    for name, rule in rules.items():
        checked_numbers(call, name, getattr(solver, name), rule)


def with_numbers_as_leaves(solver: AbstractSolver, dtype: Any) -> AbstractSolver:
    """The solver with its tolerances, factors and numbers of iterations as arrays."""

    def leaf(x: Any) -> Any:
        if isinstance(x, bool) or not isinstance(x, int | float):
            return x
        return jnp.asarray(x, jnp.int32 if isinstance(x, int) else dtype)

    return jax.tree.map(leaf, solver)
