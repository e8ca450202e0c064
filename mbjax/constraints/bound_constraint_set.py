"""Constraints bound to a model, with references resolved and rows numbered."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax

from mbjax.errors import ModelError
from mbjax.execution import takes_model_first
from mbjax.model import AbstractConstraint, MultibodyModel, unknown_constraint
from mbjax.number_rules import shown
from mbjax.topology import TreeTopology

from .changed_numbers import with_active, with_numbers, with_stabilization_time, with_v_plus


class BoundConstraintSet(eqx.Module):
    """Constraints bound to a model, as `ConstraintSet.bind(model)` returns them, with their rows in order.

    A pytree: its numbers may be batched, differentiated and replaced; new values never recompile.
    """

    constraints: tuple[AbstractConstraint, ...]
    topology: TreeTopology = eqx.field(static=True)  # topology of the model that the set is bound to

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(str(c.name) for c in self.constraints)

    @property
    def num_rows(self) -> int:
        return sum(c.num_rows for c in self.constraints)

    @property
    def row_names(self) -> tuple[str, ...]:
        return tuple(name for c in self.constraints for name in c.row_names)

    @property
    def active(self) -> tuple[jax.Array, ...]:
        """Switch of each constraint: 1, or 0 where λ = 0 and its rows do not hold."""
        return tuple(c.active for c in self.constraints)

    def constraint(self, name: str) -> AbstractConstraint:
        """The constraint with this name."""
        return self.constraints[self._index(name)]

    def rows_of(self, name: str) -> slice:
        """The rows of the constraint with this name, as a slice."""
        index = self._index(name)
        start = sum(c.num_rows for c in self.constraints[:index])
        return slice(start, start + self.constraints[index].num_rows)

    def with_active(self, active: Mapping[str, Any]) -> "BoundConstraintSet":
        """The set with constraints switched on (True, 1.0) or off by name; the others stay as they are."""
        return self._with(active, with_active)

    def with_v_plus(self, v_plus: Mapping[str, Any]) -> "BoundConstraintSet":
        """The set with other rates after an impact by name, in m/s or rad/s: one per constraint, or one per row."""
        return self._with(v_plus, with_v_plus)

    def with_stabilization_time(self, stabilization_time: Mapping[str, Any]) -> "BoundConstraintSet":
        """The set with other times T of -2/T error_rate - 1/T² error by name, in s; None for no stabilization."""
        return self._with(stabilization_time, with_stabilization_time)

    def with_numbers(self, name: str, **numbers: Any) -> "BoundConstraintSet":
        """The set with other numbers of one constraint, by field of its record: `with_numbers("rod", distance=0.6)`.

        These are points, ratios, lengths, stiffness, quaternions of frames, axes, positions of locks, and `parameters`
        of custom constraints. A single number stands for all entries. Nothing recompiles. Known numbers must satisfy
        the rules of the constraint's constructor.
        """
        return self._with({name: numbers}, with_numbers)

    def require_model(self, model: Any) -> None:
        """Raises `ModelError` unless the model has the topology that the set is bound to."""
        if not isinstance(model, MultibodyModel) or model.topology != self.topology:
            raise ModelError(
                "the constraint set is bound to another model; bind it to this one: ConstraintSet()….bind(model)."
            )

    def _with(self, values: Mapping[str, Any], change: Any) -> "BoundConstraintSet":
        if not isinstance(values, Mapping):
            raise ModelError(
                f"{change.__name__} takes values by the constraints' names in a dict, got {shown(values)}."
            )
        constraints = list(self.constraints)
        for name, value in values.items():
            index = self._index(name)
            constraints[index] = change(constraints[index], value)
        return BoundConstraintSet(tuple(constraints), self.topology)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_constraint(name, self.names)
        return self.names.index(name)


def require_bound_set(call: str, cset: Any, model: Any) -> None:
    """Raises `ModelError` unless `cset` is a set that is bound to the model."""
    if not hasattr(cset, "require_model"):
        raise ModelError(
            f"{call}: cset must be a BoundConstraintSet, as ConstraintSet()….bind(model) returns it, got {shown(cset)}."
        )
    cset.require_model(model)


@takes_model_first
def bound_constraints(model: MultibodyModel) -> BoundConstraintSet:
    """The model's own constraints as a bound set."""
    return BoundConstraintSet(tuple(getattr(model, "constraints", ())), model.topology)
