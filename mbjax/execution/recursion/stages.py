"""Few kernels: a recursion's step within one kernel (`cpu_kernel.py`), cut into stages that are each stored once.

XLA would copy a formula into every reader. A stage is stored before anything reads it. It carries a mark,
`stage_marks.of_stage`, by which `cpu_kernel` knows it. Stages read rows of arrays when they need them.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Float

from ..targets.cpu_kernel import is_in_kernel
from ..targets.gpu_kernels import DeviceRows, is_world_a_thread
from ..targets.stage_marks import of_stage
from .packed_rows import is_packed, unpacked

FEW_WORLDS = 96  # LLVM copies rows of up to 64 worlds without a loop
SEVERAL = 3  # numbers; for fewer an array saves nothing
TOGETHER = 3  # results of a loop; with six, steps had no vectors and took 1.2 to 1.5 times as long


@partial(jax.tree_util.register_dataclass, data_fields=["numbers"], meta_fields=["place"])
@dataclass(frozen=True)
class Entry:
    """One of the numbers that a stage has stored side by side, not read yet."""

    numbers: Float[Array, " n"]
    place: int

    def read(self) -> Float[Array, ""]:
        """The number itself, sliced from the stage's array."""
        return lax.squeeze(lax.slice_in_dim(self.numbers, self.place, self.place + 1), (0,))


@partial(jax.tree_util.register_dataclass, data_fields=["numbers"], meta_fields=["treedef"])
@dataclass(frozen=True)
class SideBySide:
    """All numbers of a stage in one array, and the tree they form."""

    numbers: Float[Array, " n"]
    treedef: Any

    def entries(self) -> Any:
        """Splits the array into an `Entry` a number."""
        return jax.tree.unflatten(self.treedef, [Entry(self.numbers, k) for k in range(self.numbers.shape[0])])


@partial(jax.tree_util.register_dataclass, data_fields=["args"], meta_fields=["function"])
@dataclass(frozen=True)
class Late:
    """A call `function(*args)` that is not computed yet."""

    function: Callable
    args: tuple

    def read(self) -> Any:
        """Computes the call and returns its results."""
        return self.function(*given_to_stage(self.args))


class Row(NamedTuple):
    """A row of an array, not read yet: the stage that needs it reads it, as XLA would copy it for a call."""

    array: jax.Array | DeviceRows
    index: jax.Array
    is_there: jax.Array | None = None  # where False, the row is zeros or `instead`
    instead: jax.Array | None = None

    def read(self) -> Any:
        """The row's numbers; in a kernel of a GPU a list of them."""
        if isinstance(self.array, DeviceRows):
            found = self.array.read(self.index)
            if self.is_there is None:
                return found
            instead = [0.0] * len(found) if self.instead is None else self.instead
            chosen = (jnp.where(self.is_there, x, y) for x, y in zip(found, instead, strict=True))
            return type(found)(chosen)
        start = [self.index, *[np.zeros((), self.index.dtype)] * (self.array.ndim - 1)]
        found = lax.dynamic_slice(self.array, start, (1, *self.array.shape[1:]), allow_negative_indices=False)
        found = lax.squeeze(found, (0,))
        if self.is_there is None:
            return found
        return jnp.where(self.is_there, found, 0.0 if self.instead is None else self.instead)


def computed_once(function: Callable, *args: Any) -> Any:
    """Computes `function(*args)` as a stage of a step: within a kernel it is stored before anything reads it.

    The function sees the numbers of `Row`s, `Entry`s and `Late`s among the arguments. Results may be `Entry`s: `read`
    those that are neither for another stage nor the result of a step.
    """
    if is_world_a_thread():
        return function(*given_to_stage(args))
    leaves, nested = jax.tree.flatten(args)
    distinct = {id(x): x for x in leaves}
    places = [list(distinct).index(id(x)) for x in leaves]

    def computed_once(*distinct: Any) -> Any:
        args = given_to_stage(jax.tree.unflatten(nested, [distinct[k] for k in places]))
        results, treedef = jax.tree.flatten(function(*args))
        if are_stored_side_by_side(results):
            return SideBySide(of_stage(side_by_side(results)), treedef)
        parts = [results[i : i + TOGETHER] for i in range(0, len(results), TOGETHER)]
        return jax.tree.unflatten(treedef, [of_stage(y) for part in parts for y in computed_together(part)])

    found = jax.jit(computed_once)(*distinct.values())
    return found.entries() if isinstance(found, SideBySide) else found


def computed_where_kept(function: Callable, *args: Any) -> Any:
    """Computes a step's last stage, whose results are only kept or handed on.

    Of many worlds each number is computed by the loop that writes it into its place, so that it is not stored twice.
    Do not use it for values that other steps handed on: the array that is written would be copied first.
    """
    return function(*given_to_stage(args)) if are_of_many_worlds(args) else computed_once(function, *args)


