"""Few kernels: entries of a row that are arrays of their own, and the array that they are put together into.

A step of a recursion computes with entries: numbers of one world, or vectors over many worlds. When it hands a row on,
a scan over a tree writes each entry into its place, so that the row is never put together first.
"""

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array

from ..targets.gpu_kernels import is_world_a_thread
from .packed_rows import Packed
from .stages import computed_once, read


class Parts(list):
    """Entries of an array that is not put together yet: a scan over a tree writes each into its place."""


Vector = list[Array]
Matrix = list[Vector]


def is_parts(x: Any) -> bool:
    """Whether a row is `Parts`, not put together yet."""
    return isinstance(x, Parts)


def put_together(*parts: Array | Vector | Matrix) -> Any:
    """Stacks entries of nested lists into an array (k, ...); in a kernel of a GPU they stay apart."""
    entries = [read(x) for x in entries_of(parts)]
    return Parts(entries) if is_world_a_thread() else jnp.stack(jnp.broadcast_arrays(*entries))


jax.tree_util.register_pytree_node(Parts, lambda x: (tuple(x), None), lambda _, x: Parts(x))


def parts(*arrays: Array | Vector | Matrix) -> Any:
    """`Parts` that stand for the array that `put_together` makes."""
    return Parts(entries_of(arrays))


def entries_of(parts: Sequence) -> list[Array]:
    """All entries of nested lists, in order, without fields that a record leaves out."""
    return [y for x in parts if x is not None for y in (entries_of(x) if isinstance(x, list | tuple) else [x])]


def total(a: Any, b: Any) -> Any:
    """Sum a + b of two rows, each an array or, in a kernel of a GPU, a list of entries."""
    return [x + y for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a + b


def sum_of_rows(a: Any, b: Any) -> Any:
    """Sum of two rows of one kind, a stage: whole rows, whose entries are not told apart, are added by one loop."""
    return Packed(computed_once(total, a.array, b.array), a.kind)
