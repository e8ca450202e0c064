"""Constraints whose equations the user writes. `mbjax/constraints/custom.py` has the mathematics."""

from collections.abc import Callable
from typing import Any, Literal, Self

import equinox as eqx
from jax.typing import ArrayLike
from jaxtyping import Array

from mbjax.errors import ModelError

from ..abstract_constraint import AbstractConstraint
from ..element_keys import Numbers
from .common import STABILIZATION_TIME, label_of, set_common


class CustomConstraint(AbstractConstraint):
    """Adds `num_rows` equations of one's own, written in JAX; Jacobian and rates are derived from them.

    At level "position", `function(model, q)` is the error, of shape (num_rows,). At level "velocity",
    `function(model, q, v)` is its rate, linear in v, and there is no position error. `parameters`, float arrays
    in any pytree, are passed as a last argument where given. They are leaves; arrays the function closes over are not.
    """

    function: Callable = eqx.field(static=True)
    level: Literal["position", "velocity"] = eqx.field(static=True)
    size: int = eqx.field(static=True)
    parameters: Any

    def __init__(
        self,
        function: Callable[..., Array],
        num_rows: int,
        level: Literal["position", "velocity"] = "position",
        parameters: Any = None,
        *,
        name: str | None = None,
        v_plus: Numbers = 0.0,
        stabilization_time: ArrayLike | None = STABILIZATION_TIME,
        active: bool | ArrayLike = True,
    ) -> None:
        self.name, label = name, label_of("CustomConstraint", name)
        if not callable(function):
            raise ModelError(f"{label}: function must be callable, got {function!r}.")
        if level not in ("position", "velocity"):
            raise ModelError(f"{label}: level must be 'position' or 'velocity', got {level!r}.")
        if not isinstance(num_rows, int) or isinstance(num_rows, bool) or num_rows < 1:
            raise ModelError(f"{label}: num_rows must be a positive integer, got {num_rows!r}.")
        self.function, self.level, self.size, self.parameters = function, level, num_rows, parameters
        set_common(self, label, v_plus, (num_rows,), stabilization_time, active)

    @property
    def num_rows(self) -> int:
        return self.size

    def resolve(self, lookup: Any) -> Self:
        return self
