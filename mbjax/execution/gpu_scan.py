"""Scans along the tree as one kernel of a GPU: every thread walks the whole tree, for a world of its own.

Written with Pallas, for Triton. Rows of nodes, and what waits for their children, are in memory, where neighbouring
threads read and write neighbouring numbers; a step itself is in registers. No thread reads what another wrote.
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

from .gpu_kernels import DeviceRows, NotInKernelError, are_interpreted
from .manual_axes import shape_like
from .parts import Parts
from .walk_plan import WORLD, WalkPlan, as_numbered, as_numbered_after_world, in_order_of_walk

BLOCK = 32  # worlds: a warp, so that a few thousand reach all processors already
MOST_NUMBERS = 2**31 - 1  # of an array: a thread counts them in 32 bits


def scan_on_gpu(
    plan: WalkPlan, step: Callable, xs: Any, start: tuple[Any, Any], tables: Sequence, inward: bool
) -> tuple[tuple[Any, Any], Any]:
    """`scan_paths` from the world's values, or `scan_inward` from zero, with nothing that lasts.

    Returns what passes, by places, what lasts, of the world and all nodes, and what is kept. `step(values, row,
    *tables)` gets the entries of rows, as `Parts`; of tables of rows `DeviceRows`, of others their entries.
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
    written, nested = jax.tree.flatten((*value, own), is_leaf=is_parts)
    lengths = [plan.num_places, num_nodes + 1, num_nodes]
    lengths = [n for n, x in zip(lengths, (*value, own), strict=True) for _ in jax.tree.leaves(x, is_leaf=is_parts)]
    counts = [(n, *([len(x)] if is_parts(x) else [])) for n, x in zip(lengths, written, strict=True)]
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
    """All turns of the scan, for the worlds of a block that are `there`; the arguments are references to arrays.

    Inward nothing is there at the `start`.
    """
    place, inboard, parent, has_children, is_last = numbers
    num_nodes = place.shape[0]

    def at(refs: Any, *index: Any) -> Any:
        return jax.tree.map(lambda ref: load_entries(ref, index, there), refs)

    def put(refs: Any, index: Any, values: Any) -> None:
        refs, values = jax.tree.leaves(refs), jax.tree.leaves(values, is_leaf=is_parts)
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
            before = at(places, inboard[node])
            add = (jnp.where(is_last[node] > 0, x, x + y) for x, y in zip(passing, before, strict=True))
            passing = Parts(add)
        put(places, inboard[node] if inward else place[node], passing)
        put(rows, node + 1, lasting)
        put(outputs, node, own)

    lax.fori_loop(np.int32(0), np.int32(num_nodes), turn, None)


def load_entries(ref: Any, index: tuple, there: Bool[Array, " w"] | None) -> Any:
    """The numbers at an index, one by one if they are several; of each world of the block, or of all of them."""
    if len(ref.shape) == len(index):
        return ref[index]
    if len(ref.shape) == len(index) + 1:
        if ref.shape[-1] == 1:
            return ref[(*index, 0)]
        return triton.load(ref.at[lanes(index)], mask=there, other=None if there is None else 0.0)
    return Parts(load_entries(ref, (*index, k), there) for k in range(ref.shape[len(index)]))


def write(ref: Any, index: tuple, value: Any, there: Bool[Array, " w"] | None) -> None:
    """The inverse of `load_entries`."""
    if isinstance(value, list):
        for k, x in enumerate(value):
            write(ref, (*index, k), x, there)
    else:
        value = jnp.broadcast_to(value, (BLOCK,)).astype(ref.dtype)
        triton.store(ref.at[lanes(index)], value, mask=there)


def lanes(index: tuple) -> tuple:
    """Of an index all worlds of the block."""
    return (*(jnp.asarray(i, jnp.int32) for i in index), pl.ds(jnp.int32(0), BLOCK))


def table_of(ref: Any, there: Bool[Array, " w"] | None) -> Any:
    """What a step sees of it."""
    if len(ref.shape) < 3:
        return load_entries(ref, (), there)
    return DeviceRows(lambda index: load_entries(ref, (index,), there))


def shapes_of_step(step: Callable, xs: Any, start: tuple[Any, Any], tables: Any) -> tuple:
    """What a step hands on, and what it keeps."""

    def entries(x: Array, number: int) -> Any:
        """Of an array with so many axes before its entries."""
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
    """What a block sees of an array: its own worlds."""
    first = (0,) * (len(shape) - 1)
    if not has_worlds:
        return pl.BlockSpec(shape, lambda _: (0,) * len(shape))
    return pl.BlockSpec((*shape[:-1], BLOCK), lambda block: (*first, block))


def is_parts(x: Any) -> bool:
    """Whether it is a list of entries, put together or not."""
    return isinstance(x, list)
