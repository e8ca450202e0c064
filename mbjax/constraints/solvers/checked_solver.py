"""Checks the strategy that a user gives to solve the constrained system."""

from typing import Any

from mbjax.errors import ModelError
from mbjax.number_rules import shown

from .abstract_solver import AbstractConstraintSolver
from .direct import Direct


def checked_solver(call: str, solver: Any) -> AbstractConstraintSolver:
    """The strategy, `Direct()` for None; raises `ModelError` for anything else, such as a class or a name."""
    if solver is None:
        return Direct()
    if isinstance(solver, AbstractConstraintSolver):
        return solver
    came = f"the class {solver.__name__}" if isinstance(solver, type) else f"{type(solver).__name__} {shown(solver)}"
    raise ModelError(f"{call}: solver must be an instance of a strategy, like mbjax.Direct(), got {came}.")
