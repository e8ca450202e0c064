"""Scans along the tree as one kernel of a GPU: every thread walks the whole tree, for a world of its own.

Written with Pallas, for Triton. Rows of nodes, and what waits for their children, are in memory, where neighbouring
threads read and write neighbouring numbers; a step itself is in registers. No thread reads what another wrote.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float

from mbjax.gpu_kernels import DeviceRows, NotInKernelError, are_interpreted
from mbjax.manual_axes import shape_like
from mbjax.spatial import written_out as wo

from .walk_plan import BASE, WORLD, WalkPlan, as_numbered, in_order_of_walk

BLOCK = 32  # worlds: a warp, so that a few thousand reach all processors already


def scan_on_gpu(
    plan: WalkPlan, step: Callable, xs: Any, start: Float[Array, "k w"], tables: Sequence, inward: bool
) -> tuple[Any, Float[Array, "k w"]]:
    """`scan_inward` from zero or `scan_outward` from the world's value: what is kept, and what the base was handed.

    `step(value, row, *tables)` gets the entries of rows, as `Parts`; of tables of rows `DeviceRows`, of others their
    entries.
    """
    if start.ndim == 1 or not plan.place.size:
        raise NotInKernelError
    arrays, treedef = jax.tree.flatten((in_order_of_walk(plan, xs), start, list(tables)))
    worlds = max(x.shape[-1] for x in arrays if x.ndim > 1)
    turns = [np.asarray(x, np.int32) for x in (plan.place, plan.inboard, plan.has_children, plan.is_last)]
    value, own = shapes_of_step(step, *jax.tree.unflatten(treedef, arrays))
    kept, nested = jax.tree.flatten(own, is_leaf=is_parts)
    counts = [(plan.num_places, len(value)), *((plan.place.size, *([len(x)] if is_parts(x) else [])) for x in kept)]
    results = [shape_like((*count, worlds), start) for count in counts]

    def kernel(*refs: Any) -> None:
        numbers, refs = refs[: len(turns)], refs[len(turns) :]
        there = None if worlds % BLOCK == 0 else pl.program_id(0) * BLOCK + jnp.arange(BLOCK, dtype=jnp.int32) < worlds
        given = jax.tree.unflatten(treedef, refs[: len(arrays)])
        walk(step, inward, numbers, *given, *refs[len(arrays) :], there=there)

    given = [*turns, *arrays]
    interpreted = are_interpreted()
    places, *found = pl.pallas_call(
        kernel,
        grid=(-(-worlds // BLOCK),),
        in_specs=[block_of(x.shape, x.ndim > 1 and x.shape[-1] > 1) for x in given],
        out_specs=[block_of(x.shape, True) for x in results],
        out_shape=results,
        interpret=interpreted,
        compiler_params=None if interpreted else triton.CompilerParams(num_warps=1, num_stages=1),
        name="scan_inward" if inward else "scan_outward",
    )(*given)
    return as_numbered(plan, jax.tree.unflatten(nested, found)), places[BASE]


def walk(
    step: Callable,
    inward: bool,
    numbers: Sequence,
    xs: Any,
    start: Any,
    tables: Any,
    places: Any,
    *outputs: Any,
    there: Bool[Array, " w"] | None,
) -> None:
    """All turns of the scan, for the worlds of a block that are `there`; the arguments are references to arrays."""
    place, inboard, has_children, is_last = numbers
    num_nodes = place.shape[0]
    if not inward:
        write(places, (WORLD,), entries_of(start, (), there), there)

    def turn(count: Array, _: None) -> None:
        node = num_nodes - 1 - count if inward else count
        row = jax.tree.map(lambda ref: entries_of(ref, (node,), there), xs)
        looked_up = jax.tree.map(lambda ref: table_of(ref, there), tables)
        value = entries_of(places, (place[node] if inward else inboard[node],), there)
        if inward:
            value = wo.Parts(jnp.where(has_children[node] > 0, x, 0.0) for x in value)
        value, own = step(value, row, *looked_up)
        if inward:
            before = entries_of(places, (inboard[node],), there)
            value = [jnp.where(is_last[node] > 0, x, x + y) for x, y in zip(value, before, strict=True)]
        write(places, (inboard[node] if inward else place[node],), value, there)
        for ref, x in zip(outputs, jax.tree.leaves(own, is_leaf=is_parts), strict=True):
            write(ref, (node,), x, there)

    lax.fori_loop(np.int32(0), np.int32(num_nodes), turn, None)


def entries_of(ref: Any, index: tuple, there: Bool[Array, " w"] | None) -> Any:
    """The numbers at an index, one by one if they are several; of each world of the block, or of all of them."""
    if len(ref.shape) == len(index):
        return ref[index]
    if len(ref.shape) == len(index) + 1:
        if ref.shape[-1] == 1:
            return ref[(*index, 0)]
        return triton.load(ref.at[lanes(index)], mask=there, other=None if there is None else 0.0)
    return wo.Parts(entries_of(ref, (*index, k), there) for k in range(ref.shape[len(index)]))


def write(ref: Any, index: tuple, value: Any, there: Bool[Array, " w"] | None) -> None:
    """The inverse of `entries_of`."""
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
        return entries_of(ref, (), there)
    return DeviceRows(lambda index: entries_of(ref, (index,), there))


def shapes_of_step(step: Callable, xs: Any, start: Array, tables: Any) -> tuple:
    """What a step hands on, and what it keeps."""

    def entries(x: Array, number: int) -> Any:
        """Of an array with so many axes before its entries."""
        if x.ndim == number:
            return jnp.zeros((), x.dtype)
        one = jnp.zeros((BLOCK,) if x.shape[-1] > 1 else (), x.dtype)
        return one if x.ndim == number + 1 else wo.Parts([one] * x.shape[number])

    def table(x: Array) -> Any:
        return DeviceRows(lambda _: entries(x, 1)) if x.ndim == 3 else entries(x, 0)

    def of_zeros() -> tuple:
        row = jax.tree.map(lambda x: entries(x, 1), xs)
        return step(entries(start, 0), row, *jax.tree.map(table, tables))

    return jax.eval_shape(of_zeros)


def block_of(shape: tuple[int, ...], has_worlds: bool) -> pl.BlockSpec:
    """What a block sees of an array: its own worlds."""
    first = (0,) * (len(shape) - 1)
    if not has_worlds:
        return pl.BlockSpec(shape, lambda _: (0,) * len(shape))
    return pl.BlockSpec((*shape[:-1], BLOCK), lambda block: (*first, block))


def is_parts(x: Any) -> bool:
    """Whether it is a list of entries."""
    return isinstance(x, wo.Parts)
