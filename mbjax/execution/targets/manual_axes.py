"""Several devices: keeps JAX's account, inside `jax.shard_map`, of which arrays differ between devices.

JAX asks every primitive, and the carry of every loop, along which axes of the mesh its results differ.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import ShapedArray
from jax.sharding import NamedSharding, PartitionSpec


def varying_alike(tree: Any) -> Any:
    """Declares all arrays of a tree to differ between devices along each axis that any of them does.

    The transpose of this declaration is a sum over devices: so JAX sums the cotangent of an array that all share.
    """
    arrays, treedef = jax.tree.flatten(tree)
    varying = [varying_axes(x) for x in arrays]
    axes = frozenset().union(*varying)
    if not axes:
        return tree
    alike = [as_varying(x, axes - own) for x, own in zip(arrays, varying, strict=True)]
    return jax.tree.unflatten(treedef, alike)


def scan(body: Callable, start: Any, xs: Any, **options: Any) -> tuple[Any, Any]:
    """Runs `lax.scan` from a carry that may be the same on all devices at the start."""
    if is_inside():
        first = jax.tree.map(lambda x: as_varying(jnp.zeros(x.shape[1:], x.dtype), varying_axes(x)), xs)
        start = varying_as_after(lambda carry: body(carry, first)[0], start)
    return lax.scan(body, start, xs, **options)


def repeat_turns(count: Any, turn: Callable, start: Any) -> Any:
    """Runs `turn(index, carry)` count times, as a rolled loop; the count may be known at run time only."""

    def one(carry: tuple) -> tuple:
        index, state = carry
        return index + np.int32(1), turn(index, state)

    start = varying_as_after(one, (jnp.zeros((), jnp.int32), start))
    return lax.while_loop(lambda carry: carry[0] < count, one, start)[1]


def varying_as_after(turn: Callable, start: Any) -> Any:
    """Declares a loop's first carry to differ between devices wherever `turn(start)`, a tree like it, does.

    JAX wants a carry of one type. Its start may be the same on all devices while a turn reads arrays that differ.
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
    """Whether the code traced now is inside `jax.shard_map`."""
    return bool(jax.sharding.get_abstract_mesh().manual_axes)


def as_varying(x: jax.Array, axes: frozenset) -> jax.Array:
    """Declares an array to differ along these axes too."""
    return lax.pcast(x, tuple(sorted(axes, key=str)), to="varying") if axes else x


def varying_axes(x: jax.Array | ShapedArray) -> frozenset:
    """Axes of `shard_map` along which an array, or one of this shape and type, differs."""
    kind = x if isinstance(x, ShapedArray) else jax.typeof(x)
    return kind.manual_axis_type.varying


def varying_as(arguments: Sequence[ShapedArray], results: Sequence[ShapedArray]) -> list[ShapedArray]:
    """Shapes and types of results that differ between devices where any argument does."""
    if not any(varying_axes(x) for x in arguments):
        return list(results)

    def from_all(*arguments: jax.Array) -> list:
        any_of_all = jnp.any(jnp.stack([jnp.any(x != 0) for x in arguments]))
        return [jnp.broadcast_to(any_of_all, x.shape).astype(x.dtype) for x in results]

    return list(jax.make_jaxpr(from_all)(*arguments).out_avals)


def of_many_worlds(of_one: ShapedArray, worlds: int, like: Sequence[ShapedArray]) -> ShapedArray:
    """Shape and type with a first axis of worlds; on a mesh with explicit axes, shared out as that of arrays `like`."""
    shape = worlds, *of_one.shape
    shared_out = (x.sharding for x in like if x.sharding.spec and x.sharding.spec[0] is not None)
    first = next(shared_out, None)
    if first is None:
        return ShapedArray(shape, of_one.dtype)
    spec = PartitionSpec(first.spec[0], *[None] * len(of_one.shape))
    return ShapedArray(shape, of_one.dtype, sharding=NamedSharding(first.mesh, spec))


def shape_like(shape: tuple[int, ...], x: jax.Array) -> jax.ShapeDtypeStruct:
    """A shape with the type of x, which differs between devices where x does."""
    kind = jax.typeof(x)
    return jax.ShapeDtypeStruct(shape, kind.dtype, manual_axis_type=kind.manual_axis_type)


def keeping_axes(of_result: Callable) -> Callable:
    """Makes the abstract evaluation rule of a primitive with one result from the rule for its shape and type alone."""
    return lambda *arguments, **params: varying_as(arguments, [of_result(*arguments, **params)])[0]
