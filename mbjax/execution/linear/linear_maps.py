"""Derivatives in few kernels: linear functions whose transpose is written by hand for where kernels run it.

JAX transposes a linear function operation by operation. A recursion of its own makes the transpose faster; but
recursions are not differentiated, and are slower without kernels. So JAX differentiates the plain function, and
without kernels the transpose is JAX's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.core import ShapedArray
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from ..targets.by_device import in_kernels
from ..targets.manual_axes import varying_as


@dataclass(frozen=True)
class Ways:
    """A function from arrays to a list of arrays: the plain one that JAX differentiates, and perhaps a faster one.

    The faster one runs in kernels. `many` is the one for many linear arguments at once, stacked, from `size` on.
    """

    plain: Callable
    fast: Callable | None
    many: "Many | None" = None

    def __call__(self, *args: jax.Array) -> list:
        return self.plain(*args) if self.fast is None else in_kernels(self.fast, self.plain, *args)

    def several(self, in_axes: tuple, size: int, count: int) -> "Ways":
        """Both functions under `vmap`; they are not linear in the first `count` arguments."""

        def under_vmap(function: Callable) -> Callable:
            return jax.vmap(function, in_axes=in_axes, axis_size=size)

        if self.many is not None and size >= self.many.size and all(axis is None for axis in in_axes[:count]):
            return Ways(under_vmap(self.plain), self.many.function)
        return Ways(under_vmap(self.plain), None if self.fast is None else under_vmap(self.fast))


class Many(NamedTuple):
    """A function of many arguments, stacked on a first axis; it is the faster one from `size` of them on."""

    function: Callable
    size: int


def linear_map(
    function: Callable,
    pull_back: Callable,
    fixed: Any,
    moved: Any,
    shape: tuple[int, ...],
    many: tuple[Callable, Callable, int] | None = None,
) -> Any:
    """Returns `function(fixed, moved)`, an array that is linear in `moved`; the arguments are trees of arrays.

    The result is broadcast to `shape`, which is given as to trace for it takes long, and has the type of `moved`.

    `pull_back(fixed, cotangent)` is the cotangent of `moved`, in kernels; `function` can be differentiated. `many` has
    a function and a pull back for arguments stacked on a first axis, and from how many arguments on to use them.
    """
    of_fixed, fixed_treedef = jax.tree.flatten(fixed)
    of_moved, moved_treedef = jax.tree.flatten(moved)
    count, like = len(of_fixed), [ShapedArray(x.shape, x.dtype) for x in of_moved]

    def forward(function: Callable, *args: jax.Array) -> list:
        given = jax.tree.unflatten(fixed_treedef, args[:count]), jax.tree.unflatten(moved_treedef, args[count:])
        found = function(*given)
        return [jnp.broadcast_to(found, (*found.shape[: found.ndim - len(shape)], *shape))]

    def backward(*args: jax.Array) -> list:
        held, cotangents = args[:count], list(args[count:])
        _, pull = jax.vjp(lambda *x: forward(function, *held, *x), *(jnp.zeros(x.shape, x.dtype) for x in like))
        return list(pull(cotangents))

    def backward_on_cpu(pull_back: Callable, several: bool, *args: jax.Array) -> list:
        found = pull_back(jax.tree.unflatten(fixed_treedef, args[:count]), args[count])
        assert jax.tree.structure(found) == moved_treedef
        size = args[count].shape[:several]
        return [fitting(y, (*size, *x.shape)) for x, y in zip(like, jax.tree.leaves(found), strict=True)]

    of_many = None if many is None else Many(partial(forward, many[0]), many[2])
    back_of_many = None if many is None else Many(partial(backward_on_cpu, many[1], True), many[2])
    (found,) = linear_map_p.bind(
        *of_fixed,
        *of_moved,
        forward=Ways(partial(forward, function), None, of_many),
        backward=Ways(backward, partial(backward_on_cpu, pull_back, False), back_of_many),
        count=count,
        out=(ShapedArray(shape, of_moved[0].dtype),),
    )
    return found


def linear_by_hand(
    function: Callable, transpose: Callable, fixed: Any, moved: Any, shape: tuple[int, ...], dtype: Any
) -> jax.Array:
    """Returns `function(fixed, moved)`, an array of this shape and type that is linear in `moved`, trees of arrays.

    `transpose(fixed, cotangent)` returns the cotangents of `moved`, a tree like it. JAX looks into neither, so both may
    have loops whose length is not known. `fixed` must not be differentiated.
    """
    of_fixed, fixed_treedef = jax.tree.flatten(fixed)
    of_moved, moved_treedef = jax.tree.flatten(moved)
    count = len(of_fixed)

    def forward(*args: jax.Array) -> list:
        held = jax.tree.unflatten(fixed_treedef, args[:count])
        return [function(held, jax.tree.unflatten(moved_treedef, args[count:]))]

    def backward(*args: jax.Array) -> list:
        return jax.tree.leaves(transpose(jax.tree.unflatten(fixed_treedef, args[:count]), args[count]))

    (found,) = linear_map_p.bind(
        *of_fixed,
        *of_moved,
        forward=Ways(forward, None),
        backward=Ways(backward, None),
        count=count,
        out=(ShapedArray(shape, dtype),),
    )
    return found


def fitting(cotangent: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Broadcasts a cotangent to a shape; sums it over worlds where the shape has one for all worlds."""
    if cotangent.shape[-1:] > shape[-1:] == (1,):
        cotangent = jnp.sum(cotangent, axis=-1, keepdims=True)
    return jnp.broadcast_to(cotangent, shape)


