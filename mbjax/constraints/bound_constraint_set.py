"""Constraints bound to a model, with references resolved and rows numbered."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.core import Tracer

from mbjax.errors import ModelError
from mbjax.execution import takes_model_first
from mbjax.model import AbstractConstraint, MultibodyModel, unknown_constraint
from mbjax.topology import TreeTopology


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

        def changed(constraint: AbstractConstraint, value: Any) -> AbstractConstraint:
            value = cast(value, constraint.active.dtype)
            if value.shape != ():
                raise ModelError(
                    f"with_active: {constraint.label} has one switch for all of its rows, got shape {value.shape}. Use "
                    "jax.vmap for a batch of worlds."
                )
            return eqx.tree_at(lambda c: c.active, constraint, value)

        return self._with(active, changed)

    def with_v_plus(self, v_plus: Mapping[str, Any]) -> "BoundConstraintSet":
        """The set with other rates after an impact by name, in m/s or rad/s: one per constraint, or one per row."""

        def changed(constraint: AbstractConstraint, value: Any) -> AbstractConstraint:
            value = cast(value, constraint.v_plus.dtype)
            if value.shape not in ((), (constraint.num_rows,)):
                raise ModelError(
                    f"with_v_plus: {constraint.label} has {constraint.num_rows} row(s), got shape {value.shape}."
                )
            return eqx.tree_at(lambda c: c.v_plus, constraint, jnp.broadcast_to(value, (constraint.num_rows,)))

        return self._with(v_plus, changed)

    def with_stabilization_time(self, stabilization_time: Mapping[str, Any]) -> "BoundConstraintSet":
        """The set with other times T of -2/T error_rate - 1/T² error by name, in s; None for no stabilization."""

        def changed(constraint: AbstractConstraint, value: Any) -> AbstractConstraint:
            time = cast(jnp.inf if value is None else value, constraint.stabilization_time.dtype)
            if time.shape != () or (is_concrete(time) and not time > 0.0):
                raise ModelError(
                    f"with_stabilization_time: {constraint.label} takes a number of seconds > 0, or None for no "
                    f"stabilization, got {value!r}. Use jax.vmap for a batch of worlds."
                )
            return eqx.tree_at(lambda c: c.stabilization_time, constraint, time)

        return self._with(stabilization_time, changed)

    def with_numbers(self, name: str, **numbers: Any) -> "BoundConstraintSet":
        """The set with other numbers of one constraint, by field of its record: `with_numbers("rod", distance=0.6)`.

        These are points, ratios, lengths, stiffness, quaternions of frames, axes, positions of locks, and `parameters`
        of custom constraints. A single number stands for all entries. Nothing recompiles.
        """
        return self._with({name: numbers}, with_numbers)

    def require_model(self, model: Any) -> None:
        """Raises `ModelError` unless the model has the topology that the set is bound to."""
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


COMMON = ("active", "v_plus", "stabilization_time")  # each has a method of its own


def with_numbers(constraint: AbstractConstraint, numbers: Mapping[str, Any]) -> AbstractConstraint:
    """The record with some arrays replaced; each keeps its shape, and what was finite or infinite stays so."""
    names = [f.name for f in dataclasses.fields(constraint) if not f.metadata.get("static", False)]
    names = [n for n in names if n not in COMMON and getattr(constraint, n) is not None]
    for name, value in numbers.items():
        if name in COMMON:
            raise ModelError(f"with_numbers: {constraint.label}: use with_{name}({{'{constraint.name}': …}}).")
        if name not in names:
            raise ModelError(f"with_numbers: {constraint.label} has no number '{name}'; it has: {', '.join(names)}.")
        old, given = getattr(constraint, name), value
        if not isinstance(old, jax.Array):
            if jax.tree.structure(old) != jax.tree.structure(given):
                raise ModelError(f"with_numbers: {constraint.label}: '{name}' must be nested as it was: {old!r}.")
            new = jax.tree.map(lambda a, b: cast(b, a.dtype), old, given)
        else:
            new = replaced(f"with_numbers: {constraint.label}: '{name}'", old, given)
        constraint = eqx.tree_at(lambda c, name=name: getattr(c, name), constraint, new)
    return constraint


def replaced(what: str, old: jax.Array, given: Any) -> jax.Array:
    """The given value in the dtype and shape of the leaf it replaces."""
    new = cast(given, old.dtype)
    if new.shape not in ((), old.shape):
        raise ModelError(f"{what} has shape {old.shape}, got {new.shape}. Use jax.vmap for a batch of worlds.")
    new = jnp.broadcast_to(new, old.shape)
    if is_concrete(new) and is_concrete(old) and not bool(jnp.all(jnp.isfinite(new) == jnp.isfinite(old))):
        raise ModelError(
            f"{what} was {old} and can't become {given!r}: what is finite stays finite, what is infinite infinite, as "
            "the rows depend on it. Make another constraint and bind it."
        )
    return new


def is_concrete(x: Any) -> bool:
    """Whether the array's numbers are known, as they are outside of jit, grad and vmap."""
    return not isinstance(x, Tracer)


@takes_model_first
def bound_constraints(model: MultibodyModel) -> BoundConstraintSet:
    """The model's own constraints as a bound set."""
    return BoundConstraintSet(tuple(getattr(model, "constraints", ())), model.topology)


def cast(value: Any, dtype: Any) -> jax.Array:
    """A number or switch in the dtype of the leaf it replaces."""
    return jnp.asarray(value).astype(dtype)
