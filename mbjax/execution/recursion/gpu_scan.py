"""Few kernels on a GPU: a scan along the tree is one kernel, in which every thread walks the tree for its world.

It is written with Pallas, for Triton. Rows of nodes, and values that wait for children, are in memory, where
neighbouring threads read and write neighbouring numbers; a step itself is in registers. No thread reads what another
wrote.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool

from ..targets.gpu_kernels import DeviceRows, NotInKernelError, are_interpreted
from ..targets.manual_axes import shape_like
from .parts import Parts
from .walk_plan import WORLD, WalkPlan, as_numbered, as_numbered_after_world, in_order_of_walk

BLOCK = 32  # worlds: a warp, so that a few thousand reach all processors already
MOST_NUMBERS = 2**31 - 1  # in an array; a thread indexes with 32 bits


def scan_on_gpu(
    plan: WalkPlan, step: Callable, xs: Any, start: tuple[Any, Any], tables: Sequence, inward: bool
) -> tuple[tuple[Any, Any], Any]:
    """Runs `scan_paths` from the world's values, or `scan_inward` from zero with nothing lasting, as one kernel.

    Returns the passing values by place, the lasting values of the world and all nodes, and the outputs kept. Entries of
    rows reach `step(values, row, *tables)` as `Parts`; tables of rows as `DeviceRows`, other tables as their entries.
    Raises `NotInKernelError` where no array has worlds, there are no nodes, or an array is too large.
    """
    xs, tables = in_order_of_walk(plan, xs), list(tables)
    arrays, treedef = jax.tree.flatten((xs, None if inward else start, tables))
    of_worlds, num_nodes = [x for x in arrays if x.ndim == 3], plan.place.size
    if not of_worlds or not num_nodes:
        raise NotInKernelError
    like = max(of_worlds, key=lambda x: x.shape[-1])
    worlds = like.shape[-1]
    turns = [plan.place, plan.inboard, plan.parent, plan.has_children, plan.is_last]
    turns = [np.asarray(x, np.int32) for x in turns]
    value, own = shapes_of_step(step, xs, start, tables)
    written, nested = jax.tree.flatten((*value, own), is_leaf=is_list)
    lengths = [plan.num_places, num_nodes + 1, num_nodes]
    lengths = [n for n, x in zip(lengths, (*value, own), strict=True) for _ in jax.tree.leaves(x, is_leaf=is_list)]
    counts = [(n, *([len(x)] if is_list(x) else [])) for n, x in zip(lengths, written, strict=True)]
    results = [shape_like((*count, worlds), like) for count in counts]
    if max(math.prod(x.shape) for x in (*arrays, *results)) > MOST_NUMBERS:
        raise NotInKernelError

    def kernel(*refs: Any) -> None:
        numbers, refs = refs[: len(turns)], refs[len(turns) :]
        there = None if worlds % BLOCK == 0 else pl.program_id(0) * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32) < worlds
        given = jax.tree.unflatten(treedef, refs[: len(arrays)])
        outputs = jax.tree.unflatten(nested, refs[len(arrays) :])
        walk(step, inward, numbers, *given, *outputs, there=there)

    given = [*turns, *arrays]
    interpreted = are_interpreted()
    found = pl.pallas_call(
        kernel,
        grid=(-(-worlds // BLOCK),),
        in_specs=[block_of(x.shape, x.ndim > 1 and x.shape[-1] > 1) for x in given],
        out_specs=[block_of(x.shape, True) for x in results],
        out_shape=results,
        interpret=interpreted,
        compiler_params=None if interpreted else triton.CompilerParams(num_warps=1, num_stages=1),
        name="scan_inward" if inward else "scan_outward",
    )(*given)
    places, rows, kept = jax.tree.unflatten(nested, found)
    return (places, as_numbered_after_world(plan, rows)), as_numbered(plan, kept)


def walk(
    step: Callable,
    inward: bool,
    numbers: Sequence,
    xs: Any,
    start: tuple[Any, Any] | None,
    tables: Any,
    places: Any,
    rows: Any,
    outputs: Any,
    there: Bool[Array, " w"] | None,
) -> None:
    """Walks all nodes, for the worlds of a block that are `there`; the arguments are references to arrays.

    `start` is None for a walk inward.
    """
    place, inboard, parent, has_children, is_last = numbers
    num_nodes = place.shape[0]

    def at(refs: Any, *index: Any) -> Any:
        return jax.tree.map(lambda ref: load_entries(ref, index, there), refs)

    def put(refs: Any, index: Any, values: Any) -> None:
        refs, values = jax.tree.leaves(refs), jax.tree.leaves(values, is_leaf=is_list)
        for ref, value in zip(refs, values, strict=True):
            write(ref, (index,), value, there)

    if start is not None:
        put(places, WORLD, at(start[0]))
        put(rows, 0, at(start[1]))

    def turn(count: Array, _: None) -> None:
        node = num_nodes - 1 - count if inward else count
        row, looked_up = at(xs, node), jax.tree.map(lambda ref: table_of(ref, there), tables)
        if inward:
            value = at(places, place[node]), at(rows, 0)
            value = jax.tree.map(lambda x: jnp.where(has_children[node] > 0, x, 0.0), value)
        else:
            value = at(places, inboard[node]), at(rows, parent[node])
        (passing, lasting), own = step(value, row, *looked_up)
        if inward:
            handed_on, before = jax.tree.flatten(passing), jax.tree.leaves(at(places, inboard[node]))
            add = (jnp.where(is_last[node] > 0, x, x + y) for x, y in zip(handed_on[0], before, strict=True))
            passing = jax.tree.unflatten(handed_on[1], add)
        put(places, inboard[node] if inward else place[node], passing)
        put(rows, node + 1, lasting)
        put(outputs, node, own)

    lax.fori_loop(np.int32(0), np.int32(num_nodes), turn, None)


def load_entries(ref: Any, index: tuple, there: Bool[Array, " w"] | None) -> Any:
    """Loads the entries at an index, a number each: one for each world of the block, or one that all worlds share."""
    if len(ref.shape) == len(index):
        return ref[index]
    if len(ref.shape) == len(index) + 1:
        if ref.shape[-1] == 1:
            return ref[(*index, 0)]
        return triton.load(ref.at[lanes(index)], mask=there, other=None if there is None else 0.0)
    return Parts(load_entries(ref, (*index, k), there) for k in range(ref.shape[len(index)]))


def write(ref: Any, index: tuple, value: Any, there: Bool[Array, " w"] | None) -> None:
    """Stores entries at an index: the inverse of `load_entries`."""
    if isinstance(value, list):
        for k, x in enumerate(value):
            write(ref, (*index, k), x, there)
    else:
        value = jnp.broadcast_to(value, (BLOCK,)).astype(ref.dtype)
        triton.store(ref.at[lanes(index)], value, mask=there)


def lanes(index: tuple) -> tuple:
    """The index of all worlds of a block at an entry."""
    return (*(jnp.asarray(i, jnp.int32) for i in index), pl.ds(jnp.int32(0), BLOCK))


def table_of(ref: Any, there: Bool[Array, " w"] | None) -> Any:
    """A table as a step sees it: `DeviceRows` of a table of rows, else its entries."""
    if len(ref.shape) < 3:
        return load_entries(ref, (), there)
    return DeviceRows(lambda index: load_entries(ref, (index,), there))


def shapes_of_step(step: Callable, xs: Any, start: tuple[Any, Any], tables: Any) -> tuple:
    """Shapes of the values that a step hands on and of the output that it keeps."""

    def entries(x: Array, number: int) -> Any:
        """Zeros for an array's entries, which follow its first `number` axes."""
        if x.ndim == number:
            return jnp.zeros((), x.dtype)
        one = jnp.zeros((BLOCK,) if x.shape[-1] > 1 else (), x.dtype)
        return one if x.ndim == number + 1 else Parts([one] * x.shape[number])

    def table(x: Array) -> Any:
        return DeviceRows(lambda _: entries(x, 1)) if x.ndim == 3 else entries(x, 0)

    def of_zeros() -> tuple:
        row = jax.tree.map(lambda x: entries(x, 1), xs)
        value = jax.tree.map(lambda x: entries(x, 0), start)
        return step(value, row, *jax.tree.map(table, tables))

    return jax.eval_shape(of_zeros)


def block_of(shape: tuple[int, ...], has_worlds: bool) -> pl.BlockSpec:
    """The part of an array that a block of threads sees: its own worlds."""
    first = (0,) * (len(shape) - 1)
    if not has_worlds:
        return pl.BlockSpec(shape, lambda _: (0,) * len(shape))
    return pl.BlockSpec((*shape[:-1], BLOCK), lambda block: (*first, block))


def is_list(x: Any) -> bool:
    """Whether x is a list of entries, `Parts` or not."""
    return isinstance(x, list)
