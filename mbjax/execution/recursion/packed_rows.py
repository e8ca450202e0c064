"""Records with names, such as a force `Force(t, f)`, whose entries stand side by side in one array.

A record is a NamedTuple whose class has `shapes`: of each field the number of its entries (1 is a number), rows and
columns of a matrix, or the class of a record within it. A scan over a tree carries a record as one row of one array,
which costs less than an array a field; the stages of its steps see the record. Last fields that are None by default may
be left out of the row.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float


@partial(jax.tree_util.register_dataclass, data_fields=["array"], meta_fields=["kind"])
@dataclass(frozen=True)
class Packed:
    """A record in one array, or rows of them: with its entries last, before the worlds if there are several.

    `kind` is the record's class; or, where there is but one field, its shape: 1 for a number, 3 for a vector.
    """

    array: Any
    kind: Any

    def __getattr__(self, name: str) -> "PackedField":
        """A field of the record alone, so that a stage reads no more than it needs."""
        if name.startswith("_") or name not in getattr(self.kind, "_fields", ()):
            raise AttributeError(name)
        return PackedField(self.array, self.kind, name)


@partial(jax.tree_util.register_dataclass, data_fields=["array"], meta_fields=["kind", "name"])
@dataclass(frozen=True)
class PackedField:
    """One field of a `Packed` record."""

    array: Any
    kind: Any
    name: str


def is_packed(x: Any) -> bool:
    """Whether x is `Packed`, or a field of one."""
    return isinstance(x, Packed | PackedField)


def unpacked(x: Any) -> Any:
    """The record in a `Packed` row, or its field, with vectors as lists of entries; any other x as it is."""
    if isinstance(x, Packed):
        return field_of(x.kind, entries_between(x.array, 0, len(x.array)))
    if isinstance(x, PackedField):
        place = x.kind._fields.index(x.name)
        start, shape = sum(map(num_entries, x.kind.shapes[:place])), x.kind.shapes[place]
        stop = start + num_entries(shape)
        is_there = stop <= len(x.array) or x.name not in x.kind._field_defaults
        return field_of(shape, entries_between(x.array, start, stop)) if is_there else None
    return x


def entries_between(x: Any, start: int, stop: int) -> list:
    """Entries of an array, or of a list of them."""
    if isinstance(x, list):
        return list(x[start:stop])
    return [lax.index_in_dim(x, k, keepdims=False) for k in range(start, stop)]


def record_of(record: Any, entries: list) -> Any:
    """The record whose entries, one field after another, are given."""
    fields, start = [], 0
    for name, shape in zip(record._fields, record.shapes, strict=True):
        if start == len(entries) and name in record._field_defaults:
            break
        size = num_entries(shape)
        fields.append(field_of(shape, entries[start : start + size]))
        start += size
    assert start == len(entries), (record, start, len(entries))
    return record(*fields)


def field_of(shape: Any, entries: list) -> Any:
    """One field of a record from its entries: a record, the rows of a matrix, a vector or a number."""
    if isinstance(shape, type):
        return record_of(shape, entries)
    if isinstance(shape, tuple):
        return [entries[i : i + shape[1]] for i in range(0, len(entries), shape[1])]
    return entries[0] if shape == 1 else entries


def num_entries(shape: Any) -> int:
    """Number of entries of a field, or of a record."""
    if isinstance(shape, type):
        return sum(map(num_entries, shape.shapes))  # pyright: ignore[reportAttributeAccessIssue]
    return math.prod(shape) if isinstance(shape, tuple) else shape


def is_record(x: Any) -> bool:
    """Whether x is a record that has `shapes`."""
    return isinstance(x, tuple) and hasattr(x, "shapes")


def kind_of(x: Any) -> Any:
    """What `Packed` calls the kind of x: of a record its class, of a list of entries or of rows its shape."""
    if is_record(x):
        return type(x)
    return (len(x), len(x[0])) if isinstance(x[0], list) else len(x)


def rows_of(kind: Any, array: Array) -> Any:
    """The rows of an array as records of a kind: stages see a row as the record, and so do checkers of types."""
    return Packed(array, kind)


def array_of(rows: Any) -> Array:
    """The array whose rows are records: undoes `rows_of`."""
    assert isinstance(rows, Packed)
    return rows.array


def zeros_of(kind: Any, worlds: tuple[int, ...], dtype: Any) -> Any:
    """The record of zeros, of each world."""
    zeros: Float[Array, "k ..."] = jnp.zeros((num_entries(kind), *worlds), dtype)
    return Packed(zeros, kind)
