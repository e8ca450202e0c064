"""A diffrax solver whose every step ends on the constraints."""

from collections.abc import Callable
from typing import Any

import diffrax
from jaxtyping import PyTree


class ProjectedSolver(diffrax.AbstractWrappedSolver):
    """Wraps a solver, and applies `project` to (q, v) after each step.

    Slopes that the solver keeps from its last step belong to the point before the projection, so each step starts
    afresh.
    """

    solver: diffrax.AbstractSolver
    project: Callable[[PyTree], PyTree]

    @property
    def term_structure(self) -> Any:
        return self.solver.term_structure

    @property
    def interpolation_cls(self) -> Any:
        return self.solver.interpolation_cls

    @property
    def term_compatible_contr_kwargs(self) -> Any:
        return self.solver.term_compatible_contr_kwargs

    @property
    def scan_kind(self) -> Any:
        """The wrapped solver's `scan_kind`, where diffrax's adjoints set it."""
        return self.solver.scan_kind  # pyright: ignore[reportAttributeAccessIssue]

    def order(self, terms: PyTree) -> int | None:
        return self.solver.order(terms)

    def strong_order(self, terms: PyTree) -> Any:
        return self.solver.strong_order(terms)

    def error_order(self, terms: PyTree) -> Any:
        return self.solver.error_order(terms)

    def init(self, terms: PyTree, t0: Any, t1: Any, y0: PyTree, args: PyTree) -> Any:
        return self.solver.init(terms, t0, t1, y0, args)

    def step(
        self, terms: PyTree, t0: Any, t1: Any, y0: PyTree, args: PyTree, solver_state: Any, made_jump: Any
    ) -> tuple[PyTree, PyTree | None, dict[str, Any], Any, diffrax.RESULTS]:
        del made_jump
        y1, error, dense, state, result = self.solver.step(terms, t0, t1, y0, args, solver_state, made_jump=True)
        return self.project(y1), error, dense, state, result

    def func(self, terms: PyTree, t0: Any, y0: PyTree, args: PyTree) -> PyTree:
        return self.solver.func(terms, t0, y0, args)
