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

from mbjax.chunks import compiled_apart
from mbjax.gpu_kernels import is_for_gpu
from mbjax.manual_axes import varying_alike, varying_axes
from mbjax.spatial import written_out as wo
from mbjax.stages import Row, are_few

from .walk_plan import BASE, WalkPlan, as_numbered, in_order_of_walk


def call_step(index: Array, step: Callable, value: Any, x: Any, several_worlds: bool) -> Any:
    """`step(value, x)`, of several worlds apart from the loop around it."""
    return compiled_apart(index, step, value, x) if several_worlds else step(value, x)


def reading(step: Callable, tables: Sequence) -> Callable:
    """The step with what it reads besides its row."""
    return (lambda value, x: step(value, x, *tables)) if tables else step


def on_gpu(*args: Any, **options: Any) -> tuple[Any, Any]:
    """`scan_on_gpu`; Pallas is imported only where it is needed."""
    from .gpu_scan import scan_on_gpu

    return scan_on_gpu(*args, **options)


def read_row(rows: Any, index: Array) -> Any:
    """The row of that index of each array."""
    return jax.tree.map(lambda x: lax.dynamic_index_in_dim(x, index, 0, False, allow_negative_indices=False), rows)


def write_row(rows: Any, index: Array, values: Any) -> Any:
    """With the values in the rows of that index; parts one by one, which is one copy less than to put them together."""

    def write_one(x: Array, value: Array | wo.Parts) -> Array:
        if not isinstance(value, wo.Parts):
            return lax.dynamic_update_index_in_dim(x, value, index, 0, allow_negative_indices=False)
        for k, part in enumerate(value):
            part = jnp.broadcast_to(part, x.shape[2:])[None, None]
            at = (index, jnp.full_like(index, k), *[jnp.zeros_like(index)] * (x.ndim - 2))
            x = lax.dynamic_update_slice(x, part, at, allow_negative_indices=False)
        return x

    return jax.tree.map(write_one, rows, values)


def add_to(rows: Any, index: Array, values: Any, is_only: Array) -> Any:
    """With the values added to the rows of that index, or in their place if they are the only ones."""

    def total(before: Array, value: Array) -> Array:
        return jnp.where(is_only, value, value + before)

    return write_row(rows, index, jax.tree.map(total, read_row(rows, index), values))


def traced_step(step: Callable, num_nodes: int, *args: Any) -> tuple[Callable, Any]:
    """The step, which is traced here and not again, and zeros for what all its calls keep.

    Inside `jax.shard_map` it is traced again: of what differs between devices nothing is known here.
    """
    jaxpr, results = jax.make_jaxpr(step, return_shape=True)(*args)
    treedef = jax.tree.structure(results)

    def zeros(x: Any) -> Array:
        shapes = [part.shape for part in x] if isinstance(x, wo.Parts) else [x.shape]
        count, dtype = ((len(x),), x[0].dtype) if isinstance(x, wo.Parts) else ((), x.dtype)
        return jnp.zeros((num_nodes, *count, *jnp.broadcast_shapes(*shapes)), dtype)

    def again(*args: Any) -> Any:
        if any(map(varying_axes, jax.tree.leaves(args))):
            return step(*args)
        return jax.tree.unflatten(treedef, jaxpr_as_fun(jaxpr)(*jax.tree.leaves(args)))

    return again, jax.tree.map(zeros, results[1], is_leaf=lambda x: isinstance(x, wo.Parts))


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
    if is_for_gpu():
        return on_gpu(plan, step, xs, zero, tables, inward=True)
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
    world: Array,
    several_worlds: bool = False,
    base: Array | float = 0.0,
    staged: bool = False,
    tables: Sequence = (),
) -> Any:
    """From the world to the tips: `step(inboard_value, x, *tables)` returns its own value and an output to keep.

    `base` is the value of the base, where some are on one. A step that is `staged` may get `Row`s; `tables` are arrays
    that all steps read.
    """
    if is_for_gpu():
        return on_gpu(plan, step, xs, world, tables, inward=False)[0]
    step = reading(step, tables)
    num_nodes, xs = len(plan.place), in_order_of_walk(plan, xs)
    places = jnp.stack([world, jnp.broadcast_to(base, world.shape), *[jnp.zeros_like(world)] * (plan.num_places - 2)])
    scalars = np.arange(num_nodes, dtype=np.int32), plan.place, plan.inboard

    def in_rows(places: Array, inboard: Array, xs: Any, index: Array) -> tuple[Any, Any]:
        return step(Row(places, inboard), rows_at(xs, index))

    staged = staged and are_few(world.shape[1:])
    if staged:
        traced, kept = traced_step(in_rows, num_nodes, places, INDEX, xs, INDEX)
    else:
        traced, kept = traced_step(step, num_nodes, world, first_rows(xs))

    def body(carry: tuple[Array, Any], element: Any) -> tuple[Any, None]:
        (places, kept), ((index, place, inboard), x) = carry, element
        if staged:
            value, own = traced(places, inboard, xs, index)
            if isinstance(value, wo.Parts):  # a tenth to a third faster, where of many worlds it is slower
                value = wo.put_together(value)
        else:
            value, own = call_step(index, traced, read_row(places, inboard), x, several_worlds)
        return (write_row(places, place, value), write_row(kept, index, own)), None

    places, kept, xs = varying_alike((places, kept, xs))
    if num_nodes:
        elements = jax.tree.map(jnp.asarray, scalars), None if staged else xs
        (_, kept), _ = lax.scan(body, (places, kept), elements)
    return as_numbered(plan, kept)
