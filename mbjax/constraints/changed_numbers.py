"""Changes the numbers of one constraint; known ones must satisfy the rules of its constructor, traced ones pass."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from mbjax.errors import ModelError
from mbjax.model import AbstractConstraint, LockConstraint
from mbjax.model.constraint_numbers import independent_rows, switch
from mbjax.number_rules import DIRECTION, FINITE, NOT_NEGATIVE, POSITIVE, as_numbers, is_known, shown

COMMON = ("active", "v_plus", "stabilization_time")  # each has a method of its own
RULES_BY_FIELD = {
    "distance": POSITIVE,
    "stiffness": POSITIVE,
    "damping": NOT_NEGATIVE,
    "quaternion_AP": DIRECTION,
    "quaternion_BS": DIRECTION,
    "quaternion_BQ": DIRECTION,
}
ROWS = {"normals": (3, 3), "axes": (6, 6)}  # directions of independent rows: their size, and how many at most


def with_active(constraint: AbstractConstraint, value: Any) -> AbstractConstraint:
    """The record switched on or off."""
    if np.shape(value) != ():
        raise ModelError(
            f"with_active: {constraint.label} has one switch for all of its rows, got shape {np.shape(value)}. Use "
            "jax.vmap for a batch of worlds."
        )
    if is_known(value):
        switch(f"with_active: {constraint.label}", value)
    return eqx.tree_at(lambda c: c.active, constraint, cast(value, constraint.active.dtype))


def with_v_plus(constraint: AbstractConstraint, value: Any) -> AbstractConstraint:
    """The record with another rate after an impact."""
    rows, label = constraint.num_rows, f"with_v_plus: {constraint.label}"
    known = as_numbers(value) if is_known(value) else None
    if is_known(value) and (known is None or not np.all(FINITE.holds(known))):
        raise ModelError(
            f"{label} takes {rows} finite number(s), one for each row, or one for all, got {shown(value)}."
        )
    value = cast(value, constraint.v_plus.dtype)
    if value.shape not in ((), (rows,)):
        raise ModelError(f"{label} has {rows} row(s), got shape {value.shape}.")
    return eqx.tree_at(lambda c: c.v_plus, constraint, jnp.broadcast_to(value, (rows,)))


def with_stabilization_time(constraint: AbstractConstraint, value: Any) -> AbstractConstraint:
    """The record with another time of stabilization."""
    given = np.inf if value is None else value
    known = as_numbers(given) if is_known(given) else given
    if known is None or np.shape(known) != () or (is_known(known) and not known > 0.0):
        raise ModelError(
            f"with_stabilization_time: {constraint.label} takes a number of seconds > 0, or None for no "
            f"stabilization, got {value!r}. Use jax.vmap for a batch of worlds."
        )
    return eqx.tree_at(lambda c: c.stabilization_time, constraint, cast(known, constraint.stabilization_time.dtype))


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
            require_rule(constraint, name, new, given)
        constraint = eqx.tree_at(lambda c, name=name: getattr(c, name), constraint, new)
    return constraint


def replaced(what: str, old: jax.Array, given: Any) -> jax.Array:
    """The given value in the dtype and shape of the leaf it replaces."""
    if is_known(given) and as_numbers(given) is None:
        raise ModelError(f"{what} takes numbers of shape {old.shape}, got {shown(given)}.")
    new = cast(given, old.dtype)
    if new.shape not in ((), old.shape):
        raise ModelError(f"{what} has shape {old.shape}, got {new.shape}. Use jax.vmap for a batch of worlds.")
    new = jnp.broadcast_to(new, old.shape)
    if is_known(new, old) and not bool(jnp.all(jnp.isfinite(new) == jnp.isfinite(old))):
        raise ModelError(
            f"{what} was {old} and can't become {given!r}: what is finite stays finite, what is infinite infinite, as "
            "the rows depend on it. Make another constraint and bind it."
        )
    return new


def require_rule(constraint: AbstractConstraint, name: str, new: jax.Array, given: Any) -> None:
    """Raises `ModelError` for known numbers that the record's constructor would refuse."""
    if not is_known(new):
        return
    label, numbers = f"with_numbers: {constraint.label}", np.asarray(new, float)
    if name in ROWS:
        independent_rows(label, f"'{name}'", numbers, *ROWS[name])
    if name == "damping" and not constraint.num_rows == 0 and np.any(numbers != 0.0):
        raise ModelError(f"{label}: a rigid constraint has no damping, got {shown(given)}.")
    if name == "position" and isinstance(constraint, LockConstraint) and numbers.size > constraint.num_rows:
        numbers, rule = numbers[:4], DIRECTION  # of a joint with a quaternion
    else:
        rule = RULES_BY_FIELD.get(name)
    if rule is not None and not np.all(rule.holds(numbers) | np.isinf(numbers)):  # the rigid ones' stiffness is inf
        part = "the quaternion of " if name == "position" else ""
        raise ModelError(f"{label}: {part}'{name}' must be {rule.words}, got {shown(given)}.")


def cast(value: Any, dtype: Any) -> jax.Array:
    """A number or switch in the dtype of the leaf it replaces."""
    return jnp.asarray(value).astype(dtype)
