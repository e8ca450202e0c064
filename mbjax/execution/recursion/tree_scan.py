"""Few kernels: recursions along the tree, outward from the world or inward from the tips, as one loop body each.

No scan is ever differentiated. Arrays that are scanned have nodes first, then components, then worlds if there are
several.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import jaxpr_as_fun
from jaxtyping import Array

from ..targets.gpu_kernels import NotInKernelError, is_world_a_thread
from ..targets.manual_axes import varying_alike, varying_axes
from ..worlds.chunks import compiled_apart
from .packed_rows import Packed, is_packed, is_record, kind_of, unpacked
from .parts import is_parts, parts, put_together
from .stages import Late, Row, are_few_worlds, is_unread, read_all
from .walk_plan import BASE, WalkPlan, as_numbered, as_numbered_after_world, in_order_of_walk


def call_step(index: Array, step: Callable, value: Any, x: Any, several_worlds: bool) -> Any:
    """Calls `step(value, x)`; of several worlds it is compiled apart from the loop around it."""
    return compiled_apart(index, step, value, x) if several_worlds else step(value, x)


def reading(step: Callable, tables: Sequence) -> Callable:
    """A step that is given the tables besides its row."""
    return (lambda value, x: step(value, x, *tables)) if tables else step


def of_first(step: Callable) -> Callable:
    """Makes a step of pairs from a step of their first parts; the second part is None."""

    def of_two(value: tuple, x: Any, *tables: Any) -> tuple[tuple, Any]:
        found, own = step(value[0], x, *tables)
        return (found, None), own

    return of_two


def with_packed_results(step: Callable) -> Callable:
    """A step that hands on as `Packed` what it returns: records, vectors and matrices of entries."""

    def is_given(x: Any) -> bool:
        return is_unread(x) or is_packed(x) or is_parts(x)

    def given(x: Any) -> Any:
        if is_packed(x):
            return unpacked(read_all(x))
        return x.read() if isinstance(x, Late) else x

    def is_row(x: Any) -> bool:
        return is_record(x) or isinstance(x, list) or is_given(x)

    def packed(x: Any) -> Any:
        if isinstance(x, Packed):
            return x
        x = jax.tree.map(given, x, is_leaf=is_given)
        return Packed(parts(*x), kind_of(x)) if is_record(x) or (isinstance(x, list) and not is_parts(x)) else x

    return lambda *args: jax.tree.map(packed, step(*args), is_leaf=is_row)


def call_scan_on_gpu(*args: Any, **options: Any) -> tuple[Any, Any]:
    """Calls `scan_on_gpu`; Pallas is imported only where it is needed."""
    from .gpu_scan import scan_on_gpu

    return scan_on_gpu(*args, **options)


def read_row(rows: Any, index: Array) -> Any:
    """Reads row `index` of each array."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False, allow_negative_indices=False), rows)


def write_row(rows: Any, index: Array, values: Any, combined: Callable[[Array, Array], Array] | None = None) -> Any:
    """Writes values into row `index` of each array, or `combined(value, old)` of them and what was there.

    `Parts` are written one by one: what nothing else reads is then computed where it is written, never put together.
    """

    def write(x: Array, at: Sequence, value: Array, shape: tuple[int, ...]) -> Array:
        value = value.reshape(shape)
        if combined is not None:
            value = combined(value, lax.dynamic_slice(x, at, shape, allow_negative_indices=False))
        return lax.dynamic_update_slice(x, value, at, allow_negative_indices=False)

    def write_one(x: Array, value: Any) -> Array:
        first = np.zeros((), index.dtype)
        if not is_parts(value):
            return write(x, [index, *[first] * (x.ndim - 1)], value, (1, *x.shape[1:]))
        for k, part in enumerate(value):
            at = [index, np.asarray(k, index.dtype), *[first] * (x.ndim - 2)]
            x = write(x, at, jnp.broadcast_to(part, x.shape[2:]), (1, 1, *x.shape[2:]))
        return x

    return jax.tree.map(write_one, rows, values)


