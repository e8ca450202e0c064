"""Contract of a constraint record, which a plant, a model or a `ConstraintSet` holds for one constraint."""

import abc
import dataclasses
from collections.abc import Iterable
from typing import Any, Self, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from mbjax.errors import ModelError

from .lookup import near_matches

AnyConstraint = TypeVar("AnyConstraint", bound="AbstractConstraint")


class AbstractConstraint(eqx.Module):
    """One constraint of `num_rows` scalar equations. Its numbers are leaves; the elements it connects are static.

    Each row has an error, of the successor relative to the predecessor, and a force λ, in N or N m where the
    row measures m or rad, that acts on the successor. `resolve(lookup)` returns the record with its bodies and
    joints turned into indices, where `lookup` is a model or a plant.
    """

    name: str | None = eqx.field(static=True)
    active: Float[Array, ""]  # 1 where active; 0: λ = 0 and the rows do not hold
    v_plus: Float[Array, " nc"]  # rate of the rows right after an impact
    stabilization_time: Float[Array, ""]  # T of -2/T error_rate - 1/T² error, in s; inf: none

    @property
    @abc.abstractmethod
    def num_rows(self) -> int: ...

    @abc.abstractmethod
    def resolve(self, lookup: Any) -> Self: ...

    @property
    def label(self) -> str:
        """The constraint's name in messages."""
        kind = type(self).__name__
        return kind if self.name is None else f"{kind} '{self.name}'"

    @property
    def row_names(self) -> tuple[str, ...]:
        """Names of the rows: the constraint's name, with [0], [1], … where it has several rows."""
        name = str(self.name)
        return (name,) if self.num_rows == 1 else tuple(f"{name}[{i}]" for i in range(self.num_rows))


def with_static(constraint: AnyConstraint, **changes: Any) -> AnyConstraint:
    """The record with fields replaced, static ones too; its numbers, which may be traced, are not checked again."""
    changed = object.__new__(type(constraint))
    for field in dataclasses.fields(constraint):
        object.__setattr__(changed, field.name, changes.get(field.name, getattr(constraint, field.name)))
    return changed


def resolve_constraints(
    constraints: Iterable[AbstractConstraint], lookup: Any, dtype: Any
) -> tuple[AbstractConstraint, ...]:
    """Names unnamed constraints, turns references into indices and casts numbers; names must differ."""
    named = with_names(constraints)
    return tuple(jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), c.resolve(lookup)) for c in named)


def with_names(constraints: Iterable[AbstractConstraint]) -> tuple[AbstractConstraint, ...]:
    """Names unnamed constraints by kind and place: `loop_2` is the third constraint, a loop. Names must differ."""
    constraints = tuple(constraints)
    taken = {c.name for c in constraints if c.name is not None}
    named: list[AbstractConstraint] = []
    for i, constraint in enumerate(constraints):
        name = constraint.name
        if name is None:
            name = f"{type(constraint).__name__.removesuffix('Constraint').lower()}_{i}"
            while name in taken:
                name = f"_{name}"
            taken.add(name)
        if any(other.name == name for other in named):
            raise ModelError(f"two constraints are named '{name}'; names within a set must differ.")
        named.append(with_static(constraint, name=name))
    return tuple(named)


def find_bodies(lookup: Any, body_A: Any, body_B: Any, label: str) -> tuple[int, int]:
    """Indices of two bodies, given by name, index or element, that can move relative to each other."""
    A, B = (find_element(lookup.body_index, lookup.body, "body", body, label) for body in (body_A, body_B))
    if A == B:
        raise ModelError(f"{label}: both sides are body '{lookup.body(A).name}'; a constraint needs two bodies.")
    mobod = getattr(lookup.body(A), "mobod_index", None)
    if mobod is not None and mobod == lookup.body(B).mobod_index:
        raise ModelError(
            f"{label}: bodies '{lookup.body(A).name}' and '{lookup.body(B).name}' are welded together and never "
            "move relative to each other; there is nothing to constrain."
        )
    return A, B


def find_joint(lookup: Any, joint: Any, label: str) -> int:
    """Index of a joint given by name, index or element, in a model or plant."""
    return find_element(lookup.joint_index, lookup.joint, "joint", joint, label)


def find_element(index_of: Any, element_of: Any, what: str, key: Any, label: str) -> int:
    """Index of an element given by name, index or the element itself."""
    name = getattr(key, "name", None)
    try:
        index = index_of(key if name is None else key.index)
    except ModelError as error:
        raise ModelError(f"{label}: {error}") from None
    if name is not None and element_of(index).name != name:
        raise ModelError(
            f"{label}: {what} '{name}' belongs to another plant; {what} {index} of this one is "
            f"'{element_of(index).name}'."
        )
    return index


def unknown_constraint(name: str, known: Iterable[str]) -> ModelError:
    """Error for a name that no constraint has."""
    return ModelError(f"there is no constraint named '{name}'. {near_matches(name, known)}")