def computed_where_read(function: Callable, *args: Any) -> Any:
    """Computes a cheap stage; of many worlds, where storing costs more than computing, in each stage that reads it."""
    return Late(function, args) if are_of_many_worlds(args) else computed_once(function, *args)


def stage(function: Callable) -> Callable:
    """Decorates a stage: `computed_once` in a step of entries, a plain call in a step of whole arrays."""
    return staged_by(computed_once, function)


def kept_stage(function: Callable) -> Callable:
    """Decorates a step's last stage: `computed_where_kept` in a step of entries, a plain call in one of arrays.

    Not for values that other steps handed on: see `computed_where_kept`.
    """
    return staged_by(computed_where_kept, function)


def read_stage(function: Callable) -> Callable:
    """Decorates a cheap stage: `computed_where_read` in a step of entries, a plain call in one of arrays."""
    return staged_by(computed_where_read, function)


def staged_by(compute: Callable, function: Callable) -> Callable:
    """Calls the function by `compute` where some argument has entries of its own, and is no whole array."""

    @functools.wraps(function)
    def called(*args: Any) -> Any:
        return compute(function, *args) if are_of_entries(args) else function(*args)

    return called


def are_of_entries(args: Any) -> bool:
    """Whether some of the arguments are entries, lists of them, or rows that are not read yet."""

    def is_of_entries(x: Any) -> bool:
        return isinstance(x, list) or is_packed(x) or is_unread(x)

    return any(map(is_of_entries, jax.tree.leaves(args, is_leaf=is_of_entries)))


def given_to_stage(args: Any) -> Any:
    """What a stage sees of its arguments: what was not read yet as numbers, packed rows as records."""
    return jax.tree.map(unpacked, read_all(args), is_leaf=is_packed)


def are_of_many_worlds(args: Any) -> bool:
    """Whether some of the arguments have a last axis of many worlds."""
    shapes = (jnp.shape(x) for x in jax.tree.leaves(args))
    return any(shape and not are_few_worlds(shape[-1:]) for shape in shapes)


def are_stored_side_by_side(results: list) -> bool:
    """Whether results are several numbers of one world; side by side in an array they share one address."""
    are_numbers = all(x.ndim == 0 for x in results) and len({x.dtype for x in results}) == 1
    return is_in_kernel() and len(results) >= SEVERAL and are_numbers


def side_by_side(numbers: list) -> Float[Array, " n"]:
    """Writes the numbers into one array, each at its place: XLA's own loop for this asks which comes next."""
    array = lax.optimization_barrier(jnp.broadcast_to(numbers[0], (len(numbers),)))  # else written one by one again
    for k, x in enumerate(numbers[1:], 1):
        array = lax.dynamic_update_slice(array, x[None], (np.int32(k),), allow_negative_indices=False)
    return array


def row_of(rows: Any, index: jax.Array, late: bool) -> Any:
    """Row `index` of an array, or of each array of a tree: a `Row` that a stage reads if `late`, else its numbers."""

    def row(array: jax.Array | DeviceRows) -> Any:
        return Row(array, index) if late else Row(array, index).read()

    return jax.tree.map(row, rows, is_leaf=lambda x: isinstance(x, DeviceRows))


def read(x: Any) -> Any:
    """The numbers of a `Row`, an `Entry` or a `Late`; any other x as it is."""
    return x.read() if is_unread(x) else x


def is_unread(x: Any) -> bool:
    """Whether x is a `Row`, an `Entry` or a `Late`."""
    return isinstance(x, (Row, Entry, Late))


def read_all(tree: Any) -> Any:
    """Reads each `Row`, `Entry` and `Late` of a tree."""
    return jax.tree.map(read, tree, is_leaf=is_unread)


def are_few_worlds(worlds: tuple[int, ...]) -> bool:
    """Whether there is one world, or so few that LLVM copies their numbers one after the other, without a loop."""
    return math.prod(worlds) < FEW_WORLDS


def computed_together(arrays: list) -> list:
    """Computes the arrays, those of many worlds by one loop: what they have in common is loaded and computed once.

    XLA's CPU backend has one kind of loop with several results that it fuses arithmetic into: a reduction of several
    arrays. Each array is given two equal columns, of which the last is kept; LLVM sees that both are equal. XLA
    promises no order: its CPU backend goes from the first to the last, and this runs nowhere else.
    """
    shapes = {x.shape for x in arrays}
    shape = next(iter(shapes))
    if len(arrays) == 1 or len(shapes) > 1 or len(shape) != 1 or are_few_worlds(shape) or not is_in_kernel():
        return arrays
    columns = tuple(jnp.broadcast_to(x[:, None], (*shape, 2)) for x in arrays)
    zeros = tuple(jnp.zeros((), x.dtype) for x in arrays)
    return list(lax.reduce(columns, zeros, keep_last, (1,)))


def keep_last(_: Any, columns: Any) -> Any:
    """The reduction of `computed_together`: keeps the later column."""
    return columns