def add_to(rows: Any, index: Array, values: Any, is_only: Array) -> Any:
    """Adds values to row `index` of each array, or writes them there if they are the first."""

    def total(value: Array, before: Array) -> Array:
        return jnp.where(is_only, value, value + before)

    def of_worlds(value: Array, before: Array) -> Array:
        """`total` by bits: LLVM would write the loop of a `where` twice, which for each part is half a program."""
        bits = jnp.dtype(f"int{8 * before.dtype.itemsize}")
        are_kept = lax.bitcast_convert_type(before, bits) & jnp.where(is_only, np.zeros((), bits), ~np.zeros((), bits))
        return value + lax.bitcast_convert_type(are_kept, before.dtype)

    some_are_parts = any(map(is_parts, jax.tree.leaves(values, is_leaf=is_parts)))
    return write_row(rows, index, values, of_worlds if some_are_parts else total)


def as_arrays(values: Any) -> Any:
    """Stacks each `Parts` of a tree into an array."""
    return jax.tree.map(lambda x: put_together(*x) if is_parts(x) else x, values, is_leaf=is_parts)


def traced_step(step: Callable, num_nodes: int, *args: Any) -> tuple[Callable, Any]:
    """Traces a step once for all its calls; also returns zeros in the shape of the outputs that they keep.

    Inside `jax.shard_map` the step is traced again, as it is not known here what differs between devices.
    """

    def read_step(*args: Any) -> Any:
        return read_all(step(*args))

    jaxpr, results = jax.make_jaxpr(read_step, return_shape=True)(*args)
    treedef = jax.tree.structure(results)

    def zeros(x: Any) -> Array:
        shapes = [part.shape for part in x] if is_parts(x) else [x.shape]
        count, dtype = ((len(x),), x[0].dtype) if is_parts(x) else ((), x.dtype)
        return jnp.zeros((num_nodes, *count, *jnp.broadcast_shapes(*shapes)), dtype)

    def again(*args: Any) -> Any:
        if any(map(varying_axes, jax.tree.leaves(args))):
            return read_step(*args)
        return jax.tree.unflatten(treedef, jaxpr_as_fun(jaxpr)(*jax.tree.leaves(args)))

    return again, jax.tree.map(zeros, results[1], is_leaf=is_parts)


def rows_at(tree: Any, index: Array) -> Any:
    """A `Row` at `index` of each array, for the stages of a step to read."""
    return jax.tree.map(lambda x: Row(x, index), tree)


def first_rows(tree: Any) -> Any:
    """Shape and type of one row of each array."""
    return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape[1:], x.dtype), tree)


INDEX = jax.ShapeDtypeStruct((), jnp.int32)


def scan_inward(
    plan: WalkPlan,
    step: Callable[..., tuple[Any, Any]],
    xs: Any,
    zero: Any,
    several_worlds: bool = False,
    staged: bool = False,
    tables: Sequence = (),
) -> tuple[Any, Any]:
    """Scans from the tips to the world, adding up in each node what its outboard nodes hand on.

    `step(collected, x, *tables)` gets that sum, and returns what its own node hands on, with an output to keep.
    Returns the outputs stacked over nodes, and what was handed on to the base. A step that is `staged` may get `Row`s,
    and its records are `Packed`; `tables` are arrays that all steps read.
    """
    step = with_packed_results(step) if staged else step
    if is_world_a_thread():
        (places, _), kept = call_scan_on_gpu(plan, of_first(step), xs, (zero, None), tables, inward=True)
        return kept, jax.tree.map(lambda x: x[BASE], places)
    step = reading(step, tables)
    num_nodes, xs = len(plan.place), in_order_of_walk(plan, xs)
    nothing = plan.num_places  # where nothing is ever put
    places = jax.tree.map(lambda x: jnp.zeros((plan.num_places + 1, *x.shape), x.dtype), zero)
    collected = np.where(plan.has_children, plan.place, nothing).astype(np.int32)
    scalars = np.arange(num_nodes, dtype=np.int32), collected, plan.inboard, plan.is_last

    def in_rows(places: Any, collected: Array, xs: Any, index: Array) -> tuple[Any, Any]:
        return step(rows_at(places, collected), rows_at(xs, index))

    staged = staged and are_few_worlds(jax.tree.leaves(zero)[0].shape[1:])
    if staged:
        traced, kept = traced_step(in_rows, num_nodes, places, INDEX, xs, INDEX)
    else:
        traced, kept = traced_step(step, num_nodes, zero, first_rows(xs))

    def body(carry: tuple[Any, Any], element: Any) -> tuple[Any, None]:
        (places, kept), ((index, collected, inboard, is_only), x) = carry, element
        if staged:
            handed_on, own = traced(places, collected, xs, index)
            handed_on = as_arrays(handed_on)
        else:
            handed_on, own = call_step(index, traced, read_row(places, collected), x, several_worlds)
        return (add_to(places, inboard, handed_on, is_only), write_row(kept, index, own)), None

    places, kept, xs = varying_alike((places, kept, xs))
    if num_nodes:
        elements = jax.tree.map(jnp.asarray, scalars), None if staged else xs
        (places, kept), _ = lax.scan(body, (places, kept), elements, reverse=True)
    return as_numbered(plan, kept), jax.tree.map(lambda x: x[BASE], places)


