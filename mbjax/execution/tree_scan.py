"""Recursions along the tree, rolled into one loop body each: outward from the world, and inward from the tips.

Neither is ever differentiated. Arrays that are scanned have nodes first, then components, then worlds if there are
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

from .chunks import compiled_apart
from .gpu_kernels import NotInKernelError, is_world_a_thread
from .manual_axes import varying_alike, varying_axes
from .parts import Parts, put_together
from .stages import Row, are_few, read_all
from .walk_plan import BASE, WalkPlan, as_numbered, as_numbered_after_world, in_order_of_walk


def call_step(index: Array, step: Callable, value: Any, x: Any, several_worlds: bool) -> Any:
    """`step(value, x)`, of several worlds apart from the loop around it."""
    return compiled_apart(index, step, value, x) if several_worlds else step(value, x)


def reading(step: Callable, tables: Sequence) -> Callable:
    """The step with what it reads besides its row."""
    return (lambda value, x: step(value, x, *tables)) if tables else step


def of_first(step: Callable) -> Callable:
    """A step of values in two parts, of which there is only the first."""

    def of_two(value: tuple, x: Any, *tables: Any) -> tuple[tuple, Any]:
        found, own = step(value[0], x, *tables)
        return (found, None), own

    return of_two


def on_gpu(*args: Any, **options: Any) -> tuple[Any, Any]:
    """`scan_on_gpu`; Pallas is imported only where it is needed."""
    from .gpu_scan import scan_on_gpu

    return scan_on_gpu(*args, **options)


def read_row(rows: Any, index: Array) -> Any:
    """The row of that index of each array."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False, allow_negative_indices=False), rows)


def write_row(rows: Any, index: Array, values: Any, combined: Callable[[Array, Array], Array] | None = None) -> Any:
    """With the values in the rows of that index, or what they are `combined` with what was there.

    Parts one by one: what nothing else reads is then computed where it is written, and never put together before.
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
    """With the values added to the rows of that index, or in their place if they are the only ones."""

    def total(value: Array, before: Array) -> Array:
        return jnp.where(is_only, value, value + before)

    def of_worlds(value: Array, before: Array) -> Array:
        """The same by bits: LLVM would write the loop of a choice twice, which for each part is half a program."""
        bits = jnp.dtype(f"int{8 * before.dtype.itemsize}")
        are_kept = lax.bitcast_convert_type(before, bits) & jnp.where(is_only, np.zeros((), bits), ~np.zeros((), bits))
        return value + lax.bitcast_convert_type(are_kept, before.dtype)

    some_are_parts = any(map(is_parts, jax.tree.leaves(values, is_leaf=is_parts)))
    return write_row(rows, index, values, of_worlds if some_are_parts else total)


def as_arrays(values: Any) -> Any:
    """With each `Parts` put together."""
    return jax.tree.map(lambda x: put_together(*x) if is_parts(x) else x, values, is_leaf=is_parts)


def traced_step(step: Callable, num_nodes: int, *args: Any) -> tuple[Callable, Any]:
    """The step, which is traced here and not again, and zeros for what all its calls keep.

    Inside `jax.shard_map` it is traced again: of what differs between devices nothing is known here.
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
    """The row of that index of each array, which the stages of a step read."""
    return jax.tree.map(lambda x: Row(x, index), tree)


def first_rows(tree: Any) -> Any:
    """What the first row of each array is like."""
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
    """From the tips to the world, adding up in each node what comes from outboard.

    `step(collected, x, *tables)` gets the sum of what the outboard nodes handed on, and returns what this one hands on,
    with an output to keep. Returns the outputs stacked over nodes, and what was handed on to the base. A step that is
    `staged` may get `Row`s; `tables` are arrays that all steps read.
    """
    if is_world_a_thread():
        (places, _), kept = on_gpu(plan, of_first(step), xs, (zero, None), tables, inward=True)
        return kept, places[BASE]
    step = reading(step, tables)
    num_nodes, xs = len(plan.place), in_order_of_walk(plan, xs)
    nothing = plan.num_places  # where nothing is ever put
    places = jax.tree.map(lambda x: jnp.zeros((plan.num_places + 1, *x.shape), x.dtype), zero)
    collected = np.where(plan.has_children, plan.place, nothing).astype(np.int32)
    scalars = np.arange(num_nodes, dtype=np.int32), collected, plan.inboard, plan.is_last

    def in_rows(places: Any, collected: Array, xs: Any, index: Array) -> tuple[Any, Any]:
        return step(rows_at(places, collected), rows_at(xs, index))

    staged = staged and are_few(jax.tree.leaves(zero)[0].shape[1:])
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
    """From the world to the tips: `step(inboard_value, x, *tables)` returns its own value and an output to keep.

    `base` is the value of the base, where some are on one. A step that is `staged` may get `Row`s; `tables` are arrays
    that all steps read.
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
    """`scan_outward` of values in two parts, which are arrays or trees of them, of which the second is kept as well.

    `passing` and `lasting` are those of the world. Returns the second part of the world and all nodes, in this order,
    and the outputs: what children read of their parents' outputs need not be written twice so.
    """
    if is_world_a_thread():
        if (plan.inboard == BASE).any():
            raise NotInKernelError
        (_, rows), kept = on_gpu(plan, step, xs, (passing, lasting), tables, inward=False)
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
    staged = staged and are_few(np.broadcast_shapes(*worlds))
    if staged:
        traced, kept = traced_step(in_rows, num_nodes, values, (INDEX, INDEX), xs, INDEX)
    else:
        traced, kept = traced_step(step, num_nodes, (passing, lasting), first_rows(xs))

    def body(carry: tuple[tuple, Any], element: Any) -> tuple[Any, None]:
        (values, kept), ((index, inboard, places), x) = carry, element
        if staged:
            value, own = traced(values, inboard, xs, index)
            # together it is a tenth to a third faster, where of many worlds it is slower
            value = as_arrays(value)
        else:
            value, own = call_step(index, traced, tuple(map(read_row, values, inboard)), x, several_worlds)
        return (tuple(map(write_row, values, places, value)), write_row(kept, index, own)), None

    values, kept, xs = varying_alike((values, kept, xs))
    if num_nodes:
        elements = jax.tree.map(jnp.asarray, scalars), None if staged else xs
        (values, kept), _ = lax.scan(body, (values, kept), elements)
    return as_numbered_after_world(plan, values[1]), as_numbered(plan, kept)


def is_parts(x: Any) -> bool:
    """Whether it is a list of entries."""
    return isinstance(x, Parts)