# The primitive `linear_map_p` runs `forward` on its arguments; it is linear in all but the first `count`. `backward`
# takes those `count` and cotangents of the results, whose shapes and types are `out`.

linear_map_p = Primitive("linear_map")
linear_map_p.multiple_results = True


def differentiate_linear_map(primals: Sequence, tangents: Sequence, **params: Any) -> tuple:
    """Forward-mode rule of `linear_map_p`: the map of the tangents, unless other arguments move."""
    count = params["count"]
    results = linear_map_p.bind(*primals, **params)
    if all(type(t) is ad.Zero for t in tangents[:count]):
        return results, linear_map_p.bind(*primals[:count], *map(ad.instantiate_zeros, tangents[count:]), **params)
    tangents = tuple(map(ad.instantiate_zeros, tangents))
    return results, jax.jvp(params["forward"].plain, tuple(primals), tangents)[1]


def transpose_linear_map(
    cotangents: Sequence, *args: Any, forward: Ways, backward: Ways, count: int, out: tuple[ShapedArray, ...]
) -> list:
    """Reverse-mode rule of `linear_map_p`: `forward` and `backward` change places."""
    moved = tuple(ShapedArray(x.aval.shape, x.aval.dtype) for x in args[count:])
    cotangents = list(map(ad.instantiate_zeros, cotangents))
    del out
    params = {"forward": backward, "backward": forward, "count": count, "out": moved}
    return [None] * count + linear_map_p.bind(*args[:count], *cotangents, **params)


def batch_linear_map(args: Sequence, dims: Sequence, **params: Any) -> tuple[list, list]:
    """Batching rule of `linear_map_p`; all arguments that it is linear in are then batched."""
    count, size = params["count"], next(x.shape[d] for x, d in zip(args, dims, strict=True) if d is not None)
    args = [x if d is None else jnp.moveaxis(x, d, 0) for x, d in zip(args, dims, strict=True)]
    moved = [
        x if d is not None else jnp.broadcast_to(x, (size, *x.shape))
        for x, d in zip(args[count:], dims[count:], strict=True)
    ]
    axes = tuple(None if d is None else 0 for d in dims[:count])
    changed = {
        "forward": params["forward"].several((*axes, *(0 for _ in moved)), size, count),
        "backward": params["backward"].several((*axes, *(0 for _ in params["out"])), size, count),
        "out": tuple(ShapedArray((size, *x.shape), x.dtype) for x in params["out"]),
    }
    found = linear_map_p.bind(*args[:count], *moved, **(params | changed))
    return found, [0] * len(found)


def evaluate_linear_map(*args: Any, forward: Ways, **_: Any) -> list:
    """Value of the map."""
    return forward(*args)


def shapes_of_linear_map(*args: Any, out: tuple[ShapedArray, ...], **_: Any) -> list[ShapedArray]:
    """Shapes and types of the map's results."""
    return varying_as(args, out)


linear_map_p.def_impl(evaluate_linear_map)
linear_map_p.def_abstract_eval(shapes_of_linear_map)
ad.primitive_jvps[linear_map_p] = differentiate_linear_map
ad.primitive_transposes[linear_map_p] = transpose_linear_map
batching.primitive_batchers[linear_map_p] = batch_linear_map
mlir.register_lowering(linear_map_p, mlir.lower_fun(evaluate_linear_map, multiple_results=True), cacheable=False)
