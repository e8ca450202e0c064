"""Inside `jax.shard_map`: JAX keeps account of what differs between devices, and asks every primitive for it."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.core import ShapedArray
from jax.sharding import NamedSharding, PartitionSpec


def varying_alike(tree: Any) -> Any:
    """The arrays of a tree, all said to differ between devices along each axis that any of them does.

    Where one is the same on all devices its cotangent is then the sum over them: the transpose of saying so.
    """
    arrays, treedef = jax.tree.flatten(tree)
    varying = [varying_axes(x) for x in arrays]
    axes = frozenset().union(*varying)
    if not axes:
        return tree
    alike = [as_varying(x, axes - own) for x, own in zip(arrays, varying, strict=True)]
    return jax.tree.unflatten(treedef, alike)


def scan(body: Callable, start: Any, xs: Any, **options: Any) -> tuple[Any, Any]:
    """`lax.scan` that may start from what is the same on all devices."""
    if is_inside():
        first = jax.tree.map(lambda x: as_varying(jnp.zeros(x.shape[1:], x.dtype), varying_axes(x)), xs)
        start = varying_as_after(lambda carry: body(carry, first)[0], start)
    return lax.scan(body, start, xs, **options)


def varying_as_after(turn: Callable, start: Any) -> Any:
    """What a loop starts from, said to differ between devices wherever `turn(start)`, a tree like it, does.

    JAX asks a loop for a carry of one type. What it starts from may be the same everywhere where a turn reads more.
    """
    if not is_inside():
        return start
    arrays, treedef = jax.tree.flatten(start)
    while True:
        after = jax.make_jaxpr(turn)(jax.tree.unflatten(treedef, arrays)).out_avals
        missing = [varying_axes(y) - varying_axes(x) for x, y in zip(arrays, after, strict=True)]
        if not any(missing):
            return jax.tree.unflatten(treedef, arrays)
        arrays = [as_varying(x, axes) for x, axes in zip(arrays, missing, strict=True)]


def is_inside() -> bool:
    """Whether what is traced now is inside `jax.shard_map`."""
    return bool(jax.sharding.get_abstract_mesh().manual_axes)


def as_varying(x: jax.Array, axes: frozenset) -> jax.Array:
    """The array, said to differ along these axes too."""
    return lax.pcast(x, tuple(sorted(axes, key=str)), to="varying") if axes else x


def varying_axes(x: jax.Array | ShapedArray) -> frozenset:
    """The axes of `shard_map` along which it, or what has this shape and type, differs."""
    kind = x if isinstance(x, ShapedArray) else jax.typeof(x)
    return kind.manual_axis_type.varying


def varying_as(arguments: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> list[ShapedArray]:
    """The shapes and types of results that differ between devices where any argument does."""
    if not any(varying_axes(x) for x in arguments):
        return list(results)

    def from_all(*arguments: jax.Array) -> list:
        any_of_all = jnp.any(jnp.stack([jnp.any(x != 0) for x in arguments]))
        return [jnp.broadcast_to(any_of_all, x.shape).astype(x.dtype) for x in results]

    return list(jax.make_jaxpr(from_all)(*arguments).out_avals)


def of_many_worlds(of_one: ShapedArray, worlds: int, like: Sequence[ShapedArray]) -> ShapedArray:
    """Shape and type of as many as first axis; on a mesh with explicit axes, shared out like that of these arrays."""
    shape = worlds, *of_one.shape
    shared_out = (x.sharding for x in like if x.sharding.spec and x.sharding.spec[0] is not None)
    first = next(shared_out, None)
    if first is None:
        return ShapedArray(shape, of_one.dtype)
    spec = PartitionSpec(first.spec[0], *[None] * len(of_one.shape))
    return ShapedArray(shape, of_one.dtype, sharding=NamedSharding(first.mesh, spec))


def shape_like(shape: tuple[int, ...], x: jax.Array) -> jax.ShapeDtypeStruct:
    """A shape with the type of x, that differs between devices where x does."""
    kind = jax.typeof(x)
    return jax.ShapeDtypeStruct(shape, kind.dtype, manual_axis_type=kind.manual_axis_type)


def keeping_axes(of_result: Callable) -> Callable:
    """The rule of a primitive with one result, from the rule for shapes and types by themselves."""
    return lambda *arguments, **params: varying_as(arguments, [of_result(*arguments, **params)])[0]