def scan_outward(
    plan: WalkPlan,
    step: Callable[..., tuple[Any, Any]],
    xs: Any,
    world: Any,
    several_worlds: bool = False,
    base: Array | float = 0.0,
    staged: bool = False,
    tables: Sequence = (),
) -> Any:
    """Scans from the world to the tips: `step(inboard_value, x, *tables)` returns its node's value and an output.

    Returns the outputs stacked over nodes. `base` is the value of a base, where some nodes are on one. A step that is
    `staged` may get `Row`s, and its records are `Packed`; `tables` are arrays that all steps read.
    """
    return scan_paths(plan, of_first(step), xs, world, None, several_worlds, base, staged, tables)[1]


def scan_paths(
    plan: WalkPlan,
    step: Callable[..., tuple[tuple, Any]],
    xs: Any,
    passing: Any,
    lasting: Any,
    several_worlds: bool = False,
    base: Array | float = 0.0,
    staged: bool = False,
    tables: Sequence = (),
) -> tuple[Any, Any]:
    """Scans from the world to the tips with values in two parts, trees of arrays; the second part is kept as well.

    `passing` and `lasting` are the world's parts. Returns the second part of the world and all nodes, in this order,
    and the outputs. What children read of their parent's output is thus written only once.
    """
    step = with_packed_results(step) if staged else step
    if is_world_a_thread():
        if (plan.inboard == BASE).any():
            raise NotInKernelError
        (_, rows), kept = call_scan_on_gpu(plan, step, xs, (passing, lasting), tables, inward=False)
        return rows, kept
    step = reading(step, tables)
    num_nodes, xs = len(plan.place), in_order_of_walk(plan, xs)

    def in_places(x: Array) -> Array:
        return jnp.stack([x, jnp.broadcast_to(base, x.shape), *[jnp.zeros_like(x)] * (plan.num_places - 2)])

    def before_all(x: Array) -> Array:
        return jnp.concatenate([x[None], jnp.zeros((num_nodes, *x.shape), x.dtype)])

    values = jax.tree.map(in_places, passing), jax.tree.map(before_all, lasting)
    steps = np.arange(num_nodes, dtype=np.int32)
    scalars = steps, (plan.inboard, plan.parent), (plan.place, steps + 1)

    def in_rows(values: tuple, inboard: tuple, xs: Any, index: Array) -> tuple[tuple, Any]:
        return step(tuple(map(rows_at, values, inboard)), rows_at(xs, index))

    worlds = [*(x.shape[1:] for x in jax.tree.leaves((passing, lasting))), *(x.shape[2:] for x in jax.tree.leaves(xs))]
    staged = staged and are_few_worlds(np.broadcast_shapes(*worlds))
    if staged:
        traced, kept = traced_step(in_rows, num_nodes, values, (INDEX, INDEX), xs, INDEX)
    else:
        traced, kept = traced_step(step, num_nodes, (passing, lasting), first_rows(xs))

    def body(carry: tuple[tuple, Any], element: Any) -> tuple[Any, None]:
        (values, kept), ((index, inboard, places), x) = carry, element
        if staged:
            value, own = traced(values, inboard, xs, index)
            # put together is a tenth to a third faster; of many worlds it is slower
            value = as_arrays(value)
        else:
            value, own = call_step(index, traced, tuple(map(read_row, values, inboard)), x, several_worlds)
        return (tuple(map(write_row, values, places, value)), write_row(kept, index, own)), None

    values, kept, xs = varying_alike((values, kept, xs))
    if num_nodes:
        elements = jax.tree.map(jnp.asarray, scalars), None if staged else xs
        (values, kept), _ = lax.scan(body, (values, kept), elements)
    return as_numbered_after_world(plan, values[1]), as_numbered(plan, kept)
