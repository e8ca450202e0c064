"""Constraints bound to a model: references resolved, rows numbered."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from mbjax.errors import ModelError
from mbjax.model import AbstractConstraint, MultibodyModel, unknown_constraint
from mbjax.topology import TreeTopology


class BoundConstraintSet(eqx.Module):
    """What `ConstraintSet.bind(model)` returns. Rows are those of the constraints, one after the other.

    A pytree: its numbers may be batched, differentiated and replaced; new values never recompile.
    """

    constraints: tuple[AbstractConstraint, ...]
    topology: TreeTopology = eqx.field(static=True)  # of the model it is bound to

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
        """Per constraint 1, or 0: λ = 0 and its rows do not hold."""
        return tuple(c.active for c in self.constraints)

    def constraint(self, name: str) -> AbstractConstraint:
        """A constraint by name."""
        return self.constraints[self._index(name)]

    def rows_of(self, name: str) -> slice:
        """The rows of a constraint."""
        index = self._index(name)
        start = sum(c.num_rows for c in self.constraints[:index])
        return slice(start, start + self.constraints[index].num_rows)

    def with_active(self, active: Mapping[str, Any]) -> "BoundConstraintSet":
        """Constraints switched on (True, 1.0) or off by name; the others stay as they are."""
        return self._with(active, lambda c, value: eqx.tree_at(lambda c: c.active, c, cast(value, c.active.dtype)))

    def with_v_plus(self, v_plus: Mapping[str, Any]) -> "BoundConstraintSet":
        """Rates right after an impact by name, in m/s or rad/s: one for all rows of a constraint, or one each."""

        def changed(constraint: AbstractConstraint, value: Any) -> AbstractConstraint:
            value = cast(value, constraint.v_plus.dtype)
            if value.shape not in ((), (constraint.num_rows,)):
                raise ModelError(
                    f"with_v_plus: {constraint.label} has {constraint.num_rows} row(s), got shape {value.shape}."
                )
            return eqx.tree_at(lambda c: c.v_plus, constraint, jnp.broadcast_to(value, (constraint.num_rows,)))

        return self._with(v_plus, changed)

    def require_model(self, model: Any) -> None:
        """The set and the model must be of one tree."""
        if not isinstance(model, MultibodyModel) or model.topology != self.topology:
            raise ModelError(
                "the constraint set is bound to another model; bind it to this one: ConstraintSet()….bind(model)."
            )

    def _with(self, values: Mapping[str, Any], change: Any) -> "BoundConstraintSet":
        constraints = list(self.constraints)
        for name, value in values.items():
            index = self._index(name)
            constraints[index] = change(constraints[index], value)
        return BoundConstraintSet(tuple(constraints), self.topology)

    def _index(self, name: str) -> int:
        if name not in self.names:
            raise unknown_constraint(name, self.names)
        return self.names.index(name)


def bound_constraints(model: MultibodyModel) -> BoundConstraintSet:
    """The model's own constraints."""
    return BoundConstraintSet(tuple(getattr(model, "constraints", ())), model.topology)


def cast(value: Any, dtype: Any) -> jax.Array:
    """A number or switch in the dtype of the leaf it replaces."""
    return jnp.asarray(value).astype(dtype)
